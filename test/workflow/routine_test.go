package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// brief is a routine as a tenant writes it: side by side, for each item, with a person's approval.
const brief = `{
  "StartAt": "Research",
  "States": {
    "Research": {"Type": "Parallel", "ResultPath": "$.found", "Next": "Approval", "Branches": [
      {"StartAt": "Ask", "States": {"Ask": {"Type": "Task", "Resource": "platform:run_turn", "Parameters": {"agentId": "a", "prompt.$": "States.Format('Look into {}.', $.topic)"}, "ResultSelector": {"said.$": "$.input.prompt"}, "End": true}}},
      {"StartAt": "Each", "States": {"Each": {"Type": "Map", "ItemsPath": "$.sources", "MaxConcurrency": 2, "End": true, "ItemProcessor": {"StartAt": "Read", "States": {
        "Read": {"Type": "Task", "Resource": "platform:call_tool", "Parameters": {"agentId": "a", "tool": "fetch", "input": {"url.$": "$"}}, "OutputPath": "$.input.input.url", "End": true}}}}}}]},
    "Approval": {"Type": "Task", "Resource": "platform:wait_for_approval", "Parameters": {"prompt": "Send it?", "details": {"deny.$": "$.deny"}}, "ResultPath": "$.approval", "TimeoutSeconds": 86400, "Next": "Send",
      "Catch": [{"ErrorEquals": ["Denied"], "ResultPath": "$.why", "Next": "Told"}]},
    "Send": {"Type": "Task", "Resource": "platform:send_mail", "ResultSelector": {"verb.$": "$.verb", "attempt.$": "$.attempt", "whole.$": "$.input.topic"}, "ResultPath": "$.sent", "Next": "Done"},
    "Done": {"Type": "Pass", "Parameters": {"found.$": "$.found", "approval.$": "$.approval.verb", "sent.$": "$.sent"}, "End": true},
    "Told": {"Type": "Pass", "Parameters": {"why.$": "$.why"}, "End": true}
  }
}`

// compiled is a version of that routine, as the state machine that the cloud runs: an example like those of the corpus.
func compiled(t testing.TB) *example {
	t.Helper()
	target := routine.Target{TenantID: ident.New(), RoutineID: ident.New(), Version: 1, Function: prefix + "begin-step"}
	definition, err := routine.Compile(brief, target)
	require.NoError(t, err)
	return &example{path: "routine", machine: target.Machine(), definition: definition, Runs: []run{
		{Input: json.RawMessage(`{"topic": "owls", "sources": ["x", "y", "z"], "deny": false}`), Status: workflow.Succeeded,
			Output: json.RawMessage(`{"found": [{"said": "Look into owls."}, ["x", "y", "z"]], "approval": "wait_for_approval", "sent": {"verb": "send_mail", "attempt": 0, "whole": "owls"}}`)},
		{Input: json.RawMessage(`{"topic": "owls", "sources": [], "deny": true}`), Status: workflow.Succeeded,
			Output: json.RawMessage(`{"why": {"Error": "Denied", "Cause": "by Ada"}}`)},
	}}
}
