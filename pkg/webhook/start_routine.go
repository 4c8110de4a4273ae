package webhook

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// input is what a routine is given of a call.
type input struct {
	Payload   json.RawMessage `json:"payload"` // the body
	WebhookID string          `json:"webhookId"`
}

// startRoutine writes the routine's run and the record of the call together. They have one id, and end together.
func (t target) startRoutine(ctx context.Context, db *postgres.DB, tenantID string, i Invocation) (Invoked, error) {
	c := turn.Call{RunID: ident.New(), WebhookID: i.WebhookID, Payload: i.Payload, Test: i.Test}
	given, err := json.Marshal(input{json.RawMessage(i.Payload), i.WebhookID})
	if err != nil {
		return Invoked{}, err
	}
	if len(given) > workflow.MaxData {
		return Invoked{}, fault.Invalid("the body is larger than a routine takes: %d bytes, with what is said of the webhook", workflow.MaxData).
			WithStatus(http.StatusRequestEntityTooLarge)
	}
	var run routine.Run
	err = db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		var key, record pgx.Batch
		takeKey(&key, tenantID, i, c.RunID) // before the limit, as in invoke
		if err := tx.SendBatch(ctx, &key).Close(); err != nil {
			return err
		}
		run, err = routine.Start(ctx, tx, tenantID, routine.NewRun{RoutineID: *t.routine, RunID: c.RunID, Input: given,
			StartedBy: routine.StartedBy{Type: routine.ByWebhook, ID: i.WebhookID}})
		if err != nil {
			return err
		}
		turn.RecordRoutine(&record, tenantID, c, *t.routine, run.CreatedAt)
		count(&record, i.WebhookID)
		return tx.SendBatch(ctx, &record).Close()
	})
	if fault.IsMissing(err) {
		return t.refuseRoutine(ctx, db, tenantID, c)
	}
	return Invoked{RunID: c.RunID, Status: turn.RunStarted, CreatedAt: run.CreatedAt, Test: i.Test, Target: Routine}, err
}

// refuseRoutine leaves the failed run of a routine that was deleted.
func (t target) refuseRoutine(ctx context.Context, db *postgres.DB, tenantID string, c turn.Call) (Invoked, error) {
	const reason = "the webhook's routine was deleted"
	var b pgx.Batch
	turn.RefuseRoutine(&b, tenantID, c, *t.routine, reason)
	count(&b, c.WebhookID)
	if err := db.Once(ctx, tenantID, &b); err != nil {
		return Invoked{}, err
	}
	return Invoked{}, fault.New(fault.InternalError, "%s (run %s)", reason, c.RunID)
}
