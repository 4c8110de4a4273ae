package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// sandboxed answers as a sandbox would; package sandbox has the real ones' contract.
type sandboxed struct {
	result sandbox.Result
	err    error
	ran    *sandbox.Script
}

func (s sandboxed) Run(_ context.Context, script sandbox.Script) (sandbox.Result, error) {
	*s.ran = script
	return s.result, s.err
}

func runCode(t *testing.T, r sandbox.Result, err error, input string) (sandbox.Script, string, error) {
	t.Helper()
	var ran sandbox.Script
	out, err := tool.RunCode(sandboxed{r, err, &ran}).Run(t.Context(), tool.Call{Input: json.RawMessage(input)})
	if err != nil {
		return ran, "", err
	}
	text, err := json.Marshal(out)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), 64<<10)
	return ran, string(text), nil
}

func TestRunCode(t *testing.T) {
	script, out, err := runCode(t, sandbox.Result{Status: sandbox.StatusOK, Value: json.RawMessage(`{"b":1,"a":[]}`), Stdout: "hi\n", DurationMs: 4}, nil,
		`{"code":"return input","input":{"b":1,"a":[]}}`)
	require.NoError(t, err)
	require.Equal(t, sandbox.Script{Language: "javascript", Code: "return input", Input: json.RawMessage(`{"b":1,"a":[]}`)}, script)
	require.Equal(t, `{"status":"ok","value":{"b":1,"a":[]},"stdout":"hi\n","durationMs":4}`, out)

	_, out, err = runCode(t, sandbox.Default.Result(sandbox.Outcome{Status: sandbox.StatusMemory}, "so far\n", 0), nil, `{"code":"x"}`)
	require.NoError(t, err)
	require.Equal(t, `{"status":"memory","stdout":"so far\n","error":"the script was stopped: it needs more than 128 MiB of memory","durationMs":0}`, out)

	_, _, err = runCode(t, sandbox.Result{}, sandbox.ErrBusy, `{"code":"x"}`)
	require.Contains(t, fault.From(err).Message, "busy")
	_, _, err = runCode(t, sandbox.Result{}, nil, `{"code":"x","language":"python"}`)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
}

// What the sandbox lets through may be six times as long in JSON.
func TestRunCodeFits(t *testing.T) {
	for name, r := range map[string]sandbox.Result{
		"stdout": {Status: sandbox.StatusOK, Stdout: strings.Repeat("\x01é<", 16<<10), Value: json.RawMessage(`1`)},
		"value":  {Status: sandbox.StatusOK, Stdout: "é", Value: json.RawMessage(`"` + strings.Repeat("<", 60<<10) + `"`)},
		"both":   {Status: sandbox.StatusOK, Stdout: strings.Repeat("\n", 60<<10), Value: json.RawMessage(`"` + strings.Repeat("<", 60<<10) + `"`)},
		"cut":    {Status: sandbox.StatusOutput, Stdout: strings.Repeat("\n", 64<<10), Error: "too much"},
	} {
		_, out, err := runCode(t, r, nil, `{"code":"x"}`)
		require.NoError(t, err, name)
		require.Contains(t, out, `"status":"output"`, name)
		require.Contains(t, out, "longer than 64 KiB as JSON", name)
		require.NotContains(t, out, `"value"`, name)
		require.Contains(t, out, `"stdout"`, name)
	}
}

func TestRunCodesSchema(t *testing.T) {
	code := tool.RunCode(sandboxed{})
	for input, ok := range map[string]bool{`{"code":"return 1"}`: true, `{"code":"1","input":null}`: true, `{"code":"1","input":[1]}`: true, `{"code":""}`: false, `{}`: false, `{"code":1}`: false,
		`{"code":"1","x":1}`: false, `{"code":"` + strings.Repeat("x", 64<<10+1) + `"}`: false} {
		err := code.Check(json.RawMessage(input))
		require.Equal(t, ok, err == nil, "%.40s: %v", input, err)
	}
	require.True(t, code.Idempotent)
	require.Greater(t, code.Timeout, sandbox.Default.Wall)
	require.LessOrEqual(t, code.Timeout, tool.MaxTimeout)
	require.True(t, code.Granted([]string{"run_code"}))
}
