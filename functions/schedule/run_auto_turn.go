package schedule

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// RunAutoTurn answers the state RunTurn, which waits with a task token: it writes down that the turn's end answers the token, and has the turn dispatched,
// as any other one. So there is one place that chooses a turn's runtime, and no function runs while a turn does, or waits for a person.
func RunAutoTurn(env *handler.Env) lambda.Handler {
	db, dispatch, answer, signal := env.DB(), env.Invoke("dispatch-turn"), env.Invoke("answer-callbacks"), env.Signal()
	type input struct {
		TenantID string `json:"tenantId"`
		TurnID   string `json:"turnId"`
		Token    string `json:"token"`
	}
	type registered struct {
		CallbackID string `json:"callbackId"`
	}
	return handler.State(func(ctx context.Context, in input) (registered, error) {
		if !ident.Valid(in.TenantID) {
			return registered{}, fault.Invalid("tenantId is not an id")
		}
		if in.TurnID == "" {
			return registered{}, fault.Missing("turn")
		}
		var added callback.Added
		err := db.InTenant(ctx, in.TenantID, func(tx pgx.Tx) (err error) {
			added, err = callback.Add(ctx, tx, callback.Callback{TenantID: in.TenantID, Token: in.Token, TurnID: in.TurnID, Heartbeat: true})
			return err
		})
		if err != nil {
			return registered{}, err
		}
		signal("callback added")
		if added.Due { // the engine has tried the state again, or the turn was dispatched by the reaper
			err = answer(ctx, callback.Task{TenantID: in.TenantID, CallbackID: added.ID})
		} else {
			err = dispatch(ctx, turn.Dispatch{TenantID: in.TenantID, TurnID: in.TurnID})
		}
		if err != nil {
			slog.WarnContext(ctx, "the function was not started; a sweep does it", "tenant_id", in.TenantID, "turn_id", in.TurnID, "error", err)
		}
		return registered{added.ID}, nil
	})
}
