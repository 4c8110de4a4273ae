package budget

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// Charge queues what a turn's agent and space have used besides the turn's own record, such as what rated it: it counts in their budgets, and in
// the usage of the day of at. A nil cost is unknown, and not counted. It is not settled: charge once, in the transaction that writes what it was for.
func Charge(b *pgx.Batch, turnID, modelID string, used model.Usage, micros *int64, at time.Time) {
	b.Queue(`insert into usage_unmetered (tenant_id, ended_at, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens,
			cache_read_tokens, cache_write_tokens, cost_micros)
		select t.tenant_id, $2::timestamptz, ($2::timestamptz at time zone 'UTC')::date, t.agent_id, h.space_id, $3, 0, 0, $4, $5, $6, $7, coalesce($8::bigint, 0)
		from thread_turns t join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid where t.id = $1`,
		turnID, ident.Time{Time: at}, modelID, used.InputTokens+used.CacheReadTokens+used.CacheWriteTokens, used.OutputTokens,
		used.CacheReadTokens, used.CacheWriteTokens, micros)
}
