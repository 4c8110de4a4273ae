package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// UpdateThread answers Mutation.updateThread.
func UpdateThread(env *handler.Env) lambda.Handler {
	db, to := env.DB(), env.Publish()
	type args struct {
		ID    string        `json:"id"`
		Input thread.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (updated thread.Thread, err error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return thread.Thread{}, err
		}
		var notices []notify.Notice
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			notices = nil
			var changed bool
			if updated, changed, err = thread.Update(ctx, tx, a.ID, a.Input); err != nil || !changed {
				return err
			}
			var b pgx.Batch
			notices = append(notices, notify.Queue(&b, caller.TenantID, updated.UUID, thread.Updated(caller.TenantID, updated)))
			return tx.SendBatch(ctx, &b).Close()
		})
		if err == nil {
			notify.Deliver(ctx, db, to, caller.TenantID, notices...)
		}
		return updated, err
	})
}
