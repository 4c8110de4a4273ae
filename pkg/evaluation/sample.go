package evaluation

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Asked is what an answer is rated as an answer to.
type Asked string

const (
	ByTurn   Asked = `string_agg(m.body, E'\n\n' order by m.position) from messages m where m.thread_uuid = t.thread_uuid and m.turn_id = t.id and m.role = 'user'` // what the turn was asked
	ByThread Asked = `m.body from messages m where m.thread_uuid = t.thread_uuid and m.position = 1`                                                                // what its thread began with
)

// Sample is a turn that succeeded, as it is rated.
func Sample(ctx context.Context, q postgres.Querier, turnID string, asked Asked) (grade.Sample, error) {
	return postgres.One(ctx, q, "turn", func(row pgx.CollectableRow) (grade.Sample, error) {
		var x grade.Sample
		var started, finished ident.Time
		var outcomes []thread.ToolResult
		if err := row.Scan(&x.Input, &x.Output, &started, &finished, &x.CostMicros, &x.Tokens, &outcomes); err != nil {
			return x, err
		}
		x.Latency = finished.Sub(started.Time)
		for _, o := range outcomes {
			x.ToolOutcomes = append(x.ToolOutcomes, grade.ToolOutcome{Name: o.Name, Status: string(o.Status)})
		}
		return x, nil
	}, `select coalesce((select `+string(asked)+`), ''), coalesce(`+output+`, ''),
			t.started_at, t.finished_at, t.cost_micros, t.input_tokens + t.output_tokens, t.tool_outcomes
		from thread_turns t where t.id = $1`, turnID)
}

// record queues the scores of a turn, and charges what they took to its agent and space: it counts as used there, but not as a turn. The caller's
// transaction makes sure that it rates the turn, and does so once.
func record(b *pgx.Batch, turnID string, g grade.Graded, now time.Time) {
	var input, out int
	var micros int64
	for _, s := range g.Spent {
		in := s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
		input, out = input+in, out+s.Usage.OutputTokens
		if s.CostMicros != nil {
			micros += *s.CostMicros
		}
		budget.Charge(b, turnID, s.ModelID, s.Usage, s.CostMicros, now)
	}
	b.Queue(`update thread_turns set evaluator_scores = $2, score_after = null, grading_input_tokens = $3, grading_output_tokens = $4, grading_cost_micros = $5 where id = $1`,
		turnID, g.Scores, input, out, micros)
}
