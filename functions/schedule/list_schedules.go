package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListSchedules answers Query.listSchedules.
func ListSchedules(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		Filter schedule.Filter `json:"filter"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[schedule.Schedule], error) {
		caller, err := tenant.From(ctx)
		if err == nil {
			err = a.Filter.Check()
		}
		if err != nil {
			return page.Page[schedule.Schedule]{}, err
		}
		return page.List(key, a.Request, schedule.Schedule.Cursor, func(after *schedule.Cursor, limit int) ([]schedule.Schedule, error) {
			return schedule.List(ctx, db.In(caller.TenantID), a.Filter, after, limit)
		}, caller.TenantID, "listSchedules", a.Filter)
	})
}
