package evaluation_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// rated is a finished turn of an agent with evaluators, whose scores are due.
func (w *world) rated(evaluators, body string) evaluator.Task {
	w.t.Helper()
	w.sql(`update agent_templates set evaluators = $1::text::json`, evaluators)
	var asked turn.Asked
	require.NoError(w.t, w.tx(func(tx pgx.Tx) error {
		th, err := thread.Create(w.t.Context(), tx, w.TenantID, thread.New{})
		if err != nil {
			return err
		}
		asked, err = turn.Request(w.t.Context(), tx, w.TenantID, turn.Ask{ThreadID: th.ID, Body: body, OnBusy: turn.Enqueue, UserID: w.UserID})
		return err
	}))
	require.NoError(w.t, w.turns.Run(w.t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}))
	w.sql(`update thread_turns set score_after = clock_timestamp() + interval '1 minute' where id = $1`, asked.TurnID)
	return evaluator.Task{TenantID: w.TenantID, TurnID: asked.TurnID}
}

func (w *world) scores(task evaluator.Task) []turn.EvaluatorScore {
	w.t.Helper()
	got, err := turn.Get(w.t.Context(), w.db.App.In(task.TenantID), task.TurnID)
	require.NoError(w.t, err)
	return got.EvaluatorScores
}

const politeAndShort = `[{"name": "short", "type": "length", "maxWords": 2}, {"name": "polite", "type": "rubric", "rubric": "Says \"please\".", "modelId": "offline.echo-1"}]`

func TestATurnIsRatedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.rated(politeAndShort, "/say Wait, please.")
	costs := w.count(`select cost_micros from thread_turns where id = $1`, task.TurnID)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := w.scorer.Score(t.Context(), task); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := []turn.EvaluatorScore{{Evaluator: "short", Score: 1, Reason: new("the answer has 13 characters and 2 words")},
		{Evaluator: "polite", Score: 1, Reason: new("The answer has 1 of the 1 phrases that the rubric quotes.")}}
	require.Equal(t, want, w.scores(task))
	require.Equal(t, 1, w.count(`select count(*) from usage_unmetered where turns = 0`))
	require.Equal(t, costs, w.count(`select cost_micros from thread_turns where id = $1`, task.TurnID), "the turn's own cost is as it was")
	require.Equal(t, 1, w.count(`select count(*) from thread_turns t join usage_unmetered u on u.turns = 0 and u.input_tokens = t.grading_input_tokens
		and u.output_tokens = t.grading_output_tokens and u.cost_micros = t.grading_cost_micros and u.agent_id = t.agent_id where t.id = $1`, task.TurnID))

	w.sql(`update agent_templates set evaluators = '[{"name": "other", "type": "length", "maxWords": 1}]'`)
	require.NoError(t, w.scorer.Score(t.Context(), task))
	require.Equal(t, want, w.scores(task), "a repeated call changes nothing")
}

func TestAnAgentsOwnEvaluators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.rated(politeAndShort, "/say Hi")
	w.sql(`update agents set evaluators = '[{"name": "own", "type": "exact", "text": "Hi"}]'`)
	require.NoError(t, w.scorer.Score(t.Context(), task))
	require.Equal(t, []turn.EvaluatorScore{{Evaluator: "own", Score: 1, Reason: new("the answer is the text")}}, w.scores(task))

	task = w.rated(politeAndShort, "/say Hi")
	w.sql(`update agents set evaluators = '[]'`)
	require.NoError(t, w.scorer.Score(t.Context(), task))
	require.Empty(t, w.scores(task), "an empty list is none, whatever the template has")
	require.Zero(t, w.count(`select count(*) from thread_turns where score_after is not null`))
}

// Whoever rates a turn may die: the sweep finds the turn again.
func TestARatingThatDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var again []evaluator.Task
	w.scorer.Again = func(_ context.Context, task evaluator.Task) error {
		again = append(again, task)
		return nil
	}
	for _, point := range []string{"rating claimed", "rating graded"} {
		task := w.rated(politeAndShort, "/say Yes please")
		require.NoError(t, w.scorer.Score(t.Context(), evaluator.Task{}))
		require.Empty(t, again, "it is not late")
		dying := *w.scorer
		ctx, die := context.WithCancel(t.Context())
		dying.Signal = func(at string) {
			if at == point {
				die()
			}
		}
		require.Error(t, dying.Score(ctx, task))
		require.Empty(t, w.scores(task))
		w.sql(`update thread_turns set score_after = clock_timestamp() - interval '1 second' where score_after is not null`)
		require.NoError(t, w.scorer.Score(t.Context(), evaluator.Task{}))
		require.Equal(t, []evaluator.Task{task}, again)
		require.NoError(t, w.scorer.Score(t.Context(), again[0]))
		require.Len(t, w.scores(task), 2)
		again = nil
	}
}

// silent is a grader that is out of reach.
type silent struct{}

func (silent) Converse(context.Context, model.Request, model.Stream) (model.Response, error) {
	return model.Response{}, model.Failure(model.Unavailable, true, errors.New("no route"))
}

func TestAGraderThatIsOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.rated(politeAndShort, "/say Hi")
	w.scorer.Grader.Model = silent{}
	require.Error(t, w.scorer.Score(t.Context(), task))
	require.Empty(t, w.scores(task))
	require.Equal(t, 1, w.count(`select count(*) from thread_turns where score_after > clock_timestamp()`), "it is tried again")
	w.sql(`update thread_turns set finished_at = finished_at - interval '25 hours'`)
	require.NoError(t, w.scorer.Score(t.Context(), task))
	require.Equal(t, new("the grader could not be asked for a day"), w.scores(task)[1].Reason)
	require.Equal(t, 1.0, w.scores(task)[0].Score)
}

// The turn of a case is rated with its run, with what the case expects: not by the agent's evaluators.
func TestACaseIsNotRatedAsATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql(`update agent_templates set evaluators = $1::text::json`, politeAndShort)
	r := w.start(w.evaluation(1, 1, says()))
	w.runner.Dispatch = func(_ context.Context, tenantID, turnID string) error {
		task := evaluator.Task{TenantID: tenantID, TurnID: turnID}
		require.NoError(t, w.turns.Run(t.Context(), turn.Dispatch{TenantID: tenantID, TurnID: turnID}))
		w.sql(`update thread_turns set score_after = clock_timestamp() where id = $1`, turnID)
		require.NoError(t, w.scorer.Score(t.Context(), task))
		require.Empty(t, w.scores(task))
		require.Zero(t, w.count(`select count(*) from thread_turns where score_after is not null`))
		return nil
	}
	require.NoError(t, w.runner.Run(t.Context(), evaluation.Job{TenantID: w.TenantID, RunID: r.ID}))
	require.Len(t, w.scores(evaluator.Task{TenantID: w.TenantID, TurnID: *w.results(r.ID)[0].TurnID}), 3)
}
