package routine

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// StartRun starts a run for who may not speak to the workflow engine: an agent's call of the tool start_routine, or a run that a webhook has written. It
// trusts whoever asks: the platform's own functions. A run that the engine could not be asked for is starting, and runs within a minute.
func StartRun(env *handler.Env) lambda.Handler {
	db, signal := env.DB(), env.Signal()
	engine := &routine.Engine{DB: db, Machines: env.Machines(), Runs: env.Runs(), Function: env.FunctionName(), Signal: signal}
	return handler.Call(func(ctx context.Context, o tool.RunOrder) (tool.RunStarted, error) {
		if !ident.Valid(o.TenantID) {
			return tool.RunStarted{}, fault.Invalid("tenantId is not an id")
		}
		var r routine.Run
		err := db.InTenant(ctx, o.TenantID, func(tx pgx.Tx) (err error) {
			if o.RunID != "" {
				r, err = routine.GetRun(ctx, tx, o.RunID)
			} else {
				r, err = step.StartForTurn(ctx, tx, o)
			}
			return err
		})
		if err != nil {
			return tool.RunStarted{}, err
		}
		signal("run written")
		launched, err := engine.Launch(ctx, o.TenantID, r.ID)
		if refused := (*routine.Refusal)(nil); err != nil && !errors.As(err, &refused) {
			slog.WarnContext(ctx, "a routine's run was not launched; the sweep does it", "tenant_id", o.TenantID, "routine_run_id", r.ID, "error", err)
		}
		if err == nil {
			r = launched
		}
		return tool.RunStarted{RunID: r.ID, Status: string(r.Status), ExecutionARN: r.ARN}, nil
	})
}
