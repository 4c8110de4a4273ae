package workflow_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/npm"
)

// Every definition is in the Amazon States Language, by the judgement of asl-validator; and the judge knows what is not.
func TestDefinitions(t *testing.T) {
	npm.Install(t, ".")
	for name := range definitions(t) {
		text := deployed(t, name, "")
		output, err := validate(t, text)
		require.NoError(t, err, "%s: %s", name, output)
		for what, broken := range map[string]string{
			"a state that is not there": strings.Replace(text, `"StartAt": "`, `"StartAt": "No`, 1),
			"a field that is not there": strings.ReplaceAll(text, `"ResultPath"`, `"ResultsPath"`),
			"a path that is none":       strings.ReplaceAll(text, `"$.failure"`, `"$[failure"`),
			"a state without a type":    strings.Replace(text, `"Type": "Task",`, ``, 1),
		} {
			output, err := validate(t, broken)
			require.Error(t, err, "%s with %s: %s", name, what, output)
		}
	}
}

func validate(t testing.TB, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "definition.asl.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	output, err := exec.CommandContext(t.Context(), "node", filepath.Join("node_modules", "asl-validator", "dist", "bin", "asl-validator.js"), "--json-path", file).CombinedOutput()
	return string(output), err
}
