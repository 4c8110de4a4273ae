package stepfunctions_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// event is one of a history, with the id of the one before it in its branch.
func event(id, previous int, kind string, details object) object {
	e := object{"id": id, "previousEventId": previous, "type": kind, "timestamp": 1790000000.5 + float64(id)}
	for name, value := range details {
		e[name] = value
	}
	return e
}

func entered(id, previous int, typ, state string) object {
	return event(id, previous, typ+"StateEntered", object{"stateEnteredEventDetails": object{"name": state, "input": "{}", "inputDetails": object{"truncated": false}}})
}

func exited(id, previous int, typ, state string) object {
	return event(id, previous, typ+"StateExited", object{"stateExitedEventDetails": object{"name": state, "output": "1", "outputDetails": object{"truncated": false}}})
}

func taskFailed(id, previous int, code string) object {
	return event(id, previous, "TaskFailed", object{"taskFailedEventDetails": object{"resourceType": "lambda", "resource": "invoke", "error": code, "cause": "why"}})
}

func executionFailed(id, previous int, code string) object {
	return event(id, previous, "ExecutionFailed", object{"executionFailedEventDetails": object{"error": code, "cause": "why"}})
}

// TestHistory holds steps against events whose previousEventId leads as AWS has it: in each branch by itself, past what Parallel and Map tell of their
// own ends, and from an iteration to the one before it of the same worker.
func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		events []object
		steps  []string // kind, state, Visit, error
	}{
		"an attempt after a failure": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Task", "A"), event(3, 2, "TaskScheduled", nil), event(4, 3, "TaskStarted", nil), taskFailed(5, 4, "Busy"),
				event(6, 5, "TaskScheduled", nil), event(7, 6, "TaskStarted", nil), event(8, 7, "TaskSucceeded", nil), exited(9, 8, "Task", "A"), event(10, 9, "ExecutionSucceeded", nil)},
			[]string{"entered A 1", "failed A 1 Busy", "retried A 1", "exited A 1"},
		},
		"functions of AWS Lambda": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Task", "A"), event(3, 2, "LambdaFunctionScheduled", nil), event(4, 3, "LambdaFunctionStarted", nil),
				event(5, 4, "LambdaFunctionTimedOut", object{"lambdaFunctionTimedOutEventDetails": object{"error": "States.Timeout"}}),
				event(6, 5, "LambdaFunctionScheduled", nil), event(7, 6, "LambdaFunctionFailed", object{"lambdaFunctionFailedEventDetails": object{"error": "E"}}), executionFailed(8, 7, "E")},
			[]string{"entered A 1", "failed A 1 States.Timeout", "retried A 1", "failed A 1 E"},
		},
		"branches side by side, and a state after them": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Parallel", "P"), event(3, 2, "ParallelStateStarted", nil), entered(4, 3, "Pass", "A"), entered(5, 3, "Task", "B"),
				exited(6, 4, "Pass", "A"), entered(7, 6, "Pass", "A2"), event(8, 5, "TaskScheduled", nil), taskFailed(9, 8, "E"), exited(10, 9, "Task", "B"), exited(11, 7, "Pass", "A2"),
				event(12, 11, "ParallelStateSucceeded", nil), exited(13, 11, "Parallel", "P"), entered(14, 13, "Succeed", "S"), exited(15, 14, "Succeed", "S")},
			[]string{"entered P 1", "entered A 2", "entered B 3", "exited A 2", "entered A2 5", "failed B 3 E", "exited B 3", "exited A2 5", "exited P 1", "entered S 10", "exited S 10"},
		},
		"a branch of a branch fails, and nothing catches it": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Parallel", "P"), event(3, 2, "ParallelStateStarted", nil), entered(4, 3, "Parallel", "Q"),
				event(5, 4, "ParallelStateStarted", nil), entered(6, 5, "Task", "A"), event(7, 6, "TaskScheduled", nil), taskFailed(8, 7, "E"), event(9, 8, "ParallelStateFailed", nil),
				event(10, 8, "ParallelStateFailed", nil), executionFailed(11, 8, "E")},
			[]string{"entered P 1", "entered Q 2", "entered A 3", "failed A 3 E", "failed Q 2 E", "failed P 1 E"},
		},
		"a Parallel is tried again": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Parallel", "P"), event(3, 2, "ParallelStateStarted", nil), entered(4, 3, "Fail", "F"),
				event(5, 4, "ParallelStateFailed", nil), event(6, 5, "ParallelStateStarted", nil), entered(7, 6, "Fail", "F"), event(8, 7, "ParallelStateFailed", nil), exited(9, 8, "Parallel", "P"),
				entered(10, 9, "Pass", "A")},
			[]string{"entered P 1", "entered F 2", "failed P 1", "retried P 1", "entered F 5", "failed P 1", "exited P 1", "entered A 8"},
		},
		"iterations of one worker": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Map", "M"), event(3, 2, "MapStateStarted", object{"mapStateStartedEventDetails": object{"length": 2}}),
				event(4, 3, "MapIterationStarted", object{"mapIterationStartedEventDetails": object{"name": "M", "index": 0}}), entered(5, 4, "Pass", "A"), exited(6, 5, "Pass", "A"),
				event(7, 6, "MapIterationSucceeded", object{"mapIterationSucceededEventDetails": object{"name": "M", "index": 0}}),
				event(8, 6, "MapIterationStarted", object{"mapIterationStartedEventDetails": object{"name": "M", "index": 1}}), entered(9, 8, "Pass", "A"), exited(10, 9, "Pass", "A"),
				event(11, 10, "MapStateSucceeded", nil), exited(12, 10, "Map", "M")},
			[]string{"entered M 1", "entered A 2", "exited A 2", "entered A 4", "exited A 4", "exited M 1"},
		},
		"an iteration fails": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Map", "M"), event(3, 2, "MapStateStarted", object{"mapStateStartedEventDetails": object{"length": 1}}),
				event(4, 3, "MapIterationStarted", object{"mapIterationStartedEventDetails": object{"name": "M", "index": 0}}), entered(5, 4, "Task", "A"),
				event(6, 5, "TaskScheduled", nil), taskFailed(7, 6, "E"), event(8, 7, "MapIterationFailed", object{"mapIterationFailedEventDetails": object{"name": "M", "index": 0}}),
				event(9, 7, "MapStateFailed", nil), executionFailed(10, 9, "E")},
			[]string{"entered M 1", "entered A 2", "failed A 2 E", "failed M 1 E"},
		},
		"what the language refuses in a branch": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Parallel", "P"), event(3, 2, "ParallelStateStarted", nil), entered(4, 3, "Pass", "A"), executionFailed(5, 4, "States.Runtime")},
			[]string{"entered P 1", "entered A 2", "failed A 2 States.Runtime"},
		},
		"an expression fails": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Pass", "A"), event(3, 2, "EvaluationFailed", object{"evaluationFailedEventDetails": object{"state": "A", "error": "States.QueryEvaluationError"}}),
				executionFailed(4, 3, "States.QueryEvaluationError")},
			[]string{"entered A 1", "failed A 1 States.QueryEvaluationError"},
		},
		"a run ends between states": { // by the number of its events
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Pass", "A"), exited(3, 2, "Pass", "A"), executionFailed(4, 3, "States.Runtime")},
			[]string{"entered A 1", "exited A 1"},
		},
		"a run is stopped": {
			[]object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Wait", "A"), event(3, 2, "WaitStateAborted", nil), event(4, 0, "ExecutionAborted", object{"executionAbortedEventDetails": object{"error": "E"}})},
			[]string{"entered A 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := engine(t, map[string][]object{"GetExecutionHistory": {{"events": c.events}}})
			steps, err := e.History(t.Context(), runs+"m:r", 0, 100)
			require.NoError(t, err)
			var told []string
			for i, s := range steps {
				require.Equal(t, i+1, s.Seq)
				require.Equal(t, 500*time.Millisecond, s.At.Sub(s.At.Truncate(time.Second)))
				line := fmt.Sprintf("%s %s %d", s.Kind, s.State, s.Visit)
				if s.Error != "" {
					line += " " + s.Error
				}
				told = append(told, line)
			}
			require.Equal(t, c.steps, told)
		})
	}
}

// TestHistoryPages: steps are read from the service's pages, which a state may be entered and exited on different ones of.
func TestHistoryPages(t *testing.T) {
	e, s := engine(t, map[string][]object{"GetExecutionHistory": {
		{"events": []object{event(1, 0, "ExecutionStarted", nil), entered(2, 0, "Task", "A"), event(3, 2, "TaskScheduled", nil)}, "nextToken": "one"},
		{"events": []object{taskFailed(4, 3, "E"), exited(5, 4, "Task", "A")}, "nextToken": "two"},
		{"events": []object{entered(6, 5, "Pass", "B"), exited(7, 6, "Pass", "B")}},
	}})
	steps, err := e.History(t.Context(), runs+"m:r", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []workflow.Step{
		{Seq: 2, Visit: 1, At: steps[0].At, Kind: workflow.StateFailed, State: "A", Type: "Task", Error: "E", Cause: "why"},
		{Seq: 3, Visit: 1, At: steps[1].At, Kind: workflow.StateExited, State: "A", Type: "Task", Output: []byte("1")},
	}, steps)
	require.Equal(t, []object{
		{"executionArn": runs + "m:r", "includeExecutionData": true, "maxResults": 200.0},
		{"executionArn": runs + "m:r", "includeExecutionData": true, "maxResults": 200.0, "nextToken": "one"},
	}, s.asked("GetExecutionHistory"), "and no more than it takes")
}
