package tool

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// listTime is how long a server has to list its tools while a caller waits.
const listTime = 20 * time.Second

// AddToolServer answers Mutation.addToolServer.
func AddToolServer(env *handler.Env) lambda.Handler {
	o, servers := env.Outbox(), toolserver.New(env.DB(), env.ToolSecrets(), env.Egress())
	type args struct {
		Input toolserver.NewServer `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (toolserver.Server, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return toolserver.Server{}, err
		}
		s, err := servers.Add(ctx, o, caller.TenantID, a.Input)
		if err != nil {
			return s, err
		}
		return listed(ctx, servers, caller, s), nil
	})
}

// listed is the server with its tools listed. The change that came before is done, whatever comes of this.
func listed(ctx context.Context, servers *toolserver.Servers, caller tenant.Caller, s toolserver.Server) toolserver.Server {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	after, err := servers.Refresh(ctx, caller.TenantID, s.ID, caller.UserID)
	if err != nil {
		slog.Error("a tool server could not be asked for its tools", "tenant_id", caller.TenantID, "server_id", s.ID, "error", err)
		return s
	}
	return after
}
