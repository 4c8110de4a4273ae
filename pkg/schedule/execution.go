// Package schedule holds the scheduled flow: executions of the workflow that lets an agent work, without a person, in a thread of its own.
//
// The workflow engine asks for three things, one after the other: Open the thread, run its turn, Close the thread. What holds:
//
//   - An execution is one row, by the ARN that the engine gave it, and its lock decides. The engine may ask twice, also while it is still being
//     answered: thread, message and turn are there once, and the second answer is the first.
//   - The result comes from the turn's record, not from what the engine believes: a turn that succeeded before the engine lost sight of it makes
//     a successful execution.
//   - When the result is recorded, the turn is over. One that still ran has lost its lease and writes nothing more.
//   - Whoever dies in between leaves nothing half done; what is committed is enough to go on.
package schedule

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// AutoThread is the workflow, schema/workflow/auto_thread.asl.json.
const AutoThread = "auto-thread"

// Status is how far an execution is.
type Status string

const (
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
)

// execution is a locked row of executions.
type execution struct {
	id        string
	turnID    *string
	status    Status
	errorType *string
	reason    *string
}

// take locks the tenant's execution of that ARN until tx ends, and makes it when it is not there yet.
func take(ctx context.Context, tx pgx.Tx, tenantID, arn string) (e execution, err error) {
	if err := text.Check("executionArn", arn, 1, 512); err != nil {
		return e, err
	}
	_, err = tx.Exec(ctx, `insert into executions (tenant_id, id, arn, workflow) values ($1, $2, $3, $4) on conflict (tenant_id, arn) do nothing`,
		tenantID, ident.New(), arn, AutoThread)
	if postgres.IsForeignKey(err, "executions_tenant_id_fkey") {
		return e, fault.Missing("tenant")
	}
	if err != nil {
		return e, err
	}
	err = tx.QueryRow(ctx, `select id, turn_id, status, error_type, error from executions where arn = $1 for no key update`, arn).
		Scan(&e.id, &e.turnID, &e.status, &e.errorType, &e.reason)
	return e, err
}

// inTenant is db.InTenant for a tenant id that came with an input.
func inTenant(ctx context.Context, db *postgres.DB, tenantID string, run func(tx pgx.Tx) error) error {
	if !ident.Valid(tenantID) {
		return fault.Invalid("tenantId is not an id")
	}
	return db.InTenant(ctx, tenantID, run)
}
