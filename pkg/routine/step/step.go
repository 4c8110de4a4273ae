// Package step does what the tasks of routines ask for: it begins a verb when the workflow engine asks, and answers the engine when that is done.
//
// The engine asks with a token (Begin), and each token is one step: a row of routine_steps, with a callback (package callback) by which the engine is
// told. What holds:
//
//   - What a step begins, a turn, a question to a person, a run, is written with the step, in one transaction, and once a token. Whatever is lost
//     behind that transaction is found: turns by the reaper, runs and callbacks by their sweeps, tools and mails by the sweep of Caller.
//   - A tool is called as in a turn of the step's agent: what it is granted, what its guardrail lets pass. A tool whose calls a person approves is
//     refused: a definition that wants a person asks one by wait_for_approval, and grants the agent the tool without.
//   - A mail is sent once at the most, and so is a call of a tool that is not idempotent. After a crash that hides the outcome, the step fails and
//     says so.
//   - A person decides once: the first decision counts, and nobody decides what nobody waits for.
//   - With the end of the run, its steps are over (trigger "closed"): what is not begun is not done, what an attempt finds out later is not written, and
//     turns that it asked for are cancelled.
package step

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Status is how far a step is.
type Status string

const (
	Waiting   Status = "waiting" // for a turn, a run or a person
	Queued    Status = "queued"  // to be done by Caller
	Running   Status = "running" // a tool is being called, or a mail sent
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cut       Status = "cut" // its task was over before: the run ended, or the task timed out
)

// What a step fails with, besides the types of package fault and callback.TurnFailed: what a definition may catch.
const (
	Denied           = "Denied"           // a person said no
	ApprovalRequired = "ApprovalRequired" // calls of the tool wait for a person in turns
	ToolDenied       = "ToolDenied"       // it is not granted, or a guardrail has blocked its input or result
	ToolFailed       = "ToolFailed"
	ToolTimeout      = "ToolTimeout"
	MailUnknown      = "MailUnknown" // the mail may have been sent
)

// ParentOfTurn is the run that a turn is a part of, as one of its steps; nil: it is of none.
func ParentOfTurn(ctx context.Context, q postgres.Querier, turnID string) (*string, error) {
	found, err := postgres.All(ctx, q, pgx.RowTo[string], `select run_id::text from routine_steps where turn_id = $1 order by id desc limit 1`, turnID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// asText is a JSON value as text; nil for none.
func asText(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	return new(string(raw))
}
