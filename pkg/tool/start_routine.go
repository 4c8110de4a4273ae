package tool

import (
	"context"
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/invoke"
)

// StartRun is the function that starts runs of routines, for whoever may not speak to the workflow engine himself; RunOrder is what it is asked. Asking
// twice starts one run.
const StartRun = "start-run"

// RunOrder asks for a run: one that is written already, by its id, or one that a call of the tool start_routine asks for.
type RunOrder struct {
	TenantID string          `json:"tenantId"`
	RunID    string          `json:"runId,omitempty"`
	TurnID   string          `json:"turnId,omitempty"` // whose call it is
	CallID   string          `json:"callId,omitempty"`
	Routine  string          `json:"routine,omitempty"` // its name or id
	Input    json.RawMessage `json:"input,omitempty"`   // nil: an empty object
}

// RunStarted is what start-run answers.
type RunStarted struct {
	RunID        string  `json:"runId"`
	Status       string  `json:"status"`                 // starting: it will run within a minute
	ExecutionARN *string `json:"executionArn,omitempty"` // nil while it is starting
}

// StartRoutine starts a run of a routine of the tenant, and does not wait for its end. start is the function StartRun.
func StartRoutine(start invoke.Function) Tool {
	return Tool{
		Name: "start_routine",
		Description: "Starts a routine: steps that were laid down beforehand, which then go on by themselves. The answer is the run's id, not its result. " +
			"Only people can stop a run.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"routine":{"type":"string","minLength":1,"maxLength":200,"description":"Its name or id."},
			"input":{"type":"object","description":"What the routine begins with; {} without it."}},
			"required":["routine"],"additionalProperties":false}`),
		Idempotent: true, // the run has the call's id
		Run: func(ctx context.Context, c Call) (any, error) {
			var in struct {
				Routine string          `json:"routine"`
				Input   json.RawMessage `json:"input"`
			}
			if err := Decode(c.Input, &in); err != nil {
				return nil, err
			}
			started, err := invoke.Ask[RunStarted](ctx, start, RunOrder{TenantID: c.TenantID, TurnID: c.TurnID, CallID: c.ID, Routine: in.Routine, Input: in.Input})
			if err != nil {
				return nil, err
			}
			started.ExecutionARN = nil // nothing to a model
			return started, nil
		},
	}
}
