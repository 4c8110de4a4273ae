package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// GetThread answers Query.getThread.
func GetThread(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (thread.Thread, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return thread.Thread{}, err
		}
		return thread.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
