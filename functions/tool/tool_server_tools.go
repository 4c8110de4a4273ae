package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// ToolServerTools answers ToolServer.tools for a list of servers.
func ToolServerTools(env *handler.Env) lambda.Handler {
	db := env.DB()
	type source struct {
		ID string `json:"id"`
	}
	return handler.Batch(func(ctx context.Context, servers []source, _ struct{}) ([][]toolserver.Tool, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(servers))
		for i, s := range servers {
			ids[i] = s.ID
		}
		byServer, err := toolserver.Tools(ctx, db.In(caller.TenantID), ids)
		tools := make([][]toolserver.Tool, len(servers))
		for i, id := range ids {
			if tools[i] = byServer[id]; tools[i] == nil {
				tools[i] = []toolserver.Tool{}
			}
		}
		return tools, err
	})
}
