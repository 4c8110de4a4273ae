package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// source is the parent of a field, as its own resolver answered it.
type source struct {
	ID string `json:"id"`
}

func ids(sources []source) []string {
	all := make([]string, len(sources))
	for i, s := range sources {
		all[i] = s.ID
	}
	return all
}

// ScheduleRuns answers Schedule.runs for a list of schedules. A token belongs to one of them.
func ScheduleRuns(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Batch(func(ctx context.Context, schedules []source, a page.Request) ([]page.Page[schedule.Run], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, a, schedules, schedule.Run.Cursor, func(after *schedule.RunCursor, limit int) (map[string][]schedule.Run, error) {
			return schedule.Runs(ctx, db.In(caller.TenantID), ids(schedules), after, limit)
		}, func(s source) (string, []any) {
			return s.ID, []any{caller.TenantID, "runs", s.ID}
		})
	})
}
