package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ThreadEvents answers Query.threadEvents.
func ThreadEvents(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ThreadID string `json:"threadId"`
		After    int    `json:"after"`
		Limit    *int   `json:"limit"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (notify.Page, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return notify.Page{}, err
		}
		limit := notify.DefaultLimit
		if a.Limit != nil {
			limit = *a.Limit
		}
		return notify.After(ctx, db.In(caller.TenantID), caller.TenantID, a.ThreadID, a.After, limit)
	})
}
