package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/model"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

// looping is a schedule with that loop.
func (w *world) looping(loop object) pkgschedule.Schedule {
	w.t.Helper()
	return w.schedule(object{"loop": loop})
}

// done is a goal that an answer with this word reaches.
func done(most int) object {
	return object{"maxIterations": most, "goal": []object{{"type": "contains", "texts": []string{"DONE"}}}}
}

// countdown is a model that says DONE in its nth answer.
func countdown(n int) func(context.Context, model.Request, model.Stream) (model.Response, error) {
	var answers atomic.Int32
	return func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		if answers.Add(1) < int32(n) {
			return says(s, "Going on."), nil
		}
		return says(s, "DONE."), nil
	}
}

// history is what the iterations of an execution say, in short.
func (x *execution) history() (lines []string) {
	x.w.t.Helper()
	var id string
	require.NoError(x.w.t, x.w.super.QueryRow(x.w.t.Context(), `select id from executions where arn = $1`, x.arn).Scan(&id))
	all, err := pkgschedule.Iterations(x.w.t.Context(), x.w.p.DB.App.In(x.w.TenantID), []string{id})
	require.NoError(x.w.t, err)
	for i, it := range all[id] {
		require.Equal(x.w.t, i+1, it.Number)
		line := fmt.Sprintf("%s %d+%d", it.Status, it.InputTokens, it.OutputTokens)
		for _, s := range it.Scores {
			line += fmt.Sprintf(" %s=%g", s.Evaluator, s.Score)
		}
		if it.GoalReached != nil {
			line += fmt.Sprintf(" %t", *it.GoalReached)
		}
		if it.FinishedAt == nil {
			line += " ..."
		}
		lines = append(lines, line)
	}
	return lines
}

func TestALoopReachesItsGoal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = countdown(3)
	x := w.due(w.looping(done(10)))
	r := x.whole()
	require.Equal(t, "succeeded goalReached", string(r.Status)+" "+string(*r.StopReason))
	require.Equal(t, []string{"succeeded 10+5 contains=0 false", "succeeded 10+5 contains=0 false", "succeeded 10+5 contains=1 true"}, x.history())
	th := w.thread(*r.ThreadID)
	require.Equal(t, thread.Closed, th.Status)
	require.Equal(t, []string{"user: Sum up the day.", "assistant: Going on.", "user: " + pkgschedule.DefaultContinuation, "assistant: Going on.",
		"user: " + pkgschedule.DefaultContinuation, "assistant: DONE."}, w.messages(th))
	require.Equal(t, []int{1, 1, 3, 6}, w.counts())
	require.Equal(t, record{Trigger: "scheduled", Status: "succeeded", TurnID: r.TurnID, StopReason: new("goalReached"), Finished: true, FinishedAfterStart: true}, x.record())
	require.Equal(t, []string{"AUTO-1 closed"}, w.updates())
}

// A rubric is rated by a model, which is shown what the loop was begun with; what that takes is charged, and counts in the loop's budget.
func TestALoopIsRatedByARubric(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(`update agent_templates set model_id = 'anthropic.claude-3-5-sonnet-20241022-v2:0'`)
	var turns, rated atomic.Int32
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if !strings.HasPrefix(r.System, grade.Opening) {
			return says(s, fmt.Sprintf("Answer %d.", turns.Add(1))), nil
		}
		rated.Add(1)
		require.Contains(t, r.Messages[0].Blocks[1].Text, "Sum up the day.")
		if strings.Contains(r.Messages[0].Blocks[1].Text, "Answer 2.") {
			return says(s, `{"score": 0.9, "reason": "Good."}`), nil
		}
		return says(s, `{"score": 0.2, "reason": "Not yet."}`), nil
	}
	x := w.due(w.looping(object{"maxIterations": 5, "continuationPrompt": "More.", "goal": []object{{"type": "rubric", "rubric": "It is good.", "modelId": "a-grader"}}}))
	r := x.whole()
	require.Equal(t, "goalReached", string(*r.StopReason))
	require.Equal(t, []string{"succeeded 10+5 rubric=0.2 false", "succeeded 10+5 rubric=0.9 true"}, x.history())
	require.EqualValues(t, 2, rated.Load(), "once each, however often the engine asks")
	require.Equal(t, "user: More.", w.messages(w.thread(*r.ThreadID))[2])
	require.Equal(t, 2, w.count(`usage_unmetered where model = 'a-grader'`))
	var tokens int
	require.NoError(t, w.super.QueryRow(t.Context(), `select sum(grading_tokens) from execution_iterations`).Scan(&tokens))
	require.Equal(t, 30, tokens)
}

func TestWhatStopsALoop(t *testing.T) {
	t.Parallel()
	const covers = `insert into budgets (tenant_id, scope, scope_id, monthly_micros) select tenant_id, 'agent', id, 1 from agents`
	for name, c := range map[string]struct {
		loop          object
		before, after string // the first turn
		want          string
		turns         int
	}{
		"the maximum":                      {done(3), "", "", "maxIterations", 3},
		"the maximum, without a goal":      {object{"maxIterations": 2}, "", "", "maxIterations", 2},
		"a maximum of one":                 {done(1), "", "", "maxIterations", 1},
		"its budget of tokens":             {object{"maxIterations": 9, "budget": object{"tokens": 30}}, "", "", "budget", 2},
		"its budget of money":              {object{"maxIterations": 9, "budget": object{"usdMicros": 8}}, "", "", "budget", 2},
		"a price that nobody knows":        {object{"maxIterations": 9, "budget": object{"usdMicros": 1_000_000}}, `update agent_templates set model_id = 'unknown'`, "", "budget", 1},
		"a budget that covers no turn":     {object{"maxIterations": 9}, "", covers, "budget", 1},
		"the goal and the maximum at once": {object{"maxIterations": 1, "goal": []object{{"type": "length", "minCharacters": 1}}}, "", "", "goalReached", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.say = countdown(100)
			x := w.due(w.looping(c.loop))
			if c.before != "" {
				w.change(c.before)
			}
			var once atomic.Bool
			w.on(func(point string) {
				if point == "iteration rated" && once.CompareAndSwap(false, true) && c.after != "" {
					w.change(c.after)
				}
			}, nil)
			r := x.whole()
			require.Equal(t, "succeeded "+c.want, string(r.Status)+" "+string(*r.StopReason))
			require.Len(t, x.history(), c.turns)
			require.Equal(t, c.turns, w.count("thread_turns"))
			require.Equal(t, thread.Closed, w.thread(*r.ThreadID).Status)
		})
	}
}

// A turn that fails ends the loop, and the execution: with what came of the iterations before.
func TestATurnOfALoopFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var turns atomic.Int32
	w.say = func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if turns.Add(1) == 2 {
			return refuse(ctx, r, s)
		}
		return says(s, "Going on."), nil
	}
	x := w.due(w.looping(done(5)))
	r := x.whole()
	require.Equal(t, "failed failed TurnFailed: No access.", string(r.Status)+" "+string(*r.StopReason)+" "+*r.ErrorType+": "+*r.Error)
	require.Equal(t, []string{"succeeded 10+5 contains=0 false", "failed 0+0"}, x.history())
	require.Equal(t, thread.Failed, w.thread(*r.ThreadID).Status)
}

func TestAPersonTakesALoopOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(w *world, threadID string)
		want    thread.Status
	}{
		"by a message":  {func(w *world, id string) { w.send(id, "Stop, please.", pkgturn.Enqueue) }, thread.Open},
		"by closing it": {func(w *world, _ string) { w.change(`update threads set status = 'closed'`) }, thread.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.say = countdown(100)
			x, o := w.opened(w.looping(done(5)))
			require.Nil(t, x.turn().Failure)
			c.arrange(w, *o.ThreadID)
			for range 2 {
				step, failed := x.next()
				require.Nil(t, failed)
				require.Equal(t, pkgschedule.CloseThread, step.Action)
			}
			r, failed := x.close()
			require.Nil(t, failed)
			require.Equal(t, "succeeded takenOver", string(r.Status)+" "+string(*r.StopReason))
			require.Equal(t, c.want, w.thread(*o.ThreadID).Status)
		})
	}
}

func TestNextTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = countdown(100)
	x, _ := w.opened(w.looping(done(5)))
	require.Nil(t, x.turn().Failure)
	answers, failed := together(8, x.next)
	for i, a := range answers {
		require.Nil(t, failed[i])
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, pkgschedule.RunTurn, answers[0].Action)
	require.Equal(t, []int{1, 1, 2, 3}, w.counts())
	require.Equal(t, []string{"succeeded 10+5 contains=0 false", "queued 0+0 ..."}, x.history())

	again, refused := x.next() // while the next turn runs
	require.Nil(t, refused)
	require.Equal(t, answers[0], again)
	x.data["step"] = again
	_, refused = x.next()
	require.Equal(t, &messages.InvokeResponse_Error{Type: "ValidationError", Message: "the turn is not over"}, refused)
}

// The function dies at every point: the iteration is rated and the next turn queued all the same, once.
func TestNextDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"iteration graded", "iteration rated", "iteration decided"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.say = countdown(100)
			x, _ := w.opened(w.looping(done(5)))
			require.Nil(t, x.turn().Failure)
			ctx, die := context.WithCancel(t.Context())
			w.on(func(at string) {
				if at == point {
					die()
				}
			}, nil)
			_, _ = call[pkgschedule.Step](ctx, w, "next-auto-turn", x.state())
			require.Error(t, ctx.Err())
			w.on(nil, nil)
			step, failed := x.next()
			require.Nil(t, failed)
			require.Equal(t, pkgschedule.RunTurn, step.Action)
			require.Equal(t, []int{1, 1, 2, 3}, w.counts())
		})
	}
}

// What may pass is tried again: an agent's limit of turns, a grader that is away. Neither rates twice, nor loses what was rated.
func TestNextIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := true
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		switch {
		case !strings.HasPrefix(r.System, grade.Opening):
			return says(s, "Going on."), nil
		case away:
			return model.Response{}, model.Failure(model.Throttled, true, errors.New("busy"))
		}
		return says(s, `{"score": 0, "reason": "No."}`), nil
	}
	x, _ := w.opened(w.looping(object{"maxIterations": 5, "goal": []object{{"type": "rubric", "rubric": "It is good.", "modelId": "a-grader"}}}))
	require.Nil(t, x.turn().Failure)
	for range 2 {
		_, failed := x.next()
		require.Equal(t, &messages.InvokeResponse_Error{Type: "GraderUnavailable", Message: "what rates the loop's goal could not be asked"}, failed)
	}
	away = false
	w.change(`update agents set turns_per_hour = 1`)
	for range 2 {
		_, failed := x.next()
		require.Equal(t, &messages.InvokeResponse_Error{Type: "RateLimitExceeded", Message: "the agent's limit of 1 turns per hour is reached"}, failed)
		require.Equal(t, []string{"succeeded 10+5 rubric=0 false"}, x.history())
	}
	require.Equal(t, 1, w.count(`usage_unmetered where model = 'a-grader'`))
	w.change(`update agents set turns_per_hour = null`)
	step, failed := x.next()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.RunTurn, step.Action)
}

// What keeps a loop from going on for good fails the execution, although its last turn has succeeded.
func TestNextFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = countdown(100)
	x, o := w.opened(w.looping(done(5)))
	require.Nil(t, x.turn().Failure)
	_, failed := x.close()
	require.Equal(t, "the loop has not stopped", failed.Message)
	w.change(`update agents set status = 'suspended'`)
	_, failed = x.next()
	x.fails(caught(t, failed))
	r, failed := x.close()
	require.Nil(t, failed)
	require.Equal(t, "failed failed Forbidden: the agent is suspended and takes no turns", string(r.Status)+" "+string(*r.StopReason)+" "+*r.ErrorType+": "+*r.Error)
	require.Equal(t, thread.Failed, w.thread(*o.ThreadID).Status)
	require.Equal(t, pkgturn.Succeeded, w.turn(*o.TurnID).Status)
	step, failed := x.next()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.CloseThread, step.Action, "a call that comes too late does nothing")
}

// A loop goes on as it began: what its schedule says meanwhile, and whether it is there, changes nothing.
func TestALoopOutlivesItsSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = countdown(100)
	x, _ := w.opened(w.looping(done(2)))
	require.Nil(t, x.turn().Failure)
	w.change(`update schedules set loop = null, enabled = false, deleted_at = now()`)
	step, failed := x.next()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.RunTurn, step.Action)
	x.data["step"] = step
	require.Nil(t, x.turn().Failure)
	step, failed = x.next()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.CloseThread, step.Action)
	r, failed := x.close()
	require.Nil(t, failed)
	require.Equal(t, "maxIterations", string(*r.StopReason))
}
