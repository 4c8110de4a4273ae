package routine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

var target = routine.Target{TenantID: "t", RoutineID: "r", Version: 3, Function: "stage-begin-step"}

const unreached = `{"ErrorEquals": ["Lambda.ClientExecutionTimeoutException", "Lambda.ServiceException", "Lambda.AWSLambdaException", "Lambda.SdkClientException",
	"Lambda.TooManyRequestsException"], "IntervalSeconds": 2, "MaxAttempts": 6, "BackoffRate": 2, "MaxDelaySeconds": 60, "JitterStrategy": "FULL"}`

// called is what a task of that verb and state becomes.
func called(verb, state, input, more string) string {
	return `{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "stage-begin-step", "Payload": {
		"tenantId": "t", "routineId": "r", "version": 3, "verb": "` + verb + `", "state": "` + state + `", "runId.$": "$$.Execution.Name",
		"entered.$": "$$.State.EnteredTime", "attempt.$": "$$.State.RetryCount", "token.$": "$$.Task.Token", ` + input + `}}, ` + more + `}`
}

func TestEveryVerbIsCompiled(t *testing.T) {
	for name, c := range map[string]struct{ author, compiled string }{
		"run_turn":          {`{"Type": "Task", "Resource": "platform:run_turn", "Parameters": {"prompt.$": "$.p", "n": 1.0}, "End": true}`, called("run_turn", "A", `"input": {"prompt.$": "$.p", "n": 1.0}`, `"Retry": [`+unreached+`], "TimeoutSeconds": 604800, "HeartbeatSeconds": 600, "End": true`)},
		"call_tool":         {`{"Type": "Task", "Resource": "platform:call_tool", "End": true}`, called("call_tool", "A", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSeconds": 604800, "HeartbeatSeconds": 600, "End": true`)},
		"wait_for_approval": {`{"Type": "Task", "Resource": "platform:wait_for_approval", "Parameters": {}, "End": true}`, called("wait_for_approval", "A", `"input": {}`, `"Retry": [`+unreached+`], "TimeoutSeconds": 604800, "End": true`)},
		"send_mail": {`{"Type": "Task", "Resource": "platform:send_mail", "Comment": "c", "InputPath": "$.a", "ResultSelector": {"x.$": "$.y"}, "ResultPath": "$.b", "OutputPath": "$.c",
				"Retry": [{"ErrorEquals": ["States.ALL"]}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "A"}], "End": true}`,
			called("send_mail", "A", `"input.$": "$"`, `"Comment": "c", "InputPath": "$.a", "ResultSelector": {"x.$": "$.y"}, "ResultPath": "$.b", "OutputPath": "$.c",
				"Retry": [`+unreached+`, {"ErrorEquals": ["States.ALL"]}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "A"}], "TimeoutSeconds": 604800, "HeartbeatSeconds": 600, "End": true`)},
		"start_routine":    {`{"Type": "Task", "Resource": "platform:start_routine", "TimeoutSeconds": 86400, "HeartbeatSeconds": 900, "End": true}`, called("start_routine", "A", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSeconds": 86400, "HeartbeatSeconds": 900, "End": true`)},
		"a short task":     {`{"Type": "Task", "Resource": "platform:run_turn", "TimeoutSeconds": 600, "End": true}`, called("run_turn", "A", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSeconds": 600, "End": true`)},
		"a long heartbeat": {`{"Type": "Task", "Resource": "platform:run_turn", "HeartbeatSeconds": 700000, "End": true}`, called("run_turn", "A", `"input.$": "$"`, `"Retry": [`+unreached+`], "HeartbeatSeconds": 700000, "End": true`)},
		"made times":       {`{"Type": "Task", "Resource": "platform:run_turn", "TimeoutSecondsPath": "$.t", "HeartbeatSecondsPath": "$.h", "End": true}`, called("run_turn", "A", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSecondsPath": "$.t", "HeartbeatSecondsPath": "$.h", "End": true`)},
		"no task":          {`{"Type": "Pass", "Result": {"Resource": "x", "States": {"B": {"Type": "Task"}}}, "End": true}`, `{"Type": "Pass", "Result": {"Resource": "x", "States": {"B": {"Type": "Task"}}}, "End": true}`},
		"a branch": {`{"Type": "Parallel", "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Task", "Resource": "platform:run_turn", "End": true}}}], "End": true}`,
			`{"Type": "Parallel", "Branches": [{"StartAt": "B", "States": {"B": ` + called("run_turn", "B", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSeconds": 604800, "HeartbeatSeconds": 600, "End": true`) + `}}], "End": true}`},
		"an item": {`{"Type": "Map", "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Task", "Resource": "platform:run_turn", "End": true}}}, "End": true}`,
			`{"Type": "Map", "ItemProcessor": {"StartAt": "B", "States": {"B": ` + called("run_turn", "B", `"input.$": "$"`, `"Retry": [`+unreached+`], "TimeoutSeconds": 604800, "HeartbeatSeconds": 600, "End": true`) + `}}, "End": true}`},
	} {
		got, err := routine.Compile(machine("A", `"A": `+c.author), target)
		require.NoError(t, err, name)
		require.JSONEq(t, machine("A", `"A": `+c.compiled), got, name)
		require.NotContains(t, got, ": ", "no white space")
		if name != "no task" && name != "send_mail" {
			_, err = asl.Parse(got, asl.Dialect{})
			require.NoError(t, err, name)
		}
	}
	got, err := routine.Compile(machine("A", `"A": {"Type": "Pass", "Result": 12345678901234567890.10, "End": true}`), target)
	require.NoError(t, err)
	require.Contains(t, got, `12345678901234567890.10`, "numbers keep their text")
}

// What would be something else to the engine than it was to whoever checked it, is not compiled.
func TestCompileTrustsNobody(t *testing.T) {
	for name, c := range map[string]struct{ definition, location string }{
		"a function":       {machine("A", `"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": true}`), "/States/A/Resource"},
		"no resource":      {machine("A", `"A": {"Type": "Task", "End": true}`), "/States/A/Resource"},
		"other rights":     {machine("A", `"A": {"Type": "Task", "Resource": "platform:run_turn", "Credentials": {}, "End": true}`), "/States/A/Credentials"},
		"in a branch":      {machine("A", `"A": {"Type": "Parallel", "Branches": [{"States": {"B": {"Type": "Task", "Resource": "x"}}}]}`), "/States/A/Branches/0/States/B/Resource"},
		"a branch is none": {machine("A", `"A": {"Type": "Parallel", "Branches": [1]}`), "/States/A/Branches/0"},
		"of an item":       {machine("A", `"A": {"Type": "Map", "Iterator": {"States": {"B": {"Type": "Task", "Resource": "x"}}}}`), "/States/A/Iterator/States/B/Resource"},
		"no states":        {`{}`, ""},
		"a state is none":  {machine("A", `"A": 1`), "/States/A"},
	} {
		_, err := routine.Compile(c.definition, target)
		bad := new(workflow.DefinitionError)
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, c.location, bad.Problems[0].Location, name)
	}
	// The second of two members of a name is what counts, to whoever checks it, too.
	got, err := routine.Compile(machine("A", `"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Resource": "platform:run_turn", "End": true}`), target)
	if err == nil {
		require.NotContains(t, got, `lambda:invoke"`)
		require.Equal(t, 1, strings.Count(got, `"Resource"`))
	}
	_, err = routine.Compile(`{`, target)
	require.Error(t, err)
}

func TestMachineNames(t *testing.T) {
	name := routine.MachineName(ident.New(), 999_999_999)
	require.NoError(t, workflow.CheckMachine(name))
	require.True(t, strings.HasPrefix(name, routine.MachinePrefix))
}

func TestSpoken(t *testing.T) {
	for cause, want := range map[string]string{`{"errorMessage":"agent not found","errorType":"NotFound"}`: "agent not found", `{"errorMessage":""}`: "", `{"a":1}`: `{"a":1}`, "no": "no", "{": "{", "": ""} {
		require.Equal(t, want, routine.Spoken("NotFound", cause))
	}
	for _, code := range []string{"Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError"} {
		require.NotContains(t, routine.Spoken(code, `The function arn:aws:lambda:us-east-1:123456789012:function:begin-step could not be run`), "arn:")
	}
	require.Equal(t, "no path", routine.Spoken("States.Runtime", "no path"))
}
