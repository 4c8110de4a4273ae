package step

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Begun is what Begin wrote, and what there is to do once that is committed. All of it may be done twice.
type Begun struct {
	StepID  string
	TurnID  string          // to dispatch; "": none
	Work    bool            // for Caller to do
	RunID   string          // to launch; "": none
	DueID   string          // a callback that the engine can be told of; "": none
	Notices []notify.Notice // to deliver
}

// MaxOpen is how many steps of a tenant may go on at a time; a few more, where several are begun at the same moment.
const MaxOpen = 1000

// grace is how long a queued step waits for whoever began it to have it done, before the sweep does.
const grace = 10 * time.Second

// Begin does what a task asks for, as far as that is done by writing it down. Asked again with the same token, also at once, it answers what it has begun.
// What cannot be done is the error, a fault for the definition to catch by its type, and nothing is written.
func Begin(ctx context.Context, db *postgres.DB, c routine.Call) (begun Begun, err error) {
	if !ident.Valid(c.TenantID) || !ident.Valid(c.RoutineID) || !ident.Valid(c.RunID) || workflow.CheckToken(c.Token) != nil || c.State == "" {
		return Begun{}, fault.Invalid("the call names no task of a run")
	}
	if _, known := routine.ParseResource(routine.Scheme + string(c.Verb)); !known {
		return Begun{}, fault.Invalid("%s%s is no verb", routine.Scheme, c.Verb)
	}
	if err := routine.CheckInput(c.Verb, c.Input); err != nil {
		return Begun{}, err
	}
	err = db.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error {
		begun, err = begin(ctx, tx, c)
		return err
	})
	return begun, err
}

func begin(ctx context.Context, tx pgx.Tx, c routine.Call) (Begun, error) {
	// Until tx ends, so does not the run. Machine and run are of one version: nobody asks for a run that is not his.
	var over bool
	err := tx.QueryRow(ctx, `select finished_at is not null from routine_runs where id = $1 and routine_id = $2 and version = $3 for share`, c.RunID, c.RoutineID, c.Version).Scan(&over)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Begun{}, fault.Missing("routine run")
	case err != nil:
		return Begun{}, err
	case over:
		return Begun{}, fault.Invalid("the run is over")
	}
	hash := sha256.Sum256([]byte(c.Token))
	n := newStep{Call: c, id: ident.New()}
	status := Waiting
	if c.Verb == routine.CallTool || c.Verb == routine.SendMail {
		status = Queued
	}
	tag, err := tx.Exec(ctx, `insert into routine_steps (tenant_id, id, run_id, state, entered_at, attempt, verb, token_hash, status, input, lease_until)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, case when $12 then clock_timestamp() + $11::interval end) on conflict (tenant_id, token_hash) do nothing`,
		c.TenantID, n.id, c.RunID, c.State, c.Entered, c.Attempt, c.Verb, hash[:], status, c.Input, grace, status == Queued)
	if err != nil {
		return Begun{}, err
	}
	if tag.RowsAffected() == 0 {
		return again(ctx, tx, hash[:])
	}
	var open int
	if err := tx.QueryRow(ctx, `select count(*) from (select from routine_steps where status in ('waiting', 'queued', 'running') limit $1) o`, MaxOpen+1).Scan(&open); err != nil {
		return Begun{}, err
	}
	if open > MaxOpen {
		return Begun{}, fault.New(fault.RateLimitExceeded, "%d tasks of routines go on, and no more may at a time", MaxOpen)
	}
	return n.begin(ctx, tx)
}

// again is what an earlier call with the token has begun, as far as it is not over.
func again(ctx context.Context, tx pgx.Tx, hash []byte) (b Begun, err error) {
	var status Status
	var turnID, runID *string
	err = tx.QueryRow(ctx, `select id, status, turn_id, child_run_id from routine_steps where token_hash = $1`, hash).Scan(&b.StepID, &status, &turnID, &runID)
	if err != nil || status != Waiting && status != Queued {
		return b, err
	}
	b.Work = status == Queued
	if turnID != nil {
		b.TurnID = *turnID
	}
	if runID != nil {
		b.RunID = *runID
	}
	return b, nil
}

// newStep is a step that was just written.
type newStep struct {
	routine.Call
	id string
}

func (n newStep) begin(ctx context.Context, tx pgx.Tx) (Begun, error) {
	switch n.Verb {
	case routine.RunTurn:
		return n.runTurn(ctx, tx)
	case routine.WaitForApproval:
		return n.ask(ctx, tx)
	case routine.StartRoutine:
		return n.startRoutine(ctx, tx)
	case routine.CallTool:
		return n.queueTool(ctx, tx)
	default: // send_mail: CheckInput knows no other
		_, err := n.wait(ctx, tx, "")
		return Begun{StepID: n.id, Work: true}, err
	}
}

// wait writes the callback. While the step goes on, the engine is told so, of a question to a person less often, and the callback goes when the engine
// does not wait any more.
func (n newStep) wait(ctx context.Context, tx pgx.Tx, turnID string) (callback.Added, error) {
	added, err := callback.Add(ctx, tx, callback.Callback{TenantID: n.TenantID, Token: n.Token, TurnID: turnID, Heartbeat: n.Verb.Beats()})
	if err != nil {
		return added, err
	}
	_, err = tx.Exec(ctx, `update routine_steps set callback_id = $2 where id = $1`, n.id, added.ID)
	return added, err
}

// queueTool has a tool called, of an agent that takes turns.
func (n newStep) queueTool(ctx context.Context, tx pgx.Tx) (Begun, error) {
	var in struct {
		AgentID string `json:"agentId"`
	}
	if err := json.Unmarshal(n.Input, &in); err != nil {
		return Begun{}, err
	}
	if _, err := takesTurns(ctx, tx, in.AgentID); err != nil {
		return Begun{}, err
	}
	if _, err := n.wait(ctx, tx, ""); err != nil {
		return Begun{}, err
	}
	_, err := tx.Exec(ctx, `update routine_steps set agent_id = $2 where id = $1`, n.id, in.AgentID)
	return Begun{StepID: n.id, Work: true}, err
}

// Started is the result of start_routine that does not wait.
type Started struct {
	RunID  string            `json:"runId"`
	Status routine.RunStatus `json:"status"`
}

// startRoutine writes a run of its own, whose end is told by whoever writes that down; unless it is not waited for.
func (n newStep) startRoutine(ctx context.Context, tx pgx.Tx) (Begun, error) {
	var in struct {
		RoutineID string          `json:"routineId"`
		Routine   string          `json:"routine"`
		Input     json.RawMessage `json:"input"`
		Wait      *bool           `json:"wait"`
	}
	if err := json.Unmarshal(n.Input, &in); err != nil {
		return Begun{}, err
	}
	waiting, err := n.wait(ctx, tx, "")
	if err != nil {
		return Begun{}, err
	}
	start := routine.NewRun{RoutineID: in.RoutineID, Name: in.Routine, Input: in.Input, StartedBy: routine.StartedBy{Type: routine.ByRoutine, ID: n.RunID}, ParentRunID: &n.RunID}
	waits := in.Wait == nil || *in.Wait
	if waits {
		start.CallbackID = &waiting.ID
	}
	run, err := routine.Start(ctx, tx, n.TenantID, start)
	if err != nil {
		return Begun{}, err
	}
	begun := Begun{StepID: n.id, RunID: run.ID}
	if _, err = tx.Exec(ctx, `update routine_steps set child_run_id = $2 where id = $1`, n.id, run.ID); err != nil || waits {
		return begun, err
	}
	result, err := json.Marshal(Started{run.ID, run.Status})
	if err != nil {
		return begun, err
	}
	if _, err = tx.Exec(ctx, `update routine_steps set status = 'succeeded', result = $2, finished_at = $3 where id = $1`, n.id, result, ident.Now()); err != nil {
		return begun, err
	}
	begun.DueID = waiting.ID
	return begun, callback.Answer(ctx, tx, waiting.ID, result)
}
