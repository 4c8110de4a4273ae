package evaluation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// ResultStatus is how far a case of a run is.
type ResultStatus string

const (
	CaseWaiting   ResultStatus = "waiting"   // for its turn
	CaseRunning   ResultStatus = "running"   // its thread is open
	CasePassed    ResultStatus = "passed"    // every score is the threshold or more
	CaseFailed    ResultStatus = "failed"    // a score is less, or there are none for the reason in Error
	CaseCancelled ResultStatus = "cancelled" // with its run
)

// Result is a case of a run and what came of it, as the API shows it.
type Result struct {
	Number     int           `json:"number"` // of the case
	Status     ResultStatus  `json:"status"`
	Input      string        `json:"input"`
	Expected   *string       `json:"expected"`
	Metadata   *string       `json:"metadata"` // a JSON object, as text
	ThreadID   *string       `json:"threadId"` // public; nil: none was opened
	TurnID     *string       `json:"turnId"`
	Output     *string       `json:"output"` // the agent's answer; nil: none
	Scores     []grade.Score `json:"scores"` // in the evaluators' order
	Error      *string       `json:"error"`  // why there are no scores
	FinishedAt *ident.Time   `json:"finishedAt"`
}

// ResultCursor is the sort key of a run's results.
type ResultCursor struct{ Number int }

// Cursor is r's place in the list.
func (r Result) Cursor() ResultCursor { return ResultCursor{r.Number} }

// output is what a turn said: all its parts, if it stopped for a person in between.
const output = `(select string_agg(m.body, E'\n\n' order by m.position) from messages m where m.thread_uuid = t.thread_uuid and m.turn_id = t.id and m.role = 'assistant')`

// Results are up to limit results of each run after the cursor, in the order of the cases, in one query, by the run's id. Of one status, or of all.
func Results(ctx context.Context, q postgres.Querier, runs []string, status *ResultStatus, after *ResultCursor, limit int) (map[string][]Result, error) {
	start := 0
	if after != nil {
		start = after.Number
	}
	rows, err := q.Query(ctx, `select x.run_id, x.number, x.status, x.input, x.expected, x.metadata::text, th.prefix, th.number, x.turn_id, `+output+`, x.scores, x.error, x.finished_at
		from unnest($1::uuid[]) as r (id) cross join lateral (
			select * from evaluation_results x where x.run_id = r.id and x.number > $2 and ($4::text is null or x.status = $4) order by x.number limit $3) x
		left join thread_turns t on t.tenant_id = x.tenant_id and t.id = x.turn_id
		left join threads th on th.tenant_id = t.tenant_id and th.uuid = t.thread_uuid order by x.run_id, x.number`, runs, start, limit, status)
	if err != nil {
		return nil, err
	}
	results := make(map[string][]Result, len(runs))
	var of string
	var x Result
	var prefix *string
	var number *int64
	_, err = pgx.ForEachRow(rows, []any{&of, &x.Number, &x.Status, &x.Input, &x.Expected, &x.Metadata, &prefix, &number, &x.TurnID, &x.Output, &x.Scores, &x.Error, &x.FinishedAt},
		func() error {
			x.ThreadID = publicID(prefix, number)
			results[of] = append(results[of], x)
			x = Result{}
			return nil
		})
	return results, err
}

// publicID is a thread's id; nil for none.
func publicID(prefix *string, number *int64) *string {
	if prefix == nil || number == nil {
		return nil
	}
	return new(ident.Thread{Prefix: *prefix, Number: *number}.String())
}
