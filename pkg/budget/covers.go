package budget

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Covers reports whether the budgets that concern an agent and a space cover one model call within these limits, besides what is spent and set
// aside. Nothing is set aside for it: it is for what the platform does on its own, which Charge counts when it is done. A model without a price is
// covered where no budget counts money.
func (k Book) Covers(ctx context.Context, q postgres.Querier, agentID, spaceID, modelID string, at time.Time) (bool, error) {
	worst, known := k.Limits.Call(k.Prices, modelID, at)
	rows, err := q.Query(ctx, `select not b.capped or $5 and not exists (select from short_budget($1, $2, $3, $4)) from budget_terms($1, $2) b`,
		agentID, spaceID, month(at), worst, known)
	if err != nil {
		return false, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}
