package schedule_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

const (
	minute = time.Minute
	tick   = 10 * time.Millisecond
)

func TestRunAutoTurn(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int32
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked.Add(1)
		return says(s, "re: "+r.Messages[0].Blocks[0].Text), nil
	}
	o := w.opened(arn())
	for range 2 { // the engine asked twice
		got, failed := w.run(o.TurnID)
		require.Nil(t, failed)
		require.Equal(t, ended{o.TurnID, "succeeded"}, got)
	}
	require.EqualValues(t, 1, asked.Load())
	require.Equal(t, []string{"user: Sum up the day.", "assistant: re: Sum up the day."}, w.messages(w.thread(o.ThreadID)))
}

func TestRunTogether(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{}, 8)
	w.say = func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		asked <- struct{}{}
		return says(s, "Done."), nil
	}
	o := w.opened(arn())
	answers, failed := together(8, func() (ended, *messages.InvokeResponse_Error) { return w.run(o.TurnID) })
	for i, a := range answers {
		require.Nil(t, failed[i])
		require.Equal(t, ended{o.TurnID, "succeeded"}, a)
	}
	require.Len(t, asked, 1)
	require.Len(t, w.messages(w.thread(o.ThreadID)), 2)
}

func TestTheModelFails(t *testing.T) {
	w := newWorld(t)
	w.say = func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
	}
	o := w.opened(arn())
	for range 2 {
		_, failed := w.run(o.TurnID)
		require.Equal(t, &messages.InvokeResponse_Error{Type: "TurnFailed", Message: "The platform has no access to the agent's language model."}, failed)
	}
}

func TestAPersonInterruptsTheRun(t *testing.T) {
	w := newWorld(t)
	w.say = func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if len(r.Messages) == 1 {
			<-ctx.Done()
			return model.Response{}, ctx.Err()
		}
		return says(s, "Yes?"), nil
	}
	one := arn()
	o := w.opened(one)
	w.signal = func(point string) {
		if point == "claimed" {
			w.signal = nil
			w.send(o.ThreadID, "Stop.", pkgturn.Interrupt)
		}
	}
	_, failed := w.run(o.TurnID)
	require.Equal(t, "TurnFailed", failed.Type)
	require.Equal(t, "a later message in the thread interrupted the run", failed.Message)
	r, refused := w.close(one, caught(t, failed))
	require.Nil(t, refused)
	require.Equal(t, "failed", string(r.Status))
	require.Equal(t, "open", string(w.thread(o.ThreadID).Status), "the person has the thread")
}

// The runtime dies in the middle of the turn. Whoever asks then, takes the turn over when its lease is up; it is done once.
func TestTheTurnDiesAndGoesOn(t *testing.T) {
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
	o := w.opened(arn())
	done := make(chan *messages.InvokeResponse_Error, 1)
	go func() {
		_, failed := w.run(o.TurnID)
		done <- failed
	}()
	<-asking
	w.change(`update thread_turns set lease_until = clock_timestamp() - interval '1 hour', lease_id = gen_random_uuid() where id = $1`, o.TurnID) // as after a kill and an hour
	got, failed := w.run(o.TurnID)
	require.Nil(t, failed)
	require.Equal(t, "succeeded", got.Status)
	require.Nil(t, <-done, "who has waited all the time is told too")
	require.Len(t, w.messages(w.thread(o.ThreadID)), 2)
}

func TestALostDispatchIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.lost = true
	o := w.opened(arn())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+200*time.Millisecond) // ten seconds before the end it gives up
	defer cancel()
	_, failed := call[ended](ctx, w, "run-auto-turn", object{"tenantId": w.TenantID, "turnId": o.TurnID})
	require.Equal(t, &messages.InvokeResponse_Error{Type: "TurnNotOver", Message: "the turn took longer than a run may"}, failed)
	require.Equal(t, pkgturn.Queued, w.turn(o.TurnID).Status)
}

func TestRunRefuses(t *testing.T) {
	w := newWorld(t)
	other := w.p.DB.World(t, "globex")
	o := w.opened(arn())
	for name, input := range map[string]object{
		"another tenant's turn": {"tenantId": other.TenantID, "turnId": o.TurnID},
		"no such turn":          {"tenantId": w.TenantID, "turnId": ident.New()},
		"no id":                 {"tenantId": w.TenantID},
	} {
		_, failed := call[ended](t.Context(), w, "run-auto-turn", input)
		require.Equal(t, &messages.InvokeResponse_Error{Type: "NotFound", Message: "turn not found"}, failed, name)
	}
	require.Equal(t, pkgturn.Queued, w.turn(o.TurnID).Status)
}
