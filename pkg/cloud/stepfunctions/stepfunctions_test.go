package stepfunctions_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const pass = `{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}`

var valid = []object{{"result": "OK", "diagnostics": []object{}, "truncated": false}}

func TestPut(t *testing.T) {
	e, s := engine(t, map[string][]object{"ValidateStateMachineDefinition": valid, "CreateStateMachine": {{"stateMachineArn": machines + "m", "creationDate": 1.5}}})
	require.NoError(t, e.Put(t.Context(), "m", pass))
	for _, group := range []string{"arn:aws-us-gov:logs:us-gov-west-1:123456789012:log-group:g", "arn:aws-us-gov:logs:us-gov-west-1:123456789012:log-group:g:*"} {
		e.LogGroupARN = group
		require.NoError(t, e.Put(t.Context(), "m", pass))
	}
	require.Equal(t, object{"definition": pass, "severity": "ERROR", "type": "STANDARD"}, s.asked("ValidateStateMachineDefinition")[0])
	logged := object{"level": "ERROR", // and no includeExecutionData: false
		"destinations": []any{object{"cloudWatchLogsLogGroup": object{"logGroupArn": "arn:aws-us-gov:logs:us-gov-west-1:123456789012:log-group:g:*"}}}}
	for i, logging := range []object{{"level": "OFF"}, logged, logged} {
		require.Equal(t, object{"name": "stage-m", "definition": pass, "roleArn": role, "type": "STANDARD", "loggingConfiguration": logging,
			"tracingConfiguration": object{"enabled": true}}, s.asked("CreateStateMachine")[i])
	}
}

// A service has another name in each partition, and texts of a definition are nobody's to change.
func TestPutNamesServicesOfThePartition(t *testing.T) {
	define := func(partition string) string {
		return `{"StartAt":"A","States":{"A":{"Type":"Task","Resource": "arn:` + partition + `:states:::lambda:invoke","Parameters":{"text":"arn:aws:states:::lambda:invoke"},"End":true}}}`
	}
	e, s := engine(t, map[string][]object{"ValidateStateMachineDefinition": valid, "CreateStateMachine": {{"stateMachineArn": machines + "m", "creationDate": 1}}})
	require.NoError(t, e.Put(t.Context(), "m", define("aws")))
	require.Equal(t, define("aws-us-gov"), s.asked("ValidateStateMachineDefinition")[0]["definition"])
	require.Equal(t, define("aws-us-gov"), s.asked("CreateStateMachine")[0]["definition"])
}

func TestPutRefusesADefinition(t *testing.T) {
	e, s := engine(t, map[string][]object{"ValidateStateMachineDefinition": {{"result": "FAIL", "truncated": false, "diagnostics": []object{
		{"severity": "ERROR", "code": "MISSING_TRANSITION_TARGET", "message": `Missing "Next" target: B`, "location": "/States/A/Next"},
		{"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": "no"},
	}}}})
	err := e.Put(t.Context(), "m", pass)
	require.ErrorIs(t, err, workflow.ErrDefinition)
	require.EqualError(t, err, `workflow: not a definition that can run; /States/A/Next: Missing "Next" target: B; no`)
	refused := new(workflow.DefinitionError)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, workflow.Problem{Code: "MISSING_TRANSITION_TARGET", Message: `Missing "Next" target: B`, Location: "/States/A/Next"}, refused.Problems[0])
	require.Empty(t, s.asked("CreateStateMachine"))

	e, _ = engine(t, map[string][]object{"ValidateStateMachineDefinition": valid, "CreateStateMachine": {refusal("InvalidDefinition")}})
	err = e.Put(t.Context(), "m", pass)
	require.ErrorIs(t, err, workflow.ErrDefinition)
	require.ErrorContains(t, err, "the service's words")
}

func TestPutAgain(t *testing.T) {
	put := func(definition, status string) error {
		e, s := engine(t, map[string][]object{"ValidateStateMachineDefinition": valid, "CreateStateMachine": {refusal("StateMachineAlreadyExists")},
			"DescribeStateMachine": {{"stateMachineArn": machines + "m", "name": "stage-m", "definition": definition, "roleArn": role, "type": "STANDARD", "status": status, "creationDate": 1}}})
		err := e.Put(t.Context(), "m", pass)
		require.Equal(t, machines+"m", s.asked("DescribeStateMachine")[0]["stateMachineArn"])
		return err
	}
	require.NoError(t, put(pass, "ACTIVE"))
	require.NoError(t, put(strings.ReplaceAll(pass, " ", "\n"), "ACTIVE"))
	err := put(strings.Replace(pass, "Pass", "Succeed", 1), "ACTIVE")
	require.ErrorIs(t, err, workflow.ErrMachineExists)
	require.ErrorContains(t, err, "machine m: ")
	require.ErrorIs(t, put(pass, "DELETING"), workflow.ErrMachineExists)
}

func TestStartAgain(t *testing.T) {
	start := func(described object) (string, error) {
		e, s := engine(t, map[string][]object{"StartExecution": {refusal("ExecutionAlreadyExists")}, "DescribeExecution": {described}})
		run, err := e.Start(t.Context(), "m", "r", json.RawMessage(`{"a": 1}`))
		require.Equal(t, object{"stateMachineArn": machines + "m", "name": "r", "input": `{"a":1}`}, s.asked("StartExecution")[0])
		require.Equal(t, runs+"m:r", s.asked("DescribeExecution")[0]["executionArn"])
		return run, err
	}
	over := object{"executionArn": runs + "m:r", "status": "SUCCEEDED", "startDate": 1, "stopDate": 2, "input": "{ \"a\": 1 }"}
	run, err := start(over)
	require.NoError(t, err)
	require.Equal(t, runs+"m:r", run)
	over["input"] = `{"a":2}`
	_, err = start(over)
	require.ErrorIs(t, err, workflow.ErrRunExists)
	_, err = start(refusal("ExecutionDoesNotExist")) // which is consistent only after a while
	require.ErrorIs(t, err, workflow.ErrThrottled)
	require.NotErrorIs(t, err, workflow.ErrRunExists)
	_, err = start(refusal("AccessDeniedException"))
	require.ErrorContains(t, err, "run r of machine m: ")
	require.ErrorContains(t, err, "AccessDeniedException")
}

// TestErrors holds what each refusal of the service means.
func TestErrors(t *testing.T) {
	ctx, data := t.Context(), json.RawMessage(`{}`)
	calls := map[string]func(e stepfunctions.Engine) error{
		"ValidateStateMachineDefinition": func(e stepfunctions.Engine) error { return e.Put(ctx, "m", pass) },
		"DeleteStateMachine":             func(e stepfunctions.Engine) error { return e.Delete(ctx, "m") },
		"StartExecution":                 func(e stepfunctions.Engine) error { _, err := e.Start(ctx, "m", "r", data); return err },
		"StopExecution":                  func(e stepfunctions.Engine) error { return e.Stop(ctx, runs+"m:r", "", "") },
		"DescribeExecution":              func(e stepfunctions.Engine) error { _, err := e.Describe(ctx, runs+"m:r"); return err },
		"GetExecutionHistory":            func(e stepfunctions.Engine) error { _, err := e.History(ctx, runs+"m:r", 0, 1); return err },
		"SendTaskSuccess":                func(e stepfunctions.Engine) error { return e.Succeed(ctx, "AAAAKgAAAAIAAA", data) },
		"SendTaskFailure":                func(e stepfunctions.Engine) error { return e.Fail(ctx, "AAAAKgAAAAIAAA", "E", "c") },
		"SendTaskHeartbeat":              func(e stepfunctions.Engine) error { return e.Heartbeat(ctx, "AAAAKgAAAAIAAA") },
	}
	answered := func(operation, code string) error {
		e, _ := engine(t, map[string][]object{operation: {refusal(code)}})
		err := calls[operation](e)
		require.ErrorContains(t, err, "workflow: ")
		require.ErrorContains(t, err, "the service's words")
		require.NotContains(t, err.Error(), "AAAAKg")
		return err
	}
	for operation := range calls {
		require.ErrorIs(t, answered(operation, "ThrottlingException"), workflow.ErrThrottled, operation)
		err := answered(operation, "AccessDeniedException")
		for _, word := range []error{workflow.ErrThrottled, workflow.ErrNoMachine, workflow.ErrNoRun, workflow.ErrNoTask, workflow.ErrTaskOver, workflow.ErrDefinition} {
			require.NotErrorIs(t, err, word, operation)
		}
	}
	for _, means := range []struct {
		operation, code string
		word            error
	}{
		{"StartExecution", "StateMachineDoesNotExist", workflow.ErrNoMachine},
		{"StartExecution", "StateMachineDeleting", workflow.ErrNoMachine},
		{"StartExecution", "ExecutionLimitExceeded", workflow.ErrThrottled},
		{"DeleteStateMachine", "ConflictException", workflow.ErrThrottled},
		{"StopExecution", "ExecutionDoesNotExist", workflow.ErrNoRun},
		{"DescribeExecution", "ExecutionDoesNotExist", workflow.ErrNoRun},
		{"GetExecutionHistory", "ExecutionDoesNotExist", workflow.ErrNoRun},
		{"SendTaskSuccess", "InvalidToken", workflow.ErrNoTask},
		{"SendTaskFailure", "TaskDoesNotExist", workflow.ErrNoTask},
		{"SendTaskSuccess", "TaskTimedOut", workflow.ErrTaskOver},
		{"SendTaskFailure", "TaskTimedOut", workflow.ErrTaskOver},
		{"SendTaskHeartbeat", "TaskTimedOut", workflow.ErrTaskOver},
	} {
		require.ErrorIs(t, answered(means.operation, means.code), means.word, "%s %s", means.operation, means.code)
	}
}

func TestReasonsTravel(t *testing.T) {
	e, s := engine(t, map[string][]object{"StopExecution": {{"stopDate": 1}}, "SendTaskFailure": {{}}})
	require.NoError(t, e.Stop(t.Context(), runs+"m:r", "Enough", "by hand"))
	require.NoError(t, e.Stop(t.Context(), runs+"m:r", "", ""))
	require.Equal(t, []object{{"executionArn": runs + "m:r", "error": "Enough", "cause": "by hand"}, {"executionArn": runs + "m:r", "error": "", "cause": ""}}, s.asked("StopExecution"))
	require.NoError(t, e.Fail(t.Context(), "t", strings.Repeat("é", 200), strings.Repeat("é", workflow.MaxCause)+"\xff"))
	require.Equal(t, []object{{"taskToken": "t", "error": strings.Repeat("é", workflow.MaxCode/2), "cause": strings.Repeat("é", workflow.MaxCause/2)}}, s.asked("SendTaskFailure"))
}

func TestDescribe(t *testing.T) {
	describe := func(status string, more object) workflow.Run {
		answer := object{"executionArn": runs + "m:r", "stateMachineArn": machines + "m", "name": "r", "status": status, "startDate": 1790000000.25, "input": `"in"`,
			"inputDetails": object{"included": true}, "redriveCount": 0, "redriveStatus": "REDRIVABLE"}
		for name, value := range more {
			answer[name] = value
		}
		e, _ := engine(t, map[string][]object{"DescribeExecution": {answer}})
		r, err := e.Describe(t.Context(), runs+"m:r")
		require.NoError(t, err)
		require.Equal(t, runs+"m:r", r.ID)
		require.Equal(t, `"in"`, string(r.Input))
		require.True(t, r.Started.Equal(time.Unix(1790000000, 250e6)))
		return r
	}
	require.Equal(t, `"out"`, string(describe("SUCCEEDED", object{"stopDate": 1790000001, "output": `"out"`}).Output))
	r := describe("ABORTED", object{"stopDate": 1790000001, "error": "Enough", "cause": "by hand"})
	require.Equal(t, []string{"ABORTED", "Enough", "by hand"}, []string{string(r.Status), r.Error, r.Cause})
	require.True(t, r.Ended.Equal(time.Unix(1790000001, 0)))
	r = describe("TIMED_OUT", object{"stopDate": 1790000001})
	require.Equal(t, []any{workflow.TimedOut, "", "", json.RawMessage(nil)}, []any{r.Status, r.Error, r.Cause, r.Output})
	require.Equal(t, workflow.Running, describe("PENDING_REDRIVE", nil).Status)
	require.True(t, describe("RUNNING", nil).Ended.IsZero())
}

func TestARoleThatIsNone(t *testing.T) {
	e, s := engine(t, nil)
	e.RoleARN = "role"
	require.ErrorContains(t, e.Put(t.Context(), "m", pass), `role "role"`)
	_, err := e.Describe(t.Context(), runs+"m:r")
	require.ErrorContains(t, err, `role "role"`)
	require.Empty(t, s.calls)
}

func TestCallersTime(t *testing.T) {
	e, _ := engine(t, nil)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := e.Describe(ctx, runs+"m:r")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
