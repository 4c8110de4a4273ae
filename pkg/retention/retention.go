// Package retention bounds what grows with turns and calls: how long a tenant keeps it, and who deletes what is older.
//
// What holds:
//
//   - Messages, turns' records and the audit log are never pruned. A turn's record says when its steps were.
//   - A turn that is not over keeps all that it has, and what came with the calls of its thread's webhook runs: it may be taken up again.
//   - A turn is pruned whole, in one transaction with the mark that says so. Transactions are short, lock nothing that somebody else holds, and each
//     is complete in itself: pruning may be ended anywhere, and may go on twice at once.
//   - "Older than N days" is N times 24 hours and more, by the clock of whoever calls: exactly N days old is kept.
//
// It is apart from package turn: no turn needs it, and it deletes other nouns' rows too.
package retention

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// MaxDays is the longest time that a tenant may keep what is pruned.
const MaxDays = 3650

// Policy is how long a tenant keeps what is pruned, in days, as the API shows it.
type Policy struct {
	StepsDays      int `json:"stepsDays"`      // steps of turns, from a turn's end
	PayloadDays    int `json:"payloadDays"`    // what came with webhooks' calls, from the end of its turn
	EvaluationDays int `json:"evaluationDays"` // runs of evaluations, from a run's end; the newest two that finished stay
}

// Change is what a caller sets: what is left out stays, null takes the default again.
type Change struct {
	StepsDays      text.Patch[int] `json:"stepsDays"`
	PayloadDays    text.Patch[int] `json:"payloadDays"`
	EvaluationDays text.Patch[int] `json:"evaluationDays"`
}

// Get is the tenant's policy.
func Get(ctx context.Context, q postgres.Querier) (Policy, error) {
	return postgres.One(ctx, q, "retention", pgx.RowToStructByPos[Policy], `select steps_days, payload_days, evaluation_days from retention_terms(current_tenant())`)
}

// Set changes the tenant's policy. It holds from the next pruning on; what is gone does not come back.
func Set(ctx context.Context, tx pgx.Tx, tenantID string, c Change) (Policy, error) {
	for _, f := range []struct {
		name string
		days text.Patch[int]
	}{{"stepsDays", c.StepsDays}, {"payloadDays", c.PayloadDays}, {"evaluationDays", c.EvaluationDays}} {
		if n := f.days.Value; n != nil && (*n < 1 || *n > MaxDays) {
			return Policy{}, fault.Invalid("%s must be from 1 to %d", f.name, MaxDays)
		}
	}
	_, err := tx.Exec(ctx, `insert into retention as r (tenant_id, steps_days, payload_days, evaluation_days) values ($1, $3, $5, $7)
		on conflict (tenant_id) do update set steps_days = case when $2 then $3 else r.steps_days end, payload_days = case when $4 then $5 else r.payload_days end,
			evaluation_days = case when $6 then $7 else r.evaluation_days end, updated_at = now()`,
		tenantID, c.StepsDays.Set, c.StepsDays.Value, c.PayloadDays.Set, c.PayloadDays.Value, c.EvaluationDays.Set, c.EvaluationDays.Value)
	if err != nil {
		return Policy{}, err
	}
	return Get(ctx, tx)
}
