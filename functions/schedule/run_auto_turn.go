package schedule

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// RunAutoTurn answers the state RunTurn: it has the turn dispatched, as any other one, and waits for its end. So there is one place that chooses
// a turn's runtime, and the end of this function does no harm to the turn.
func RunAutoTurn(env *handler.Env) lambda.Handler {
	db, dispatch := env.DB(), env.Invoke("dispatch-turn")
	type input struct {
		TenantID string `json:"tenantId"`
		TurnID   string `json:"turnId"`
	}
	type answer struct {
		TurnID string      `json:"turnId"`
		Status turn.Status `json:"status"`
	}
	return handler.State(func(ctx context.Context, in input) (answer, error) {
		q := db.In(in.TenantID)
		t, err := turn.Get(ctx, q, in.TurnID)
		if err != nil {
			return answer{}, err
		}
		if !t.Over() {
			if err := dispatch(ctx, turn.Dispatch{TenantID: in.TenantID, TurnID: t.ID}); err != nil {
				slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", in.TenantID, "turn_id", t.ID, "error", err)
			}
			t, err = turn.Wait(ctx, q, t.ID)
		}
		switch {
		case errors.Is(err, turn.ErrNotOver):
			return answer{}, &handler.StateError{Name: schedule.TurnNotOver, Reason: "the turn took longer than a run may"}
		case err != nil:
			return answer{}, err
		case t.Status != turn.Succeeded:
			return answer{}, &handler.StateError{Name: schedule.TurnFailed, Reason: t.Reason()}
		}
		return answer{t.ID, t.Status}, nil
	})
}
