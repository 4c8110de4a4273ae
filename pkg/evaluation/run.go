package evaluation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// RunStatus is how far a run is.
type RunStatus string

const (
	Running   RunStatus = "running"
	Finished  RunStatus = "finished"
	Cancelled RunStatus = "cancelled"
)

// Run is one time that an agent was given an evaluation's cases, as the API shows it.
type Run struct {
	ID             string           `json:"id"`
	EvaluationID   string           `json:"evaluationId"`
	Number         int              `json:"number"`  // of the evaluation, from 1
	Version        int              `json:"version"` // of the evaluation
	AgentID        string           `json:"agentId"`
	Status         RunStatus        `json:"status"`
	Evaluators     []evaluator.Spec `json:"evaluators"`
	Concurrency    int              `json:"concurrency"`
	PassThreshold  float64          `json:"passThreshold"`
	CaseCount      int              `json:"caseCount"`
	WaitingCount   int              `json:"waitingCount"`
	RunningCount   int              `json:"runningCount"`
	PassedCount    int              `json:"passedCount"`
	FailedCount    int              `json:"failedCount"`
	CancelledCount int              `json:"cancelledCount"`
	PassRate       *float64         `json:"passRate"` // of the cases that are over; nil: none
	Rates          []Rate           `json:"rates"`    // by evaluator, in their order
	InputTokens    int              `json:"inputTokens"`
	OutputTokens   int              `json:"outputTokens"`
	CostUSD        string           `json:"costUsd"` // of the turns, as far as prices are known; six fractional digits
	GradingInput   int              `json:"gradingInputTokens"`
	GradingOutput  int              `json:"gradingOutputTokens"`
	GradingCostUSD string           `json:"gradingCostUsd"`
	UserID         string           `json:"userId"` // who started it
	CreatedAt      ident.Time       `json:"createdAt"`
	FinishedAt     *ident.Time      `json:"finishedAt"`
}

// Rate is how many of a run's answers an evaluator let pass. A case whose turn failed counts, as one that did not.
type Rate struct {
	Evaluator    string   `json:"evaluator"`
	PassedCount  int      `json:"passedCount"`
	CaseCount    int      `json:"caseCount"`    // that are over
	PassRate     *float64 `json:"passRate"`     // nil: none is over
	AverageScore *float64 `json:"averageScore"` // of those that have a score; nil: none has
}

// runs are rows of runs with their counts. What graders used is the turns', and is counted there; a run's rates are read from its results, while it
// goes on and afterwards: they are never more than MaxCases.
const runs = `select r.id, r.evaluation_id, r.number, r.version, r.agent_id, r.status, r.evaluators, r.concurrency, r.pass_threshold, r.case_count,
		c.waiting, c.running, c.passed, c.failed, c.cancelled, c.input_tokens, c.output_tokens, c.cost_micros, c.grading_input, c.grading_output, c.grading_micros,
		r.user_id, r.created_at, r.finished_at,
		coalesce((select json_agg(json_build_object('evaluator', s.name, 'passedCount', s.passed, 'caseCount', c.passed + c.failed, 'averageScore', s.average) order by s.place)
			from (select e.place, e.spec->>'name' as name, count(*) filter (where (g.score->>'score')::numeric >= r.pass_threshold) as passed,
					avg((g.score->>'score')::numeric) as average
				from json_array_elements(r.evaluators) with ordinality e (spec, place)
					left join evaluation_results x on x.run_id = r.id and x.status in ('passed', 'failed')
					left join lateral json_array_elements(x.scores) g (score) on g.score->>'evaluator' = e.spec->>'name'
				group by 1, 2) s), '[]')
	from %s r cross join lateral (
		select count(*) filter (where x.status = 'waiting') as waiting, count(*) filter (where x.status = 'running') as running,
			count(*) filter (where x.status = 'passed') as passed, count(*) filter (where x.status = 'failed') as failed,
			count(*) filter (where x.status = 'cancelled') as cancelled,
			coalesce(sum(t.input_tokens), 0)::bigint as input_tokens, coalesce(sum(t.output_tokens), 0)::bigint as output_tokens,
			coalesce(sum(t.cost_micros), 0)::bigint as cost_micros, coalesce(sum(t.grading_input_tokens), 0)::bigint as grading_input,
			coalesce(sum(t.grading_output_tokens), 0)::bigint as grading_output, coalesce(sum(t.grading_cost_micros), 0)::bigint as grading_micros
		from evaluation_results x left join thread_turns t on t.tenant_id = x.tenant_id and t.id = x.turn_id where x.run_id = r.id) c `

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	var cost, grading int64
	err := row.Scan(&r.ID, &r.EvaluationID, &r.Number, &r.Version, &r.AgentID, &r.Status, &r.Evaluators, &r.Concurrency, &r.PassThreshold, &r.CaseCount,
		&r.WaitingCount, &r.RunningCount, &r.PassedCount, &r.FailedCount, &r.CancelledCount, &r.InputTokens, &r.OutputTokens, &cost, &r.GradingInput, &r.GradingOutput,
		&grading, &r.UserID, &r.CreatedAt, &r.FinishedAt, &r.Rates)
	r.CostUSD, r.GradingCostUSD = dollars(cost), dollars(grading)
	r.PassRate = share(r.PassedCount, r.PassedCount+r.FailedCount)
	for i := range r.Rates {
		r.Rates[i].PassRate = share(r.Rates[i].PassedCount, r.Rates[i].CaseCount)
	}
	return r, err
}

func share(part, all int) *float64 {
	if all == 0 {
		return nil
	}
	return new(float64(part) / float64(all))
}

func dollars(micros int64) string { return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6) }

// GetRun is one run.
func GetRun(ctx context.Context, q postgres.Querier, id string) (Run, error) {
	if !ident.Valid(id) {
		return Run{}, fault.Missing("evaluation run")
	}
	return postgres.One(ctx, q, "evaluation run", scanRun, fmt.Sprintf(runs, `evaluation_runs`)+`where r.id = $1`, id)
}

// RunCursor is the sort key of an evaluation's runs.
type RunCursor struct{ Number int }

// Cursor is r's place in the list.
func (r Run) Cursor() RunCursor { return RunCursor{r.Number} }

// Runs are up to limit runs of an evaluation after the cursor, newest first.
func Runs(ctx context.Context, q postgres.Querier, evaluationID string, after *RunCursor, limit int) ([]Run, error) {
	before := 1<<31 - 1
	if after != nil {
		before = after.Number
	}
	return postgres.All(ctx, q, scanRun, fmt.Sprintf(runs, `(select * from evaluation_runs where evaluation_id = $1 and number < $2 order by number desc limit $3)`)+
		`order by r.number desc`, evaluationID, before, limit)
}

// startGrace is how long a run waits for whoever was invoked to work on it, before the sweep invokes again.
const startGrace = 30 * time.Second

// Start makes a run of an evaluation as it is now, of its agent or of another one. Whoever commits must then invoke run-evaluation. An evaluation
// has one run at a time.
func Start(ctx context.Context, tx pgx.Tx, tenantID, userID, evaluationID string, agentID *string) (Run, error) {
	e, err := lock(ctx, tx, evaluationID)
	if err != nil {
		return Run{}, err
	}
	if agentID != nil {
		e.AgentID = *agentID
	}
	if err := checkAgent(ctx, tx, e.AgentID); err != nil {
		return Run{}, err
	}
	id := ident.New()
	var b pgx.Batch
	b.Queue(`update evaluations set run_count = run_count + 1 where id = $1`, e.ID)
	b.Queue(`insert into evaluation_runs (tenant_id, id, evaluation_id, number, version, agent_id, evaluators, concurrency, pass_threshold, case_count, lease_until, user_id, created_at)
		select $1, $2, id, run_count, version, $4, evaluators, concurrency, pass_threshold, case_count, clock_timestamp() + $5, $6, $7 from evaluations where id = $3`,
		tenantID, id, e.ID, e.AgentID, startGrace, userID, ident.Now())
	b.Queue(`insert into evaluation_results (tenant_id, run_id, number, key, input, expected, metadata)
		select tenant_id, $2, number, key, input, expected, metadata from evaluation_cases where evaluation_id = $1`, e.ID, id)
	err = tx.SendBatch(ctx, &b).Close()
	if postgres.IsUnique(err, "evaluation_runs_running") {
		return Run{}, fault.Invalid("a run of the evaluation is going on")
	}
	if err != nil {
		return Run{}, err
	}
	return GetRun(ctx, tx, id)
}
