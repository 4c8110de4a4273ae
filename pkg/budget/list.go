package budget

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Cursor is the sort key of the budget list.
type Cursor struct {
	Rank int
	ID   string
}

// rank puts the tenant's budget first, then the spaces', then the agents'.
var rank = map[Scope]int{Tenant: 1, Space: 2, Agent: 3}

// Cursor is b's place in the list.
func (b Budget) Cursor() Cursor { return Cursor{rank[b.Scope], b.ScopeID} }

// List is up to limit budgets after the cursor: the tenant's, the spaces', the agents'.
func List(ctx context.Context, q postgres.Querier, now time.Time, after *Cursor, limit int) ([]Budget, error) {
	if after == nil {
		after = &Cursor{ID: "00000000-0000-0000-0000-000000000000"}
	}
	return read(ctx, q, now, `where (array_position('{tenant,space,agent}', b.scope::text), b.scope_id) > ($2::integer, $3::uuid)
		order by array_position('{tenant,space,agent}', b.scope::text), b.scope_id limit $4`, after.Rank, after.ID, limit)
}

// read is the budgets that clause finds, with the state of the month in which now lies. Its arguments are numbered from 2.
func read(ctx context.Context, q postgres.Querier, now time.Time, clause string, args ...any) ([]Budget, error) {
	return postgres.All(ctx, q, func(row pgx.CollectableRow) (b Budget, err error) {
		var scope string
		var micros *int64
		var spent, reserved int64
		var warnings []warningRow
		err = row.Scan(&scope, &b.ScopeID, &b.Name, &micros, &b.TokensPerTurn, &spent, &reserved, &warnings, &b.CreatedAt, &b.UpdatedAt)
		b.Scope, b.Month = fromStored(scope), month(now).Format(time.DateOnly)
		b.SpentUSD, b.ReservedUSD = usd(spent), usd(reserved)
		if micros != nil {
			monthly, remaining, percent := usd(*micros), usd(max(0, *micros-spent-reserved)), percentOf(spent, *micros)
			b.MonthlyUSD, b.RemainingUSD, b.Percent = &monthly, &remaining, &percent
		}
		b.Warnings = make([]Warning, len(warnings))
		for i, w := range warnings {
			b.Warnings[i] = w.warning()
		}
		return b, err
	}, `select b.scope, b.scope_id, coalesce(t.name, p.name, a.name), b.monthly_micros, b.tokens_per_turn, s.spent, s.reserved,
			coalesce((select json_agg(`+warningJSON+` order by w.percent) from budget_warnings w
				where w.scope_id = b.scope_id and w.month = $1 and w.monthly_micros = b.monthly_micros), '[]'), b.created_at, b.updated_at
		from budgets b cross join lateral budget_state(b.scope_id, $1) s
			left join tenants t on t.id = b.scope_id
			left join spaces p on p.tenant_id = b.tenant_id and p.id = b.scope_id
			left join agents a on a.tenant_id = b.tenant_id and a.id = b.scope_id `+clause, append([]any{month(now)}, args...)...)
}

// percentOf is how much of a cap is spent, to a hundredth, never rounded up: 100 is all of it.
func percentOf(spent, all int64) float64 {
	if all == 0 {
		return 100
	}
	return math.Floor(float64(spent)/float64(all)*1e4) / 100
}

// warningJSON is a row of budget_warnings as warningRow reads it.
const warningJSON = `json_build_object('scope', w.scope, 'scopeId', w.scope_id, 'month', w.month, 'percent', w.percent, 'monthly', w.monthly_micros,
	'spent', w.spent_micros, 'at', to_char(w.crossed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))`

type warningRow struct {
	Scope, ScopeID, Month string
	Percent               int
	Monthly, Spent        int64
	At                    ident.Time
}

func (w warningRow) warning() Warning {
	return Warning{Scope: fromStored(w.Scope), ScopeID: w.ScopeID, Month: w.Month, Percent: w.Percent,
		MonthlyUSD: usd(w.Monthly), SpentUSD: usd(w.Spent), CrossedAt: w.At}
}

func scanWarning(row pgx.CollectableRow) (Warning, error) {
	var raw []byte
	var w warningRow
	if err := row.Scan(&raw); err != nil {
		return Warning{}, err
	}
	err := json.Unmarshal(raw, &w)
	return w.warning(), err
}
