// Package callback tells the workflow engine what its tasks wait for: that a turn is over, or what somebody answered.
//
// A task of a state machine that waits hands out a token. Whoever is handed it writes a callback (Add) in the transaction that begins what the task
// waits for. What holds:
//
//   - A callback of a turn is due in the transaction that ends the turn, however it ends: a trigger does that (schema/sql/00015_callbacks.sql). One that
//     is added when the turn is over already is due at once.
//   - A callback of anything else is due with the transaction that calls Answer or Fail. The first one counts.
//   - The engine is told of what is due at least once, whoever dies in between: the row goes when the engine has been told. The engine takes the first
//     answer to a token; a later one it refuses, which is as good as told.
//   - While a callback is not due, the engine is told that it goes on: every minute or two where it wants heartbeats, so a state's HeartbeatSeconds must
//     be 300 or more, and every five or six where it does not, for 900 or more.
//   - A token is as good as the task it was given for, to whoever may speak to the engine: it is in no log and no error, and only its row has it.
package callback

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Function tells the engine; Task is what it is invoked with. Whoever made a callback due invokes it after the commit, so that nobody waits for the
// sweep, which finds what was lost.
const Function = "answer-callbacks"

// Task names a callback; the zero Task asks for a sweep.
type Task struct {
	TenantID   string `json:"tenantId"`
	CallbackID string `json:"callbackId"`
}

const (
	beatEvery = time.Minute     // between heartbeats; the sweep runs each minute, too
	lookEvery = 5 * time.Minute // the same, of one that may wait for long: for whether its task is still there
)

// Callback is a task that waits.
type Callback struct {
	TenantID  string
	Token     string // the engine's
	TurnID    string // whose end answers it; "": Answer or Fail does
	Heartbeat bool   // the engine is told every minute that it goes on until it is due; else every five
}

// Added is a callback's row.
type Added struct {
	ID  string
	Due bool // already: the turn was over, or this token had been answered. Invoke Function after the commit
}

// Add writes a callback. The same token again is the same callback, as it was first added. A turn that is not the tenant's is NotFound; one may have
// several callbacks, since an engine that tries a task again gives it another token.
//
// It locks the turn. A transaction that locks the turn's thread too does so before.
func Add(ctx context.Context, tx pgx.Tx, c Callback) (a Added, err error) {
	if err := workflow.CheckToken(c.Token); err != nil {
		return a, fault.Invalid("token is not one")
	}
	over := false
	if c.TurnID != "" {
		if over, err = lockTurn(ctx, tx, c.TurnID); err != nil {
			return a, err
		}
	}
	hash := sha256.Sum256([]byte(c.Token))
	var turnID any
	if c.TurnID != "" {
		turnID = c.TurnID
	}
	next := lookEvery
	if c.Heartbeat {
		next = beatEvery
	}
	// The update changes nothing: it gives the row back that is there, and holds it. It may be on its way out, being told.
	err = tx.QueryRow(ctx, `insert into callbacks as c (tenant_id, id, token, token_hash, turn_id, heartbeat, due_at, next_at)
		values ($1, $2, $3, $4, $5, $6, case when $7 then clock_timestamp() end, clock_timestamp() + case when $7 then '0' else $8::interval end)
		on conflict (tenant_id, token_hash) do update set heartbeat = c.heartbeat returning c.id, c.due_at is not null`,
		c.TenantID, ident.New(), c.Token, hash[:], turnID, c.Heartbeat, over, next).Scan(&a.ID, &a.Due)
	if err == nil && c.TurnID != "" {
		_, err = tx.Exec(ctx, `update thread_turns set callback_id = $2 where id = $1 and callback_id is distinct from $2`, c.TurnID, a.ID)
	}
	return a, err
}

// lockTurn reports whether the turn is over: either it is, or its end waits for this transaction, and sees what it wrote.
func lockTurn(ctx context.Context, tx pgx.Tx, id string) (over bool, err error) {
	if !ident.Valid(id) {
		return false, fault.Missing("turn")
	}
	err = tx.QueryRow(ctx, `select finished_at is not null from thread_turns where id = $1 for no key update`, id).Scan(&over)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, fault.Missing("turn")
	}
	return over, err
}

// Answer makes a callback due as one that succeeded, with that JSON as the task's result. What is larger than an engine takes fails the task instead, as
// States.DataLimitExceeded. One that is due already, or is not there any more, stays as it is. Invoke Function after the commit.
func Answer(ctx context.Context, tx pgx.Tx, id string, output json.RawMessage) error {
	compact, err := workflow.Data(output)
	if errors.Is(err, workflow.ErrTooLarge) {
		return Fail(ctx, tx, id, dataLimit, fmt.Sprintf("the result is larger than %d bytes", workflow.MaxData))
	}
	if err != nil {
		return err
	}
	return due(ctx, tx, id, compact, nil, nil)
}

// Fail makes a callback due as one that failed: by a code that the machine can catch, and a reason for people. Otherwise as Answer.
func Fail(ctx context.Context, tx pgx.Tx, id, code, reason string) error {
	code, reason = Reason(code, reason)
	return due(ctx, tx, id, nil, code, reason)
}

// Reason is workflow.Reason as a text column holds it: without NUL, which a run's data may make a part of what it fails with.
func Reason(code, reason string) (string, string) {
	code, reason = workflow.Reason(code, reason)
	return strings.ReplaceAll(code, "\x00", " "), strings.ReplaceAll(reason, "\x00", " ")
}

// dataLimit is the language's own code.
const dataLimit = "States.DataLimitExceeded"

func due(ctx context.Context, tx pgx.Tx, id string, output, code, reason any) error {
	_, err := tx.Exec(ctx, `update callbacks set output = $2, error_type = $3, error = $4, due_at = clock_timestamp(), next_at = clock_timestamp()
		where id = $1 and due_at is null`, id, output, code, reason)
	return err
}
