package evaluation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// says is what the agent is told: the right answer, but for those cases.
func says(wrong ...int) func(i int) string {
	return func(i int) string {
		for _, n := range wrong {
			if n == i {
				return fmt.Sprintf("Case %d\n/say no idea, sorry about that", i)
			}
		}
		return fmt.Sprintf("Case %d\n/say answer %d", i, i)
	}
}

func TestARunAndItsComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.evaluation(6, 3, says(2, 5))
	first := w.start(e)
	require.Equal(t, evaluation.Running, first.Status)
	require.Equal(t, 6, first.WaitingCount)
	require.Nil(t, first.PassRate)
	w.work(first)

	first = w.run(first.ID)
	require.Equal(t, evaluation.Finished, first.Status)
	require.Equal(t, []int{0, 0, 4, 2, 0}, []int{first.WaitingCount, first.RunningCount, first.PassedCount, first.FailedCount, first.CancelledCount})
	require.InDelta(t, 4.0/6, *first.PassRate, 1e-9)
	require.Equal(t, []evaluation.Rate{
		{Evaluator: "exact", PassedCount: 4, CaseCount: 6, PassRate: new(4.0 / 6), AverageScore: first.Rates[0].AverageScore},
		{Evaluator: "length", PassedCount: 4, CaseCount: 6, PassRate: new(4.0 / 6), AverageScore: first.Rates[1].AverageScore},
		{Evaluator: "rubric", PassedCount: 4, CaseCount: 6, PassRate: new(4.0 / 6), AverageScore: first.Rates[2].AverageScore}}, first.Rates)
	require.InDelta(t, 4.0/6, *first.Rates[0].AverageScore, 1e-9)
	require.Positive(t, first.InputTokens)
	require.Positive(t, first.GradingInput)
	require.NotEqual(t, "0.000000", first.GradingCostUSD)
	second := w.results(first.ID)[1]
	require.Equal(t, []grade.Score{{Evaluator: "exact", Reason: "the answer is “no idea, sorry about that”, not “answer 2”"},
		{Evaluator: "length", Reason: "the answer has 25 characters and 5 words; at most 3 words are allowed"},
		{Evaluator: "rubric", Reason: "The answer has 0 of the 2 words that are expected."}}, second.Scores)
	th, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), *second.ThreadID)
	require.NoError(t, err)
	require.Equal(t, thread.Closed, th.Status)
	require.Equal(t, "Answers #2", *th.Title)
	require.Contains(t, *th.Metadata, first.ID)
	none, err := evaluation.Compare(t.Context(), w.db.App.In(w.TenantID), first)
	require.NoError(t, err)
	require.Nil(t, none, "there is nothing to compare with")

	// Another version: case 2 is right now, 3 is wrong, 6 is gone, a seventh has come.
	cases := `[`
	for i, right := range []bool{true, true, false, true, false} {
		if i > 0 {
			cases += `,`
		}
		cases += fmt.Sprintf(`{"input": %q, "expected": %q}`, says(2, 5)(i+1), map[bool]string{true: "answer " + fmt.Sprint(i+1), false: "something else"}[right])
	}
	cases += `, {"input": "/say answer 7", "expected": "answer 7"}]`
	require.NoError(t, w.tx(func(tx pgx.Tx) (err error) {
		e, err = evaluation.Update(t.Context(), tx, w.TenantID, e.ID, fields(t, `{"cases": `+cases+`}`))
		return err
	}))
	require.Equal(t, 2, e.Version)
	w.sql(`update agents set name = 'Bea' where id = $1`, w.AgentID)
	cancelled := w.start(e)
	require.NoError(t, w.tx(func(tx pgx.Tx) error {
		_, _, err := evaluation.Cancel(t.Context(), tx, w.TenantID, cancelled.ID)
		return err
	}))
	next := w.start(e)
	require.Equal(t, 3, next.Number)
	require.Equal(t, 2, next.Version)
	w.work(next)
	next = w.run(next.ID)
	compared, err := evaluation.Compare(t.Context(), w.db.App.In(w.TenantID), next)
	require.NoError(t, err)
	require.Equal(t, first.ID, compared.PreviousRunID, "a cancelled run is nothing to compare with")
	require.InDelta(t, *next.PassRate-*first.PassRate, compared.PassRateDelta, 1e-9)
	require.Len(t, compared.Rates, 3)
	require.Equal(t, "exact", compared.Rates[0].Evaluator)
	before, now := w.results(first.ID), w.results(next.ID)
	require.Equal(t, []evaluation.Change{{Number: 3, ThreadID: now[2].ThreadID, PreviousNumber: 3, PreviousThreadID: before[2].ThreadID}}, compared.NewlyFailed)
	require.Empty(t, compared.NewlyPassed)
	require.Equal(t, 1, compared.AddedCount)
	require.Equal(t, 1, compared.RemovedCount)

	list, err := evaluation.Runs(t.Context(), w.db.App.In(w.TenantID), e.ID, nil, 10)
	require.NoError(t, err)
	require.Equal(t, []evaluation.Run{next, w.run(cancelled.ID), first}, list)
	list, err = evaluation.Runs(t.Context(), w.db.App.In(w.TenantID), e.ID, &evaluation.RunCursor{Number: 3}, 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, cancelled.ID, list[0].ID)
}

func TestAnotherAgentIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := ident.New()
	w.sql(`insert into agents (tenant_id, id, name, status, template_id) values ($1, $2, 'Other', 'active', $3)`, w.TenantID, other, w.TemplateID)
	e := w.evaluation(2, 2, says())
	r, err := w.startAs(e, &other)
	require.NoError(t, err)
	require.Equal(t, other, r.AgentID)
	w.work(r)
	require.Equal(t, 2, w.count(`select count(*) from thread_turns where agent_id = $1`, other))
	_, err = w.startAs(e, new(ident.New()))
	require.Equal(t, fault.Missing("agent"), err)
	_, err = w.startAs(e, new("x"))
	require.Equal(t, fault.Missing("agent"), err)
}

func TestAnEvaluationHasOneRunAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.evaluation(2, 2, says())
	r := w.start(e)
	_, err := w.startAs(e, nil)
	require.EqualError(t, err, "a run of the evaluation is going on")
	require.EqualError(t, w.tx(func(tx pgx.Tx) error {
		_, err := evaluation.Delete(t.Context(), tx, e.ID)
		return err
	}), "a run of the evaluation is going on: cancel it first")
	w.work(r)
	w.work(r) // a second call finds nothing to do
	w.work(w.start(e))
	require.NoError(t, w.tx(func(tx pgx.Tx) error {
		_, err := evaluation.Delete(t.Context(), tx, e.ID)
		return err
	}))
	require.Zero(t, w.count(`select (select count(*) from evaluation_results) + (select count(*) from evaluation_runs) + (select count(*) from evaluation_cases)`))
	require.Equal(t, 4, w.count(`select count(*) from threads`))
}

// A case at the agent's rate limit waits, and goes on when the limit lets it.
func TestARateLimitMakesCasesWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`update agents set turns_per_hour = 3 where id = $1`, w.AgentID)
	r := w.start(w.evaluation(5, 5, says()))
	w.work(r)
	limited := w.run(r.ID)
	require.Equal(t, evaluation.Running, limited.Status)
	require.Equal(t, 3, limited.PassedCount)
	require.Equal(t, 2, limited.WaitingCount)
	require.Empty(t, w.again, "nobody is woken for it: the sweep is")
	require.Zero(t, w.count(`select count(*) from lookup_due_evaluation_runs(10)`))

	w.sql(`update thread_turns set queued_at = queued_at - interval '1 hour'`)
	w.abandon()
	require.NoError(t, w.runner.Run(t.Context(), evaluation.Job{}))
	require.Equal(t, []evaluation.Job{{TenantID: w.TenantID, RunID: r.ID}}, w.again)
	w.work(r)
	require.Equal(t, 5, w.run(r.ID).PassedCount)
}

// A budget that does not cover a case fails it, and says so.
func TestABudgetFailsCases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'agent', $2, 0)`, w.TenantID, w.AgentID)
	r := w.start(w.evaluation(3, 2, says()))
	w.work(r)
	done := w.run(r.ID)
	require.Equal(t, evaluation.Finished, done.Status)
	require.Equal(t, 3, done.FailedCount)
	require.Equal(t, 0.0, *done.Rates[0].PassRate)
	require.Nil(t, done.Rates[0].AverageScore)
	for _, x := range w.results(r.ID) {
		require.Equal(t, "the agent's monthly budget of 0.00 USD does not cover another turn", *x.Error)
		require.Nil(t, x.ThreadID)
	}
}

func TestAnAgentThatTakesNoTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(3, 1, says()))
	w.sql(`update agents set status = 'suspended' where id = $1`, w.AgentID)
	w.work(r)
	require.Equal(t, 3, w.run(r.ID).FailedCount)
	require.Equal(t, "the agent is suspended and takes no turns", *w.results(r.ID)[2].Error)
	w.sql(`update agents set status = 'archived' where id = $1`, w.AgentID)
	_, err := w.startAs(evaluation.Evaluation{ID: r.EvaluationID}, nil)
	require.EqualError(t, err, "the agent is archived")
}

// A case whose turn fails has failed, with the turn's reason and no scores; a turn that waits for a person has nobody to wait for.
func TestTurnsThatDoNotSucceed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(2, 2, func(i int) string {
		return map[int]string{1: "/fail validation", 2: "/say answer 2"}[i]
	}))
	w.lose = true
	ctx, cancel := context.WithCancel(t.Context())
	w.runner.Dispatch = func(ctx context.Context, tenantID, turnID string) error {
		if w.count(`select count(*) from evaluation_results where turn_id is not null`) == 2 {
			w.sql(`update thread_turns set status = 'waiting', started_at = clock_timestamp(), lease_until = null where id = $1`, turnID)
			w.sql(`update threads set status = 'waiting' where uuid = (select thread_uuid from thread_turns where id = $1)`, turnID)
			return nil
		}
		w.lose = false
		return w.dispatch(ctx, tenantID, turnID)
	}
	defer cancel()
	require.NoError(t, w.runner.Run(ctx, evaluation.Job{TenantID: w.TenantID, RunID: r.ID}))
	results := w.results(r.ID)
	require.Equal(t, "The language model refused the request as invalid.", *results[0].Error)
	require.Equal(t, "the agent asked a person, and nobody answers in an evaluation", *results[1].Error)
	require.Empty(t, results[0].Scores)
	require.Equal(t, 2, w.run(r.ID).FailedCount)
	require.Equal(t, 2, w.count(`select count(*) from threads where status = 'closed'`))
	require.Equal(t, 2, w.count(`select count(*) from thread_turns where status = 'failed'`))
}

func TestWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(3, 1, says()))
	w.lose = true
	w.runner.Signal = func(point string) {
		if point == "opened" {
			w.sql(`update evaluation_results set opened_at = opened_at - interval '61 minutes' where status = 'running' and number = 1`)
			w.sql(`update evaluation_runs set created_at = created_at - interval '25 hours' where (select count(*) from evaluation_results where turn_id is not null) = 2`)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(patiently))
	defer cancel()
	w.runner.Margin = patiently - time.Second
	require.NoError(t, w.runner.Run(ctx, evaluation.Job{TenantID: w.TenantID, RunID: r.ID}))
	require.Len(t, w.again, 1, "its time was up: it hands over")
	w.work(r)
	done := w.run(r.ID)
	require.Equal(t, evaluation.Finished, done.Status)
	results := w.results(r.ID)
	require.Equal(t, "the case took longer than an hour", *results[0].Error)
	require.Equal(t, "the run took longer than a day", *results[1].Error)
	require.Equal(t, "the run took longer than a day", *results[2].Error)
	require.Nil(t, results[2].TurnID)
}

func TestACancelledRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(4, 2, says()))
	w.lose = true
	opened := 0
	w.runner.Signal = func(point string) {
		if point != "opened" {
			return
		}
		if opened++; opened == 2 {
			require.NoError(t, w.tx(func(tx pgx.Tx) error {
				_, notices, err := evaluation.Cancel(t.Context(), tx, w.TenantID, r.ID)
				require.Len(t, notices, 2, "two threads are closed")
				return err
			}))
		}
	}
	w.work(r)
	done := w.run(r.ID)
	require.Equal(t, evaluation.Cancelled, done.Status)
	require.Equal(t, 4, done.CancelledCount)
	require.NotNil(t, done.FinishedAt)
	require.Nil(t, done.PassRate)
	require.Equal(t, 2, w.count(`select count(*) from thread_turns where status = 'failed' and error = 'the evaluation run was cancelled'`))
	require.Equal(t, 2, w.count(`select count(*) from threads where status = 'closed'`))
	require.Zero(t, w.count(`select count(*) from lookup_due_evaluation_runs(10)`))

	again := func(id string) error {
		return w.tx(func(tx pgx.Tx) error {
			_, _, err := evaluation.Cancel(t.Context(), tx, w.TenantID, id)
			return err
		})
	}
	require.NoError(t, again(r.ID))
	w.runner.Signal, w.lose = nil, false
	finished := w.start(evaluation.Evaluation{ID: r.EvaluationID})
	w.work(finished)
	require.EqualError(t, again(finished.ID), "the run is finished")
	require.Equal(t, fault.Missing("evaluation run"), again(ident.New()))
}

// Two workers that are called for one run at once do its work once; a worker that stops hands over.
func TestWorkersShareARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(8, 4, says()))
	stopping, stop := context.WithCancel(t.Context())
	settled := 0
	w.runner.Signal = func(point string) {
		if point == "settled" {
			if settled++; settled == 2 {
				stop()
			}
		}
	}
	require.ErrorIs(t, w.runner.Run(stopping, evaluation.Job{TenantID: w.TenantID, RunID: r.ID}), context.Canceled)
	require.Equal(t, 1, w.count(`select count(*) from lookup_due_evaluation_runs(10)`))
	w.runner.Signal = nil
	errs := make(chan error, 3)
	for range 3 {
		go func() { errs <- w.runner.Run(t.Context(), evaluation.Job{TenantID: w.TenantID, RunID: r.ID}) }()
	}
	for range 3 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, 8, w.run(r.ID).PassedCount)
	require.Equal(t, 8, w.count(`select count(*) from threads`))
	require.LessOrEqual(t, w.most, 4)
}

// A grader that stays out of reach fails the case, after some tries, and holds nothing up for good.
func TestAGraderOfARunThatIsOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(w.evaluation(2, 2, says()))
	w.runner.Grader.Model, w.runner.Pause = silent{}, time.Millisecond
	w.work(r)
	require.Equal(t, 2, w.run(r.ID).FailedCount)
	scores := w.results(r.ID)[0].Scores
	require.Equal(t, []grade.Score{{Evaluator: "exact", Score: 1, Reason: "the answer is the text"},
		{Evaluator: "length", Score: 1, Reason: "the answer has 8 characters and 2 words"}, {Evaluator: "rubric", Reason: "the grader could not be asked"}}, scores)
	require.Equal(t, 2, w.count(`select count(*) from evaluation_results where tries = 4`))
}
