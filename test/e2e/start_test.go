package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// refused runs a platform that cannot start: exit code 1 and one line that says what to do.
func refused(t testing.TB, cmd *exec.Cmd, want string) {
	t.Helper()
	proc, err := launch(cmd)
	require.NoError(t, err)
	require.Equal(t, 1, proc.exit(), proc.output)
	complaint := strings.TrimSuffix(proc.stderr.String(), "\n")
	require.NotContains(t, complaint, "\n", "one line")
	require.Regexp(t, `^local: `+want, complaint)
	require.NotContains(t, proc.output.String(), "goroutine ")
}

// TestOnce: --once stops after the first conversation, which it shows as it happens; the data stays.
func TestOnce(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for _, thread := range []string{"CHAT-1", "CHAT-2"} {
		proc, err := launch(command(dir, nil, "--once"))
		require.NoError(t, err)
		require.Equal(t, 0, proc.exit(), proc.output)
		require.Regexp(t, `(?s)alice@acme\.test opened `+thread+`\n.*agent  Hello\. .*chunks: [1-9]; first reply \S+ after the start.*`+
			`turn [0-9a-f-]{36}  succeeded\n  perception .* ms\n  planning .* ms\n  action .* ms\n  feedback .* ms\n  \S+, \d+ tokens in, \d+ tokens out, cost \$\d+\.\d{6}\n`,
			proc.output.String())
		require.Empty(t, proc.stderr.String())
	}
	secrets, err := os.Stat(filepath.Join(dir, "secrets.env"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), secrets.Mode())
	text, err := os.ReadFile(filepath.Join(dir, "secrets.env"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^LOCAL_PASSWORD=\S{12,}$`, string(text))
	require.Regexp(t, `(?m)^API_AUTH_SECRET=\S{12,}$`, string(text))
}

// TestSecondPlatform: a data directory belongs to one process at a time. The one that comes too late changes nothing.
func TestSecondPlatform(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, "LOCAL_PASSWORD=chosen by hand")
	require.Equal(t, "chosen by hand", p.Password)
	secrets, err := os.ReadFile(filepath.Join(p.dir, "secrets.env"))
	require.NoError(t, err)
	pid := strconv.Itoa(p.cmd.Process.Pid)
	refused(t, command(p.dir, []string{"LOCAL_PASSWORD=another"}), `.* is in use by process `+pid+`; stop it, or choose another`)
	after, err := os.ReadFile(filepath.Join(p.dir, "secrets.env"))
	require.NoError(t, err)
	require.Equal(t, string(secrets), string(after))
	alice := p.as(t, "alice")
	require.Equal(t, "succeeded", alice.ended(t, alice.send(t, alice.open(t), "hello")).Status)
}

// TestPortInUse: told at once, before anything is made.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	for _, variable := range []string{"PORT", "TLS_PORT"} {
		dir := filepath.Join(dataDir(t), "new")
		refused(t, command(dir, []string{variable + "=" + taken}), `port `+taken+` is in use; stop what uses it, or choose another one: `+variable+`=0 takes any free port$`)
		require.NoDirExists(t, dir)
	}
	refused(t, command(dataDir(t), []string{"PORT=70000"}), `.*70000`)
	refused(t, command(dataDir(t), []string{"PORT=many"}), `environment: .*`)
	refused(t, command(dataDir(t), []string{"MODEL=other"}), `MODEL=other is not a model; use offline or bedrock$`)
}

// TestDataDirCannotBeUsed: a path that is no folder, or below one that is none.
func TestDataDirCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(dataDir(t), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refused(t, command(file, nil), `the data directory cannot be (made|used): .*; choose another one with DATA_DIR$`)
	refused(t, command(filepath.Join(file, "below"), nil), `the data directory cannot be (made|used): .*; choose another one with DATA_DIR$`)
	if os.Geteuid() != 0 { // root may write anywhere
		closed := dataDir(t)
		require.NoError(t, os.Chmod(closed, 0o500))
		refused(t, command(closed, nil), `the data directory cannot be (made|used): .*; choose another one with DATA_DIR$`)
	}
}

// TestNoBinaries: a folder that does not hold the functions is refused before anything starts.
func TestNoBinaries(t *testing.T) {
	t.Parallel()
	cmd := command(dataDir(t), nil)
	cmd.Args = append(cmd.Args, "-functions", t.TempDir())
	refused(t, cmd, `the function list-agents has no program at .*/list-agents; build the functions for this machine, or name another folder$`)
}

// TestDamagedData: each damage is named, with what to do about it; and the platform that could not start has not made it worse.
func TestDamagedData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	once := func() {
		proc, err := launch(command(dir, nil, "--once"))
		require.NoError(t, err)
		require.Equal(t, 0, proc.exit(), proc.output)
	}
	once()
	for _, d := range []struct{ file, content, want string }{
		{"postgres/data/PG_VERSION", "", `PostgreSQL cannot use the data directory .*: PG_VERSION does not hold a version; .* remove .*postgres to start empty$`},
		{"postgres/data/PG_VERSION", "99\n", `PostgreSQL 99, which made .*, was not found on this machine; install that version, or remove .*postgres to start empty$`},
		{"postgres/data/global/pg_control", "", `PostgreSQL cannot use the data directory .*pg_control.*; .* remove .*postgres to start empty$`},
		{"postgres/data/global/pg_control", strings.Repeat("x", 8192), `PostgreSQL cannot use the data directory .*; .* remove .*postgres to start empty$`},
		{"secrets.env", "garbage\n", `.*secrets\.env: line 1 is not NAME=value; mend it, or remove the data directory to start anew$`},
		{"secrets.env", "# lost\n", `the database in .* was made with another superuser password; give that password, or remove the folder to start empty$`},
		{"tls/key.pem", "garbage\n", `the certificate in .*tls is damaged: .*; remove that folder to get a new one$`},
		{"identity/pool.json", "garbage\n", `identity pool: .*pool\.json is damaged: remove it to start with a new pool id$`},
		{"identity/signing-key.pem", "garbage\n", `identity pool: .*signing-key\.pem is not an RSA private key: remove it to make a new one`},
	} {
		name := filepath.Join(dir, filepath.FromSlash(d.file))
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, []byte(d.content), 0o600))
		refused(t, command(dir, nil, "--once"), d.want)
		require.NoError(t, os.WriteFile(name, whole, 0o600))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "tls", "ca.pem"))) // made anew
	once()
}

// TestNoPostgreSQL: no binaries on the machine and no npm to fetch them with.
func TestNoPostgreSQL(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	cmd := command(dataDir(t), []string{"PATH=" + none, "HOME=" + none, "XDG_CACHE_HOME=" + none}, "--once")
	if found := installed(t); len(found) > 0 {
		cmd = hidden(t, cmd, found)
		if cmd == nil {
			return
		}
	}
	refused(t, cmd, `PostgreSQL 15 or newer was not found on this machine and cannot be fetched: npm .*; install it \(.*\), or set DATABASE_URL$`)
}

// installed are the folders of PostgreSQL in the usual places, and of the platform's own copy.
func installed(t testing.TB) (found []string) {
	for _, pattern := range []string{"/usr/lib/postgresql", "/usr/pgsql-*", "/usr/libexec/postgresql*", "/usr/lib/postgresql*", "/usr/local/pgsql", "/var/cache/agentplatform"} {
		dirs, err := filepath.Glob(pattern)
		require.NoError(t, err)
		found = append(found, dirs...)
	}
	return found
}

// hidden is cmd where the given folders are empty: on Linux, in a mount namespace of its own. Where that is not allowed there is no way to
// hide what is installed, and TestDamagedData's version that nobody has must do.
func hidden(t testing.TB, cmd *exec.Cmd, folders []string) *exec.Cmd {
	args := []string{"--mount"}
	if os.Geteuid() != 0 {
		args = []string{"--mount", "--map-root-user"}
	}
	if err := exec.Command("unshare", append(args, "mount", "-t", "tmpfs", "none", os.TempDir())...).Run(); err != nil || runtime.GOOS != "linux" {
		t.Logf("PostgreSQL cannot be hidden here (unshare: %v)", err)
		return nil
	}
	script := ""
	for _, dir := range folders {
		script += "mount -t tmpfs none '" + dir + "' && "
	}
	wrapped := exec.Command("unshare", append(args, "sh", "-c", script+`PATH=/nowhere && exec "$0" --once`, cmd.Path)...)
	wrapped.Env = append(slices.Clone(cmd.Env), "PATH="+os.Getenv("PATH")) // the shell's, until then
	return wrapped
}
