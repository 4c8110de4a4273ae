package schedule_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

const (
	minute = time.Minute
	tick   = 10 * time.Millisecond
)

// sweep is a run of answer-callbacks by the clock, so much later.
func (w *world) sweep(later time.Duration) {
	w.t.Helper()
	w.change(`update callbacks set next_at = next_at - $1::interval`, later)
	_, err := w.functions["answer-callbacks"].Invoke(w.t.Context(), []byte(`{"time":"2026-01-01T00:00:00Z"}`))
	require.NoError(w.t, err)
}

func (w *world) beats() int {
	w.tasks.mu.Lock()
	defer w.tasks.mu.Unlock()
	return w.tasks.beats
}

// dispatch is what the reaper does for a turn.
func (w *world) dispatch(turnID string) {
	w.t.Helper()
	require.NoError(w.t, w.Invoke(w.t.Context(), "dispatch-turn", pkgturn.Dispatch{TenantID: w.TenantID, TurnID: turnID}))
}

// dispatchNow is dispatch, to the turn's end.
func (w *world) dispatchNow(turnID string) {
	w.t.Helper()
	body, err := json.Marshal(pkgturn.Dispatch{TenantID: w.TenantID, TurnID: turnID})
	require.NoError(w.t, err)
	_, err = w.functions["dispatch-turn"].Invoke(w.t.Context(), body)
	require.NoError(w.t, err)
}

func TestRunAutoTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked.Add(1)
		return says(s, "re: "+r.Messages[0].Blocks[0].Text), nil
	}
	x, o := w.opened(w.schedule(nil))
	for range 2 { // the engine has tried the state again, with another token
		got := x.turn()
		require.Equal(t, callback.Turn{ThreadID: o.ThreadID, TurnID: *o.TurnID, Status: "succeeded", Reply: "re: Sum up the day."}, got.Output)
		require.Nil(t, got.Failure)
	}
	require.EqualValues(t, 1, asked.Load())
	require.Equal(t, []string{"user: Sum up the day.", "assistant: re: Sum up the day."}, w.messages(w.thread(*o.ThreadID)))
	require.Eventually(t, func() bool { return w.count("callbacks") == 0 }, minute, tick)
}

func TestRunTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{}, 8)
	w.say = func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		asked <- struct{}{}
		return says(s, "Done."), nil
	}
	x, o := w.opened(w.schedule(nil))
	token := w.tasks.task()
	_, failed := together(8, func() (bool, *messages.InvokeResponse_Error) { return true, x.register(token) })
	for _, f := range failed {
		require.Nil(t, f)
	}
	require.Equal(t, *o.TurnID, w.answered(token).Output.TurnID)
	w.running.Wait()
	require.Len(t, asked, 1)
	require.Len(t, w.messages(w.thread(*o.ThreadID)), 2)
	w.sweep(0)
	require.Zero(t, w.count("callbacks"))
}

func TestTheModelFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
	}
	x, _ := w.opened(w.schedule(nil))
	for range 2 {
		require.Equal(t, &pkgschedule.Failure{Error: "TurnFailed", Cause: "The platform has no access to the agent's language model."}, x.turn().Failure)
	}
}

func TestAPersonInterruptsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if len(r.Messages) == 1 {
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}
		return says(s, "Yes?"), nil
	}
	x, o := w.opened(w.schedule(nil))
	var once atomic.Bool
	w.on(func(point string) {
		if point == "claimed" && once.CompareAndSwap(false, true) {
			w.send(*o.ThreadID, "Stop.", pkgturn.Interrupt)
		}
	}, nil)
	require.Equal(t, &pkgschedule.Failure{Error: "TurnFailed", Cause: "a later message in the thread interrupted the run"}, x.turn().Failure)
	r, refused := x.close()
	require.Nil(t, refused)
	require.Equal(t, "failed", string(r.Status))
	require.Equal(t, "a later message in the thread interrupted the run", *r.Error)
	require.Equal(t, "open", string(w.thread(*o.ThreadID).Status), "the person has the thread")
}

// The runtime dies in the middle of the turn. The reaper has it taken over when its lease is up; it is done once, and its one token answered.
func TestTheTurnDiesAndGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking := make(chan struct{}, 2)
	var hung atomic.Bool
	w.say = func(ctx context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		asking <- struct{}{}
		if hung.CompareAndSwap(false, true) {
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}
		return says(s, "Done."), nil
	}
	x, o := w.opened(w.schedule(nil))
	token, failed := x.run()
	require.Nil(t, failed)
	<-asking
	w.sweep(minute)
	require.Equal(t, 1, w.beats(), "while nobody knows that it has died")
	w.change(`update thread_turns set lease_until = clock_timestamp() - interval '1 hour', lease_id = gen_random_uuid() where id = $1`, o.TurnID) // as after a kill and an hour
	w.dispatch(*o.TurnID)
	require.Equal(t, "Done.", w.answered(token).Output.Reply)
	require.Len(t, w.messages(w.thread(*o.ThreadID)), 2)
	require.Equal(t, "succeeded", string(x.whole().Status))
}

// A turn may wait for a person for a day, and longer: there are heartbeats all the time, no function runs, and the person's answer ends it.
func TestTheTurnWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(`update agent_templates set tools = '{ask_user}'`)
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if len(r.Messages) == 1 {
			return model.Response{Blocks: []model.Block{{ToolUse: &model.ToolUse{ID: "call-1", Name: "ask_user", Input: json.RawMessage(`{"question": "Which day?"}`)}}},
				StopReason: model.StopToolUse}, nil
		}
		return says(s, "Thank you."), nil
	}
	x, o := w.opened(w.schedule(nil))
	token, failed := x.run()
	require.Nil(t, failed)
	require.Eventually(t, func() bool { return w.turn(*o.TurnID).Status == pkgturn.Waiting }, minute, tick)
	w.running.Wait()
	for i := range 24 * 60 / 100 { // a hundredth of a day's minutes
		w.sweep(minute)
		require.Equal(t, i+1, w.beats())
	}
	asked := w.send(*o.ThreadID, "Monday.", pkgturn.Enqueue)
	require.Equal(t, *o.TurnID, asked.TurnID)
	w.dispatch(asked.TurnID)
	require.Equal(t, "Thank you.", w.answered(token).Output.Reply)
	beats := w.beats()
	w.running.Wait()
	w.sweep(minute)
	require.Equal(t, beats, w.beats(), "it is over")
	r, failed := x.close()
	require.Nil(t, failed)
	require.Equal(t, "succeeded", string(r.Status))
}

// Heartbeats were late, so the engine has given up the task and tries it again: the old token is refused, the new one answered.
func TestTheEngineGivesATokenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := make(chan struct{})
	w.say = func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		<-answer
		return says(s, "Done."), nil
	}
	x, _ := w.opened(w.schedule(nil))
	old, failed := x.run()
	require.Nil(t, failed)
	w.tasks.timesOut(old)
	token, failed := x.run()
	require.Nil(t, failed)
	close(answer)
	require.Equal(t, "Done.", w.answered(token).Output.Reply)
	w.running.Wait()
	w.sweep(minute)
	require.Zero(t, w.count("callbacks"))
	require.Equal(t, 1, w.tasks.refused)
}

// Invocations get lost: of the turn's dispatch, of the engine's answer. Sweeps find both.
func TestLostInvocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.on(nil, func(string) bool { return true })
	x, o := w.opened(w.schedule(nil))
	token, failed := x.run()
	require.Nil(t, failed)
	require.Equal(t, pkgturn.Queued, w.turn(*o.TurnID).Status)
	w.on(nil, func(function string) bool { return function == "answer-callbacks" })
	w.dispatch(*o.TurnID)
	w.running.Wait()
	require.Equal(t, pkgturn.Succeeded, w.turn(*o.TurnID).Status)
	require.Empty(t, w.tasks.answers[token])
	w.sweep(0)
	require.Equal(t, "Done.", w.answered(token).Output.Reply)

	again, failed := x.run() // the turn is over, and the answer gets lost
	require.Nil(t, failed)
	w.sweep(0)
	require.Equal(t, "Done.", w.answered(again).Output.Reply)
}

// The function dies after its commit: the token is kept, and the engine tries the state again.
func TestRunDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.on(nil, func(string) bool { return true }) // it came no further
	x, _ := w.opened(w.schedule(nil))
	first, _ := x.run() // and its answer did not arrive
	require.Equal(t, 1, w.count("callbacks"))
	w.on(nil, nil)
	second, failed := x.run()
	require.Nil(t, failed)
	require.Equal(t, "Done.", w.answered(second).Output.Reply)
	w.running.Wait()
	w.sweep(minute)
	require.Equal(t, "Done.", w.answered(first).Output.Reply, "who waits with it is told too")
}

// A person cancels the turn while it waits.
func TestAPersonCancelsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.on(nil, func(function string) bool { return function == "dispatch-turn" })
	x, o := w.opened(w.schedule(nil))
	token, failed := x.run()
	require.Nil(t, failed)
	var d pkgturn.Decided
	require.NoError(t, w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		d, err = pkgturn.Cancel(t.Context(), tx, w.TenantID, *o.TurnID)
		return err
	}))
	require.NoError(t, w.Invoke(t.Context(), "answer-callbacks", callback.Task{TenantID: w.TenantID, CallbackID: d.Callback}))
	require.Equal(t, &pkgschedule.Failure{Error: "TurnFailed", Cause: "a person cancelled the run"}, w.answered(token).Failure)
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.p.DB.World(t, "globex")
	_, o := w.opened(w.schedule(nil))
	for name, c := range map[string]struct {
		input         object
		kind, message string
	}{
		"another tenant's turn": {object{"tenantId": other.TenantID, "turnId": o.TurnID, "token": "t"}, "NotFound", "turn not found"},
		"no such turn":          {object{"tenantId": w.TenantID, "turnId": ident.New(), "token": "t"}, "NotFound", "turn not found"},
		"no turn":               {object{"tenantId": w.TenantID, "token": "t"}, "NotFound", "turn not found"},
		"no token":              {object{"tenantId": w.TenantID, "turnId": o.TurnID}, "ValidationError", "token is not one"},
		"no tenant":             {object{"turnId": o.TurnID, "token": "t"}, "ValidationError", "tenantId is not an id"},
	} {
		_, failed := call[object](t.Context(), w, "run-auto-turn", c.input)
		require.Equal(t, &messages.InvokeResponse_Error{Type: c.kind, Message: c.message}, failed, name)
	}
	require.Equal(t, pkgturn.Queued, w.turn(*o.TurnID).Status)
	require.Zero(t, w.count("callbacks"))
}
