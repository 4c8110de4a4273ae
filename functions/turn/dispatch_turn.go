package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

// DispatchTurn takes one turn to its end.
func DispatchTurn(env *handler.Env) lambda.Handler {
	prices, err := model.ParsePrices(schema.Prices)
	if err != nil {
		panic(err)
	}
	db, dispatch := env.DB(), env.Invoke("dispatch-turn")
	runner := &turn.Runner{DB: db, Model: env.Model(), Publish: env.Publish(), Prices: prices, Tools: tool.Of(tool.ReadThread(db)), Signal: env.Signal(),
		Dispatch: func(ctx context.Context, tenantID, turnID string) error {
			return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		}}
	return handler.Task(func(ctx context.Context, d turn.Dispatch) error { return runner.Run(ctx, d) })
}
