package evaluation

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// StartEvaluationRun answers Mutation.runEvaluation.
func StartEvaluationRun(env *handler.Env) lambda.Handler {
	db, run := env.DB(), env.Invoke("run-evaluation")
	type args struct {
		ID      string  `json:"id"`
		AgentID *string `json:"agentId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r evaluation.Run, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			r, err = evaluation.Start(ctx, tx, caller.TenantID, caller.UserID, a.ID, a.AgentID)
			return err
		})
		if err != nil {
			return r, err
		}
		if err := run(ctx, evaluation.Job{TenantID: caller.TenantID, RunID: r.ID}); err != nil { // the run is written: the sweep finds it
			slog.WarnContext(ctx, "invoking run-evaluation failed", "evaluation_run_id", r.ID, "error", err)
		}
		return r, nil
	})
}
