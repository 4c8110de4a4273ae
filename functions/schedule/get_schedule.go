package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetSchedule answers Query.getSchedule.
func GetSchedule(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (schedule.Schedule, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return schedule.Schedule{}, err
		}
		return schedule.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
