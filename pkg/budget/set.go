package budget

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Change is what a caller sets: a cap that is left out stays, null takes it away. A budget without a cap is none.
type Change struct {
	Scope         Scope              `json:"scope"`
	ScopeID       *string            `json:"scopeId"` // of the space or agent; nil or the tenant's own for TENANT
	MonthlyUSD    text.Patch[string] `json:"monthlyUsd"`
	TokensPerTurn text.Patch[int64]  `json:"tokensPerTurn"`
}

// Set changes a budget, or makes or removes it; nil when there is none afterwards. It holds from its commit on, for turns under way too: those
// that no longer fit are ended before their next model call. Parts of a cap that were spent before it was set are warned of at once.
func Set(ctx context.Context, tx pgx.Tx, tenantID string, c Change, now time.Time) (*Budget, error) {
	id, exists, err := c.find(ctx, tx, tenantID)
	if err != nil {
		return nil, err
	}
	var micros *int64
	if v := c.MonthlyUSD.Value; v != nil {
		n, err := parseUSD(*v)
		if err != nil {
			return nil, err
		}
		micros = &n
	}
	if v := c.TokensPerTurn.Value; v != nil && *v < 1 {
		return nil, fault.Invalid("tokensPerTurn must be 1 or more")
	}
	set := c.MonthlyUSD.Value != nil || c.TokensPerTurn.Value != nil
	if !exists && set {
		return nil, fault.Missing(c.Scope.stored())
	}
	var b pgx.Batch
	if set {
		b.Queue(`insert into budgets (tenant_id, scope, scope_id, created_at, updated_at) values ($1, $2, $3, $4, $4) on conflict (tenant_id, scope_id) do nothing`,
			tenantID, c.Scope.stored(), id, ident.Time{Time: now})
	}
	b.Queue(`update budgets set monthly_micros = case when $2 then $3 else monthly_micros end, tokens_per_turn = case when $4 then $5 else tokens_per_turn end,
		updated_at = $6 where scope_id = $1`, id, c.MonthlyUSD.Set, micros, c.TokensPerTurn.Set, c.TokensPerTurn.Value, ident.Time{Time: now})
	b.Queue(`delete from budgets where scope_id = $1 and monthly_micros is null and tokens_per_turn is null`, id)
	b.Queue(`insert into budget_warnings (tenant_id, scope_id, month, monthly_micros, percent, scope, spent_micros, crossed_at)
		select b.tenant_id, b.scope_id, $2, b.monthly_micros, p.percent, b.scope, s.spent, $3
		from budgets b cross join lateral budget_state(b.scope_id, $2) s cross join unnest(array[50, 80, 100]) p (percent)
		where b.scope_id = $1 and b.monthly_micros is not null and s.spent > 0 and s.spent::numeric * 100 >= b.monthly_micros::numeric * p.percent
		on conflict do nothing`, id, month(now), ident.Time{Time: now})
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	found, err := read(ctx, tx, now, `where b.scope_id = $2`, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// find is the id of what the budget is for, and whether that exists. What is gone may still lose its budget.
func (c Change) find(ctx context.Context, q postgres.Querier, tenantID string) (id string, exists bool, err error) {
	table := ""
	switch c.Scope {
	case Tenant:
		if c.ScopeID != nil && *c.ScopeID != tenantID {
			return "", false, fault.Missing("tenant")
		}
		return tenantID, true, nil
	case Space:
		table = "spaces"
	case Agent:
		table = "agents"
	default:
		return "", false, fault.Invalid("scope must be TENANT, SPACE or AGENT")
	}
	if c.ScopeID == nil || !ident.Valid(*c.ScopeID) {
		return "", false, fault.Missing(c.Scope.stored())
	}
	found, err := postgres.All(ctx, q, pgx.RowTo[bool], `select exists (select from `+table+` where id = $1)
		from (values (1)) one where exists (select from `+table+` where id = $1) or exists (select from budgets where scope_id = $1 and scope = $2)`,
		*c.ScopeID, c.Scope.stored())
	if err != nil {
		return "", false, err
	}
	if len(found) == 0 {
		return "", false, fault.Missing(c.Scope.stored())
	}
	return *c.ScopeID, found[0], nil
}
