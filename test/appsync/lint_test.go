package appsync_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/npm"
)

// codeLimit is AppSync's, in bytes of a resolver's code.
const codeLimit = 32 << 10

// codes are the resolvers: as they stand here and as Terraform deploys them.
func codes(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"resolver.js": read(t, "resolver.js"), "publish.js": read(t, "publish.js"), "deployed.js": deployed(t)}
}

// workshop is a folder with these files, the linter's and the compiler's settings, and their packages.
func workshop(t *testing.T, files map[string]string) string {
	t.Helper()
	npm.Install(t, here)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(here, "node_modules"), filepath.Join(dir, "node_modules")))
	all := maps.Clone(files)
	for _, name := range []string{"eslint.config.mjs", "tsconfig.json", "package.json"} {
		text, err := os.ReadFile(filepath.Join(here, name))
		require.NoError(t, err)
		all[name] = string(text)
	}
	for name, text := range all {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// lint runs AWS's rules; it gives the broken rules of each file.
func lint(t *testing.T, files map[string]string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("node_modules", "eslint", "bin", "eslint.js"), "--format", "json", "*.js")
	cmd.Dir = workshop(t, files)
	output, err := cmd.Output()
	var results []struct {
		FilePath string
		Messages []struct {
			RuleID  string `json:"ruleId"`
			Message string
		}
	}
	require.NoError(t, json.Unmarshal(output, &results), "%s %v", output, err)
	require.Len(t, results, len(files))
	broken := map[string][]string{}
	for _, r := range results {
		for _, m := range r.Messages {
			rule, known := strings.CutPrefix(m.RuleID, "@aws-appsync/")
			require.True(t, known, "%s: %s %s", r.FilePath, m.RuleID, m.Message)
			broken[filepath.Base(r.FilePath)] = append(broken[filepath.Base(r.FilePath)], rule)
		}
	}
	return broken
}

// TestLint: AWS's linter finds nothing in the resolvers, and something of each of its kinds in testdata/bad.js. AppSync's limit is kept.
func TestLint(t *testing.T) {
	t.Parallel()
	files := codes(t)
	for name, text := range files {
		require.LessOrEqual(t, len(text), codeLimit, name)
	}
	bad, err := os.ReadFile(filepath.Join(here, "testdata", "bad.js"))
	require.NoError(t, err)
	files["bad.js"] = string(bad)
	broken := lint(t, files)
	require.Equal(t, []string{"bad.js"}, slices.Collect(maps.Keys(broken)), "%v", broken)
	require.Subset(t, broken["bad.js"], []string{"no-async", "no-await", "no-try", "no-for", "no-while", "no-continue", "no-classes", "no-regex", "no-this", "no-recursion",
		"no-disallowed-unary-operators", "no-disallowed-binary-operators", "no-disallowed-methods", "no-function-passing", "no-function-return", "no-in-operator", "no-disallowed-re-assignment"})
}

// TestTypes: the resolvers fit the runtime's own types, and a wrong one does not.
func TestTypes(t *testing.T) {
	t.Parallel()
	// A resolver's context has a user; a publisher's nobody. JavaScript names its types in comments, which these files spare their readers.
	typed := func(text, identity, request string) string {
		context := "/** @param {import('@aws-appsync/utils').Context & {identity: " + identity + "}} ctx"
		text = strings.Replace(text, "export function request(", context+" @returns {"+request+"} */\nexport function request(", 1)
		return strings.Replace(text, "export function response(", context+" */\nexport function response(", 1)
	}
	const user, lambda = "import('@aws-appsync/utils').AppSyncIdentityCognito", "import('@aws-appsync/utils').LambdaRequest"
	files := map[string]string{}
	for name, text := range codes(t) {
		if name == "publish.js" {
			files[name] = typed(text, "import('@aws-appsync/utils').AppSyncIdentityIAM", "import('@aws-appsync/utils').NONERequest")
		} else {
			files[name] = typed(text, user, lambda)
		}
	}
	files["wrong.js"] = typed(strings.NewReplacer("'BatchInvoke'", "'Batch'", "ctx.info.fieldName", "ctx.info.field", "util.error(answer", "util.fail(answer").Replace(read(t, "resolver.js")), user, lambda)
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "--project", ".", "--pretty", "false")
	cmd.Dir = workshop(t, files)
	said, _ := cmd.Output() // it ends with 2 when it has something to say
	for line := range strings.Lines(string(said)) {
		require.True(t, strings.HasPrefix(line, "wrong.js(") || strings.HasPrefix(line, " "), line)
	}
	for _, part := range []string{`"Batch"`, `'field'`, `'fail'`} {
		require.Contains(t, string(said), part)
	}
}
