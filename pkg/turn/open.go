package turn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Open opens a thread that no user has asked for by himself, in the tenant's default space, with a first message and the queued turn of the agent that answers it;
// besides queues what belongs to it, nil: nothing. t says channel, title and metadata, and is completed. An agent that takes no turns is Forbidden, its limits
// are RateLimitExceeded, its budgets BudgetExceeded; nothing is written then. Whoever commits must then dispatch the turn.
func Open(ctx context.Context, tx pgx.Tx, tenantID string, a agent.Agent, t *thread.Thread, first Words, besides func(b *pgx.Batch, turnID string)) (turnID string, err error) {
	if err := a.Status.CheckTurns(); err != nil {
		return "", err
	}
	if a.RateLimits != nil {
		if err := CheckRate(ctx, tx, a.ID, *a.RateLimits); err != nil {
			return "", err
		}
	}
	t.AgentID = a.ID
	var price Price
	if err := tx.QueryRow(ctx, `select s.id, coalesce($3, tp.model_id), b.capped, b.tokens_per_turn
		from spaces s cross join agent_templates tp cross join lateral budget_terms($1, s.id) b where s.is_default and tp.id = $2`, a.ID, a.TemplateID, a.ModelID).
		Scan(&t.SpaceID, &price.ModelID, &price.Terms.Capped, &price.Terms.TokensPerTurn); err != nil {
		return "", err
	}
	turnID = ident.New()
	var b pgx.Batch
	if err := Start(&b, tenantID, Call{RunID: turnID}, t, first, price); err != nil {
		return "", err
	}
	if besides != nil {
		besides(&b, turnID)
	}
	return turnID, budget.Refusal(tx.SendBatch(ctx, &b).Close())
}
