package layout_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// machine is what a workflow's definition says of its states.
type machine struct {
	StartAt string
	States  map[string]struct {
		Type           string
		Resource       string
		Parameters     struct{ FunctionName string }
		TimeoutSeconds manifest.Seconds
		Next, Default  string
		Catch, Choices []struct{ Next string }
		Retry          []struct{ ErrorEquals []string }
	}
}

// workflows are the definitions by the workflow's name: auto_thread.asl.json is auto-thread.
func workflows(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(schema.Workflows, "workflow/*")
	require.NoError(t, err)
	found := map[string]string{}
	for _, name := range files {
		text, err := schema.Workflows.ReadFile(name)
		require.NoError(t, err)
		base, isASL := strings.CutSuffix(path.Base(name), ".asl.json")
		require.True(t, isASL, "%s: a workflow is <name>.asl.json", name)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, base, "%s: a file's name is snake_case", name)
		found[strings.ReplaceAll(base, "_", "-")] = string(text)
	}
	require.NotEmpty(t, found)
	for _, name := range paths(t) {
		assert.True(t, !strings.HasSuffix(name, ".asl.json") || path.Dir(name) == "schema/workflow", "%s: workflows are in schema/workflow", name)
	}
	return found
}

// routine is what the rows of tenants' own state machines are of, which have no file here: a tenant writes the definition.
const routine = "routine"

// tokenTask is the resource of a task that hands out a token and waits until somebody answers it; its function is a parameter.
const tokenTask = "arn:aws:states:::lambda:invoke.waitForTaskToken"

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// A definition names functions by placeholders, ${open-auto-thread}, and each function that a state machine calls says so in its row.
func TestAWorkflowCallsTheRowsThatNameIt(t *testing.T) {
	named := map[string][]string{} // workflow → functions, by rows
	for _, row := range rows(t).Rows {
		for _, workflow := range row.Triggers("state") {
			named[workflow] = append(named[workflow], row.Name)
		}
	}
	all := workflows(t)
	require.NotContains(t, all, routine)
	delete(named, routine)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(named)), "files of schema/workflow against `state` triggers in routes.json")
	for name, text := range all {
		called := map[string]bool{}
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			called[m[1]] = true
		}
		assert.ElementsMatch(t, named[name], slices.Collect(maps.Keys(called)), "%s: rows with the trigger `state %s` against its placeholders", name, name)
	}
}

// died is what Lambda says of a call of which the function itself has said nothing: it was not made, or the function ran out of time or memory.
var died = []string{"Lambda.ClientExecutionTimeoutException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
	"Lambda.TooManyRequestsException", "Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError"}

// A task calls a function and nothing else, tries again what died, and waits longer than the function may run: so a function's own end is told before the state's.
// Every state is reached.
func TestAWorkflowWaitsForItsFunctions(t *testing.T) {
	all := rows(t)
	for name, text := range workflows(t) {
		var m machine
		require.NoError(t, json.Unmarshal([]byte(text), &m), name)
		require.Contains(t, m.States, m.StartAt, name)
		reached := map[string]bool{m.StartAt: true}
		for state, s := range m.States {
			for _, next := range append(append(s.Catch, s.Choices...), struct{ Next string }{s.Next}, struct{ Next string }{s.Default}) {
				assert.True(t, next.Next == "" || m.States[next.Next].Type != "", "%s: %s leads to %s, which is no state", name, state, next.Next)
				reached[next.Next] = true
			}
			if s.Type != "Task" {
				assert.NotContains(t, s.Resource, "$", "%s: %s", name, state)
				continue
			}
			calls := s.Resource
			if calls == tokenTask {
				calls = s.Parameters.FunctionName
			}
			var again []string
			for _, r := range s.Retry {
				again = append(again, r.ErrorEquals...)
			}
			assert.Subset(t, again, died, "%s: what %s tries again", name, state)
			function := placeholder.FindStringSubmatch(calls)
			if assert.NotNil(t, function, "%s: %s calls %q, which is no function of the platform", name, state, calls) && assert.Equal(t, function[0], calls, name) {
				row, _ := all.Row(function[1])
				assert.Greater(t, s.TimeoutSeconds, row.Timeout, "%s: TimeoutSeconds of %s against the timeout of %s", name, state, row.Name)
			}
		}
		for state := range m.States {
			assert.True(t, reached[state], "%s: nothing leads to %s", name, state)
		}
	}
}
