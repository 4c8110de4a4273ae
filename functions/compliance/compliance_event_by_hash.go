package compliance

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// ComplianceEventByHash answers Query.complianceEventByHash.
func ComplianceEventByHash(env *handler.Env) lambda.Handler {
	db, operators := env.Reader(), env.Operators()
	type args struct {
		EventHash string `json:"eventHash"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (event, error) {
		if _, err := operators.Check(ctx); err != nil {
			return event{}, err
		}
		_, shown, err := readOne(ctx, db, func(tx pgx.Tx) (trail.Event, error) { return trail.ByHash(ctx, tx, a.EventHash) })
		return shown, err
	})
}
