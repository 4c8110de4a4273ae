package routine

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// StartRoutine answers Mutation.startRoutine.
func StartRoutine(env *handler.Env) lambda.Handler {
	db, signal := env.DB(), env.Signal()
	engine := &routine.Engine{DB: db, Machines: env.Machines(), Runs: env.Runs(), Function: env.FunctionName(), Signal: signal}
	type args struct {
		ID          string  `json:"id"`
		Input       *string `json:"input"` // JSON
		ClientToken *string `json:"clientToken"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r routine.Run, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		n := routine.NewRun{RoutineID: a.ID, StartedBy: routine.StartedBy{Type: routine.ByUser, ID: caller.UserID}}
		if a.Input != nil {
			n.Input = json.RawMessage(*a.Input)
			if !bytes.HasPrefix(bytes.TrimSpace(n.Input), []byte("{")) { // AppSync reads a JSON text, and what it reads as a string is told from no other
				return r, fault.Invalid("input must be a JSON object")
			}
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			r, _, err = clienttoken.Once(ctx, tx, caller, "startRoutine", a.ClientToken, []string{a.ID, string(n.Input)}, func() (routine.Run, error) {
				return routine.Start(ctx, tx, caller.TenantID, n)
			})
			return err
		})
		if err != nil {
			return r, err
		}
		signal("run written")
		launched, err := engine.Launch(ctx, caller.TenantID, r.ID)
		if err != nil { // the run is written: the sweep launches it
			slog.WarnContext(ctx, "a routine's run was not launched", "routine_run_id", r.ID, "error", err)
			return r, nil
		}
		return launched, nil
	})
}
