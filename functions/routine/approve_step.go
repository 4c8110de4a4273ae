package routine

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ApproveStep answers Mutation.approveStep: what a person decides about a run that waits for it. The engine is asked before whether it still waits, so
// that nobody decides for nothing, and told after.
func ApproveStep(env *handler.Env) lambda.Handler {
	db, signal := env.DB(), env.Signal()
	courier := &callback.Courier{DB: db, Tasks: env.Tasks(), Signal: signal}
	type args struct {
		RunID    string        `json:"runId"`
		StepID   string        `json:"stepId"`
		Decision step.Decision `json:"decision"`
		Comment  *string       `json:"comment"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (decided step.Approval, err error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return decided, err
		}
		asked, callbackID, err := step.GetApproval(ctx, db.In(caller.TenantID), a.RunID, a.StepID)
		if err != nil {
			return decided, err
		}
		tell := func() {
			if callbackID == "" {
				return
			}
			if err := courier.Deliver(ctx, callback.Task{TenantID: caller.TenantID, CallbackID: callbackID}); err != nil {
				slog.WarnContext(ctx, "the workflow engine is told later", "tenant_id", caller.TenantID, "step_id", a.StepID, "error", err)
			}
		}
		if asked.Status == step.Asked {
			tell() // that it goes on: an engine that does not wait any more says so
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			decided, callbackID, err = step.Decide(ctx, tx, caller, step.Decided{RunID: a.RunID, StepID: a.StepID, Decision: a.Decision, Comment: a.Comment})
			return err
		})
		if err != nil {
			return decided, err
		}
		if decided.Status == step.Over {
			return decided, fault.Invalid("the run does not wait for the decision any more")
		}
		signal("step decided")
		tell()
		return decided, nil
	})
}
