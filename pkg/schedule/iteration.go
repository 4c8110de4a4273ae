package schedule

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Iteration is one turn of an execution that loops, as the API shows it.
type Iteration struct {
	Number       int           `json:"number"` // from 1
	TurnID       string        `json:"turnId"`
	Status       turn.Status   `json:"status"`      // the turn's
	InputTokens  int64         `json:"inputTokens"` // the turn's, and those below are too
	OutputTokens int64         `json:"outputTokens"`
	CostUSD      *string       `json:"costUsd"`     // six fractional digits; nil: the price is unknown
	Scores       []grade.Score `json:"scores"`      // of the goal's evaluators, in their order; none: it was not rated
	GoalReached  *bool         `json:"goalReached"` // nil: it was not rated
	StartedAt    ident.Time    `json:"startedAt"`
	FinishedAt   *ident.Time   `json:"finishedAt"` // the turn is over, and rated if it is to be
}

// Iterations are those of executions, in order, by the execution's id.
func Iterations(ctx context.Context, q postgres.Querier, executionIDs []string) (map[string][]Iteration, error) {
	rows, err := q.Query(ctx, `select i.execution_id::text, i.number, i.turn_id, t.status, t.input_tokens, t.output_tokens, t.cost_micros, coalesce(i.scores, '[]'), i.goal_reached,
			i.started_at, i.finished_at
		from execution_iterations i join thread_turns t on t.tenant_id = i.tenant_id and t.id = i.turn_id
		where i.execution_id = any($1) order by i.execution_id, i.number`, executionIDs)
	if err != nil {
		return nil, err
	}
	all := map[string][]Iteration{}
	var of string
	var i Iteration
	var micros *int64
	_, err = pgx.ForEachRow(rows, []any{&of, &i.Number, &i.TurnID, &i.Status, &i.InputTokens, &i.OutputTokens, &micros, &i.Scores, &i.GoalReached,
		&i.StartedAt, &i.FinishedAt}, func() error {
		if micros != nil {
			i.CostUSD = new(fmt.Sprintf("%d.%06d", *micros/1e6, *micros%1e6))
		}
		all[of] = append(all[of], i)
		i, micros = Iteration{}, nil
		return nil
	})
	return all, err
}

// queueIteration writes an iteration whose turn is queued.
func queueIteration(b *pgx.Batch, tenantID, executionID string, number int, turnID string) {
	b.Queue(`insert into execution_iterations (tenant_id, execution_id, number, turn_id) values ($1, $2, $3, $4)`, tenantID, executionID, number, turnID)
}

// passScore is what each evaluator of a goal must give, at the least: as by default in evaluations.
const passScore = 0.5

// reached reports whether scores reach a goal.
func reached(scores []grade.Score) bool {
	return !slices.ContainsFunc(scores, func(s grade.Score) bool { return s.Score < passScore })
}
