package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// insideVariable tells the tests that a document runs them.
const insideVariable = "AGENTPLATFORM_TEST_COMMANDS"

// TestCommands runs every command of README.md, infra/README.md and docs, as `type block` says, in a fresh copy of the tree and against the platform
// that the README's own command started.
func TestCommands(t *testing.T) {
	t.Parallel()
	require.Empty(t, os.Getenv(insideVariable), "a document runs the tests that run it: put <!-- not run: … --> before that block")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	names := []string{filepath.Join(root, "README.md"), filepath.Join(root, "infra", "README.md")}
	for _, folder := range []string{"docs", filepath.Join("docs", "design")} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		require.NoError(t, err)
		names = append(names, found...)
	}
	r := newRunner(t)
	copyTree(t, root, r.tree)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		short, err := filepath.Rel(root, name)
		require.NoError(t, err)
		require.NoError(t, r.document(short, string(text)))
	}
	require.NotNil(t, r.platform, "README.md starts the platform by `make run`")
	require.Contains(t, r.close(), "stopping …", "Ctrl-C")
	t.Log(listed(r.unrun))
}

// newRunner is a runner with an empty tree.
func newRunner(t testing.TB) *runner {
	t.Helper()
	r := &runner{tree: dataDir(t), scratch: dataDir(t), port: freePort(t), tls: freePort(t)}
	none := filepath.Join(r.scratch, "none")
	r.env = slices.DeleteFunc(environment(""), func(v string) bool {
		return v == "DATA_DIR=" || strings.HasPrefix(v, "PORT=") || strings.HasPrefix(v, "TLS_PORT=") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
	r.env = append(r.env, insideVariable+"=1", "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none, "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true")
	t.Cleanup(func() { r.close() })
	return r
}

// copyTree copies what git has, or would take, as a fresh clone has it.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	out, err := list.Output()
	require.NoError(t, err, "this test needs a git checkout")
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		source, target := filepath.Join(from, name), filepath.Join(to, name)
		info, err := os.Lstat(source)
		if os.IsNotExist(err) {
			continue // removed, and not yet committed so
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		if info.Mode()&os.ModeSymlink != 0 {
			link, err := os.Readlink(source)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(link, target))
			continue
		}
		in, err := os.Open(source)
		require.NoError(t, err)
		file, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, info.Mode().Perm())
		require.NoError(t, err)
		_, err = io.Copy(file, in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.NoError(t, file.Close())
	}
}

// TestCommandsRunner runs a small document of its own, with a Makefile that stands in for the platform.
func TestCommandsRunner(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	makefile, err := os.ReadFile("testdata/commands/Makefile")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.tree, "Makefile"), makefile, 0o600))
	text, err := os.ReadFile("testdata/commands/README.md")
	require.NoError(t, err)
	require.NoError(t, r.document("README.md", string(text)))
	require.Len(t, r.unrun, 1)
	require.Contains(t, listed(r.unrun), "1 documented commands were not run, but looked at:\n1 need docker, sam\n  README.md:")
	require.Contains(t, r.close(), "stopping")
}

// TestCommandsRunnerRefuses: what is wrong in a document is told with its line.
func TestCommandsRunnerRefuses(t *testing.T) {
	t.Parallel()
	sh := func(lines ...string) string { return "text\n\n```sh\n" + strings.Join(lines, "\n") + "\n```\n" }
	console := func(lines ...string) string { return "```console\n" + strings.Join(lines, "\n") + "\n```\n" }
	for _, c := range []struct{ name, text, want string }{
		{"a command fails", sh("true", "false", "true"), "README.md:4: exit status 1"},
		{"a command of a pipe fails", sh("false | cat"), "README.md:4: exit status 1"},
		{"the shell is left", sh("exit 3"), "README.md:4: exit status 3"},
		{"a command does not exist", sh("nothing-of-that-name"), "exit status 127"},
		{"the output is another", console("$ echo one", "two"), "README.md:2: the output is not as shown"},
		{"the output is more", console("$ printf 'one\\ntwo\\n'", "one"), "not as shown"},
		{"the output is less", console("$ echo one", "one", "two"), "not as shown"},
		{"the second command's output is another", console("$ echo one", "one", "$ echo two", "three"), "README.md:4: "},
		{"a console block without a prompt", console("echo one"), "line 2: a console block begins with"},
		{"a language that is not run", "```bash\ntrue\n```\n", "line 1: write sh or console for bash"},
		{"no reason", "<!-- not run: -->\n```sh\ntrue\n```\n", "without a reason"},
		{"an unknown need", "<!-- needs: account, luck -->\n```sh\ntrue\n```\n", `line 1: needs "luck": it is account, docker or sam`},
		{"no need", "<!-- needs: -->\n```sh\ntrue\n```\n", `line 1: needs ""`},
		{"needs, and no block", "<!-- needs: sam -->\n\n```sh\ntrue\n```\n", "line 1: `needs` is not before a block"},
		{"needs, and no shell's grammar", "<!-- needs: account -->\n```sh\nif true; then\n```\n", "README.md:3: it is not what bash reads"},
		{"not run, and no block", "<!-- not run: because -->\n\n```sh\ntrue\n```\n", "line 1: `not run` is not before a block"},
		{"no end", "```sh\ntrue\n", "line 1: the block has no end"},
		{"an empty block", "```sh\n\n```\n", "line 1: an empty block"},
		{"a platform that does not start", sh("make run"), "README.md:4: the program ended without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.ErrorContains(t, newRunner(t).document("README.md", c.text), c.want)
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, text string
		matches    bool
	}{
		{"one\ntwo\n", "one\ntwo", true}, {"one  \ntwo\n\n", "one\ntwo\n", true}, {"a.c", "abc", false},
		{"turn …  succeeded", "turn 0190-7  succeeded", true}, {"turn …  succeeded", "turn 0190\n  succeeded", false},
		{"one\n…\nfour", "one\ntwo\nthree\nfour", true}, {"one\n…\nfour", "one\nfour", true}, {"one\n…\nfour", "one\ntwo\nfour and more", false},
		{"…\nend", "one\nend", true}, {"…\nend", "end", true}, {"begin\n…", "begin\nmore", true}, {"begin\n…", "begin", true}, {"begin\n…", "beginning", false},
		{"one\ntwo", "onetwo", false}, {"…", "", true}, {"…", "anything\nat all", true}, {"a…b…c", "a1b2c", true}, {"", "", true}, {"x", "", false},
	} {
		require.Equal(t, c.matches, matches(c.want, c.text), "%q %q", c.want, c.text)
	}
}
