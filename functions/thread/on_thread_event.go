package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// OnThreadEvent answers Subscription.onThreadEvent with the filter of the events that the caller may receive.
func OnThreadEvent(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ThreadID string `json:"threadId"`
	}
	type filter struct {
		TenantID string `json:"tenantId"`
		ThreadID string `json:"threadId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (filter, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return filter{}, err
		}
		found, err := thread.Get(ctx, db.In(caller.TenantID), a.ThreadID)
		return filter{caller.TenantID, found.ID}, err
	})
}
