package routine

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// BeginStep answers the tasks of routines: it begins what the task asks for, and the task's token is answered when that is done. An error is the task's.
func BeginStep(env *handler.Env) lambda.Handler {
	db, to, signal := env.DB(), env.Publish(), env.Signal()
	dispatch, work, launch, answer := env.Invoke("dispatch-turn"), env.Invoke("call-tool"), env.Invoke("settle-routine-run"), env.Invoke("answer-callbacks")
	type begun struct {
		StepID string `json:"stepId"`
	}
	return handler.State(func(ctx context.Context, c routine.Call) (begun, error) {
		b, err := step.Begin(ctx, db, c)
		if err != nil {
			return begun{}, err
		}
		signal("step begun")
		// Whatever of this is lost is found by a sweep.
		ask := func(invoke func(context.Context, any) error, what string, payload any) {
			if err := invoke(ctx, payload); err != nil {
				slog.WarnContext(ctx, what+" was not asked for; a sweep does it", "tenant_id", c.TenantID, "routine_run_id", c.RunID, "step_id", b.StepID, "error", err)
			}
		}
		if b.TurnID != "" {
			ask(dispatch, "the turn", turn.Dispatch{TenantID: c.TenantID, TurnID: b.TurnID})
		}
		if b.Work {
			ask(work, "the call", step.Work{TenantID: c.TenantID, StepID: b.StepID})
		}
		if b.RunID != "" {
			ask(launch, "the run", routine.Job{TenantID: c.TenantID, RunID: b.RunID})
		}
		if b.DueID != "" {
			ask(answer, "the answer", callback.Task{TenantID: c.TenantID, CallbackID: b.DueID})
		}
		notify.Deliver(ctx, db, to, c.TenantID, b.Notices...)
		return begun{b.StepID}, nil
	})
}
