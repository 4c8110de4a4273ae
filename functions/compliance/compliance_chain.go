package compliance

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// maxBack is how far complianceChain walks.
const maxBack = 10

// ComplianceChain answers Query.complianceChain.
func ComplianceChain(env *handler.Env) lambda.Handler {
	db, operators := env.Reader(), env.Operators()
	type args struct {
		EventHash string `json:"eventHash"`
		Limit     *int   `json:"limit"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (chain []event, err error) {
		if _, err := operators.Check(ctx); err != nil {
			return nil, err
		}
		limit := maxBack
		if a.Limit != nil {
			limit = *a.Limit
		}
		if limit < 1 || limit > maxBack {
			return nil, fault.Invalid("limit must be from 1 to %d", maxBack)
		}
		err = db.Unbound(ctx, func(tx pgx.Tx) error {
			events, err := trail.Back(ctx, tx, a.EventHash, limit)
			if err != nil {
				return err
			}
			anchored, err := trail.Anchored(ctx, tx)
			chain = make([]event, len(events))
			for i := range events {
				chain[i] = show(&events[i], anchored)
			}
			return err
		})
		return chain, err
	})
}
