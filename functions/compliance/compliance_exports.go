package compliance

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
)

// ComplianceExports answers Query.complianceExports.
func ComplianceExports(env *handler.Env) lambda.Handler {
	db, operators, key := env.Reader(), env.Operators(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[export.Job], error) {
		if _, err := operators.Check(ctx); err != nil {
			return page.Page[export.Job]{}, err
		}
		return page.List(key, a, export.Job.Cursor, func(after *export.Cursor, limit int) (jobs []export.Job, err error) {
			err = db.Unbound(ctx, func(tx pgx.Tx) error {
				jobs, err = export.List(ctx, tx, after, limit)
				return err
			})
			return jobs, err
		}, "complianceExports")
	})
}
