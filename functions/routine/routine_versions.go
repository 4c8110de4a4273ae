package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// RoutineVersions answers Routine.versions for a list of routines. A token belongs to one of them.
func RoutineVersions(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Batch(func(ctx context.Context, routines []source, a page.Request) ([]page.Page[routine.Version], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, a, routines, routine.Version.Cursor, func(after *routine.VersionCursor, limit int) (map[string][]routine.Version, error) {
			return routine.Versions(ctx, db.In(caller.TenantID), ids(routines), after, limit)
		}, func(s source) (string, []any) {
			return s.ID, []any{caller.TenantID, "versions", s.ID}
		})
	})
}
