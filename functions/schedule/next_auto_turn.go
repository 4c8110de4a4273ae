package schedule

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// NextAutoTurn answers the state NextTurn: it rates the last turn of a loop by the loop's goal, and queues the next turn or stops the loop.
func NextAutoTurn(env *handler.Env) lambda.Handler {
	db, to := env.DB(), env.Publish()
	looper := &schedule.Looper{DB: db, Grader: grade.New(env.Model()), Signal: env.Signal()}
	return handler.State(func(ctx context.Context, s schedule.State) (schedule.Step, error) {
		step, notices, err := looper.Next(ctx, s)
		if errors.Is(err, schedule.ErrGrader) {
			slog.WarnContext(ctx, "the goal of a loop could not be rated", "tenant_id", s.Input.TenantID, "error", err)
			return step, &handler.StateError{Name: schedule.GraderUnavailable, Reason: "what rates the loop's goal could not be asked"}
		}
		if err == nil {
			notify.Deliver(ctx, db, to, s.Input.TenantID, notices...)
		}
		return step, err
	})
}
