package evaluation

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Comparison is what a finished run changed against the finished one before it. Cases are the same when their inputs are.
type Comparison struct {
	PreviousRunID   string      `json:"previousRunId"`
	PreviousNumber  int         `json:"previousNumber"`
	PreviousAgentID string      `json:"previousAgentId"`
	PassRateDelta   float64     `json:"passRateDelta"` // of all their cases: this run's less the previous one's
	Rates           []RateDelta `json:"rates"`         // of the evaluators that both have, by name
	NewlyFailed     []Change    `json:"newlyFailed"`   // passed then, failed now
	NewlyPassed     []Change    `json:"newlyPassed"`   // failed then, passed now
	AddedCount      int         `json:"addedCount"`    // cases that the previous run had not
	RemovedCount    int         `json:"removedCount"`  // cases that only it had
}

// RateDelta is how much more often an evaluator lets pass.
type RateDelta struct {
	Evaluator     string  `json:"evaluator"`
	PassRateDelta float64 `json:"passRateDelta"`
}

// Change is a case that came out otherwise.
type Change struct {
	Number           int     `json:"number"`
	ThreadID         *string `json:"threadId"` // public; nil: none was opened
	PreviousNumber   int     `json:"previousNumber"`
	PreviousThreadID *string `json:"previousThreadId"`
}

// Compare compares a run with the finished one before it; nil for a run that is not finished, or the first that is.
func Compare(ctx context.Context, q postgres.Querier, run Run) (*Comparison, error) {
	if run.Status != Finished {
		return nil, nil
	}
	previous, err := postgres.All(ctx, q, pgx.RowTo[string], `select id::text from evaluation_runs
		where evaluation_id = $1 and number < $2 and status = 'finished' order by number desc limit 1`, run.EvaluationID, run.Number)
	if err != nil || len(previous) == 0 {
		return nil, err
	}
	before, err := GetRun(ctx, q, previous[0])
	if err != nil {
		return nil, err
	}
	c := &Comparison{PreviousRunID: before.ID, PreviousNumber: before.Number, PreviousAgentID: before.AgentID, PassRateDelta: delta(run.PassRate, before.PassRate),
		Rates: []RateDelta{}, NewlyFailed: []Change{}, NewlyPassed: []Change{}}
	for _, now := range run.Rates {
		for _, then := range before.Rates {
			if now.Evaluator == then.Evaluator {
				c.Rates = append(c.Rates, RateDelta{now.Evaluator, delta(now.PassRate, then.PassRate)})
			}
		}
	}
	return c, c.changes(ctx, q, run.ID, before.ID)
}

func delta(now, then *float64) float64 {
	if now == nil || then == nil {
		return 0 // a finished run has cases
	}
	return *now - *then
}

func (c *Comparison) changes(ctx context.Context, q postgres.Querier, run, before string) error {
	rows, err := q.Query(ctx, `select a.number, b.number, a.status, b.status, ta.prefix, ta.number, tb.prefix, tb.number
		from (select * from evaluation_results where run_id = $1) a full join (select * from evaluation_results where run_id = $2) b on b.key = a.key
			left join thread_turns ua on ua.tenant_id = a.tenant_id and ua.id = a.turn_id left join threads ta on ta.tenant_id = ua.tenant_id and ta.uuid = ua.thread_uuid
			left join thread_turns ub on ub.tenant_id = b.tenant_id and ub.id = b.turn_id left join threads tb on tb.tenant_id = ub.tenant_id and tb.uuid = ub.thread_uuid
		where a.number is null or b.number is null or a.status <> b.status order by a.number`, run, before)
	if err != nil {
		return err
	}
	var now, then *int
	var status, earlier *ResultStatus
	var prefix, prefixThen *string
	var number, numberThen *int64
	_, err = pgx.ForEachRow(rows, []any{&now, &then, &status, &earlier, &prefix, &number, &prefixThen, &numberThen}, func() error {
		switch {
		case now == nil:
			c.RemovedCount++
		case then == nil:
			c.AddedCount++
		case status == nil || earlier == nil:
			return errors.New("evaluation: a result without a status")
		default:
			change := Change{*now, publicID(prefix, number), *then, publicID(prefixThen, numberThen)}
			if *status == CaseFailed && *earlier == CasePassed {
				c.NewlyFailed = append(c.NewlyFailed, change)
			} else if *status == CasePassed && *earlier == CaseFailed {
				c.NewlyPassed = append(c.NewlyPassed, change)
			}
		}
		return nil
	})
	return err
}
