package turn

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

const columns = `t.id, th.uuid, th.prefix, th.number, t.agent_id, t.number, t.status, t.attempts, t.phases, t.model, t.input_tokens, t.output_tokens, t.cost_micros,
	t.tool_outcomes, t.guardrail_decisions, t.evaluator_scores, t.error, t.queued_at, t.started_at, t.finished_at, t.steps_pruned_at, t.waits_for, t.retry_of,
	(select coalesce(json_agg(json_build_object('toolCallId', p.tool_call_id, 'name', p.name, 'input', p.input::text, 'status', p.status, 'userId', p.user_id,
		'reason', p.reason, 'createdAt', p.created_at, 'decidedAt', p.decided_at) order by p.step), '[]')
		from tool_approvals p where p.tenant_id = t.tenant_id and p.turn_id = t.id)`

const from = ` from thread_turns t left join threads th on th.tenant_id = t.tenant_id and th.uuid = t.thread_uuid `

func scan(row pgx.CollectableRow) (Turn, error) {
	var t Turn
	var prefix *string
	var number, micros *int64
	err := row.Scan(&t.ID, &t.threadUUID, &prefix, &number, &t.AgentID, &t.number, &t.Status, &t.Attempts, &t.Phases, &t.Model, &t.InputTokens, &t.OutputTokens,
		&micros, &t.ToolOutcomes, &t.GuardrailDecisions, &t.EvaluatorScores, &t.Error, &t.QueuedAt, &t.StartedAt, &t.FinishedAt, &t.StepsPrunedAt, &t.WaitsFor, &t.RetryOf, &t.Approvals)
	t.ThreadID, t.CostUSD = publicID(prefix, number), dollars(micros)
	return t, err
}

// publicID is a thread's id; nil for none.
func publicID(prefix *string, number *int64) *string {
	if prefix == nil || number == nil {
		return nil
	}
	id := ident.Thread{Prefix: *prefix, Number: *number}.String()
	return &id
}

// dollars is an amount in millionths as the API spells it.
func dollars(micros *int64) *string {
	if micros == nil {
		return nil
	}
	usd := fmt.Sprintf("%d.%06d", *micros/1e6, *micros%1e6)
	return &usd
}

// Get is one turn.
func Get(ctx context.Context, q postgres.Querier, id string) (Turn, error) {
	if !ident.Valid(id) {
		return Turn{}, fault.Missing("turn")
	}
	return postgres.One(ctx, q, "turn", scan, `select `+columns+from+`where t.id = $1 and t.agent_id is not null`, id) // without an agent it is a webhook's run of a routine
}

// Cursor is the sort key of a thread's turns.
type Cursor struct{ Number int }

// Cursor is t's place in the list.
func (t Turn) Cursor() Cursor { return Cursor{*t.number} }

// List is up to limit turns of each thread after the cursor, newest first, in one query, by thread UUID.
func List(ctx context.Context, q postgres.Querier, threads []thread.Ref, after *Cursor, limit int) (map[string][]Turn, error) {
	uuids := make([]string, len(threads))
	for i, t := range threads {
		uuids[i] = t.UUID
	}
	before := 1<<31 - 1
	if after != nil {
		before = after.Number
	}
	turns, err := postgres.All(ctx, q, scan, `select `+columns+` from unnest($1::uuid[]) as asked (uuid) join threads th on th.uuid = asked.uuid cross join lateral (
		select * from thread_turns t where t.thread_uuid = th.uuid and t.number < $2 order by t.number desc limit $3) t`, uuids, before, limit)
	byThread := make(map[string][]Turn, len(threads))
	for _, t := range turns {
		byThread[*t.threadUUID] = append(byThread[*t.threadUUID], t)
	}
	return byThread, err
}
