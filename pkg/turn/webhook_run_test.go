package turn_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func (w *world) refuse(c turn.Call, reason string) {
	w.t.Helper()
	var b pgx.Batch
	turn.Refuse(&b, w.TenantID, c, w.AgentID, reason)
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
}

func (w *world) getRun(c turn.Call) turn.Run {
	w.t.Helper()
	r, err := turn.GetRun(w.t.Context(), w.db.App.In(w.TenantID), c.WebhookID, c.RunID)
	require.NoError(w.t, err)
	return r
}

func TestRunStatuses(t *testing.T) {
	var during func() // what happens while the model is asked
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		during()
		switch last(r) {
		case "fail":
			return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
		case "stop":
			<-ctx.Done()
			return model.Response{}, &model.Error{Reason: model.Canceled, Message: "The request was cancelled."}
		}
		return say(s, "ok"), nil
	}))

	c, th := w.call(`{"a":1}`, "Hello")
	queued := turn.Run{ID: c.RunID, WebhookID: c.WebhookID, Status: turn.RunStarted, ThreadID: new("AUTO-1"), AgentID: &w.AgentID, CreatedAt: th.CreatedAt}
	require.Equal(t, queued, w.getRun(c))
	require.Equal(t, turn.Queued, w.turn(c.RunID).Status)
	require.Equal(t, "AUTO-1", *w.turn(c.RunID).ThreadID)
	asked := 0
	during = func() {
		asked++
		running := w.getRun(c)
		require.NotNil(t, running.StartedAt)
		running.StartedAt = nil
		require.Equal(t, queued, running)
	}
	w.run(c.RunID)
	require.Equal(t, 1, asked)
	done := w.getRun(c)
	require.Equal(t, turn.RunSucceeded, done.Status)
	require.Nil(t, done.Error)
	require.Equal(t, []int{10, 5}, []int{done.InputTokens, done.OutputTokens})
	require.Equal(t, "0.000004", *done.CostUSD)
	record := w.turn(c.RunID)
	require.Equal(t, []any{record.StartedAt, record.FinishedAt, record.QueuedAt}, []any{done.StartedAt, done.FinishedAt, done.CreatedAt})
	require.False(t, done.StartedAt.Before(done.CreatedAt.Time) || done.FinishedAt.Before(done.StartedAt.Time))
	messages := w.messages(th)
	require.Len(t, messages, 2)
	require.Equal(t, "ok", messages[1].Body)
	kept, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), "AUTO-1")
	require.NoError(t, err)
	require.Equal(t, int64(thread.EstimateTokens("Hello")+thread.EstimateTokens(string(c.Payload))+thread.EstimateTokens("ok")), kept.TokenCount)

	during = func() {}
	c, _ = w.call(`{}`, "fail")
	w.run(c.RunID)
	failed := w.getRun(c)
	require.Equal(t, turn.RunFailed, failed.Status)
	require.Equal(t, "The platform has no access to the agent's language model.", *failed.Error)
	require.NotNil(t, failed.FinishedAt)

	c, th = w.call(`{}`, "stop")
	during = func() { _, err = w.send(th.ID, "Never mind", turn.Interrupt); during = func() {} }
	w.run(c.RunID)
	require.NoError(t, err)
	require.Equal(t, turn.Interrupted, w.turn(c.RunID).Status)
	interrupted := w.getRun(c)
	require.Equal(t, turn.RunFailed, interrupted.Status)
	require.Equal(t, "a later message in the thread interrupted the run", *interrupted.Error)
	require.NotNil(t, interrupted.FinishedAt)
	answer := w.dispatched[len(w.dispatched)-1]
	w.run(answer)
	_, err = turn.GetRun(t.Context(), w.db.App.In(w.TenantID), c.WebhookID, answer)
	require.True(t, fault.IsMissing(err), "a user's turn in a run's thread is no run")
}

// A run whose target could not be started has no thread, and is over.
func TestRefusedRun(t *testing.T) {
	w := newWorld(t, nil)
	c := turn.Call{RunID: ident.New(), WebhookID: ident.New(), Payload: []byte(`{"a" : 1e400}`), Test: true}
	w.refuse(c, "the webhook's agent is suspended and takes no turns")
	r := w.getRun(c)
	require.Equal(t, turn.Run{ID: c.RunID, WebhookID: c.WebhookID, Status: turn.RunFailed, Test: true, AgentID: &w.AgentID, Error: new("the webhook's agent is suspended and takes no turns"),
		CreatedAt: r.CreatedAt, StartedAt: new(r.CreatedAt), FinishedAt: new(r.CreatedAt)}, r)
	record := w.turn(c.RunID)
	require.Nil(t, record.ThreadID)
	require.Equal(t, turn.Failed, record.Status)
	require.Equal(t, *r.Error, *record.Error)
	w.run(c.RunID) // there is nothing to do
	w.expireLeases()
	n, err := turn.Reap(t.Context(), w.db.App, func(context.Context, string, string) error { return nil })
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, r, w.getRun(c))
	lists, err := turn.List(t.Context(), w.db.App.In(w.TenantID), nil, nil, 10)
	require.NoError(t, err)
	require.Empty(t, lists)
}

func TestGetRun(t *testing.T) {
	w := newWorld(t, nil)
	const payload = " {\"b\" : 1e400, \"a\":\"\\ud800\\u0000\", \"b\":[ ]}\n"
	c, _ := w.call(payload, "Hello")
	refused := turn.Call{RunID: ident.New(), WebhookID: c.WebhookID, Payload: []byte(`[]`)}
	w.refuse(refused, "no")
	with, err := turn.GetRunWithPayload(t.Context(), w.db.App.In(w.TenantID), c.WebhookID, c.RunID)
	require.NoError(t, err)
	require.Equal(t, payload, string(with.ContextSnapshot))
	without := w.getRun(c)
	require.Nil(t, without.ContextSnapshot)
	with.ContextSnapshot = nil
	require.Equal(t, without, with)
	with, err = turn.GetRunWithPayload(t.Context(), w.db.App.In(w.TenantID), c.WebhookID, refused.RunID)
	require.NoError(t, err)
	require.Equal(t, `[]`, string(with.ContextSnapshot))
	require.Equal(t, without, w.getRun(turn.Call{WebhookID: strings.ToUpper(c.WebhookID), RunID: strings.ToUpper(c.RunID)}))

	usual := w.ask(w.open().ID, "a turn that is no run").TurnID
	stranger := w.db.World(t, "globex")
	for _, get := range []struct{ tenantID, webhookID, runID string }{
		{w.TenantID, ident.New(), c.RunID}, {w.TenantID, c.WebhookID, ident.New()}, {w.TenantID, c.WebhookID, usual}, {stranger.TenantID, c.WebhookID, c.RunID},
		{w.TenantID, "", c.RunID}, {w.TenantID, c.WebhookID, "last"}, {w.TenantID, "' or true --", c.RunID},
	} {
		q := w.db.App.In(get.tenantID)
		_, err := turn.GetRun(t.Context(), q, get.webhookID, get.runID)
		require.Equal(t, fault.Missing("run"), err)
		_, err = turn.GetRunWithPayload(t.Context(), q, get.webhookID, get.runID)
		require.Equal(t, fault.Missing("run"), err)
	}
}

func TestRunsPaging(t *testing.T) {
	w := newWorld(t, nil)
	hook := ident.New()
	var want []string
	for i := range 7 {
		c := turn.Call{RunID: ident.New(), WebhookID: hook, Payload: []byte(`{"large":true}`), Test: i%2 == 0}
		if i == 3 {
			w.refuse(c, "no")
		} else {
			w.callAs(c, "Hello")
		}
		want = append(want, c.RunID)
		w.call(`{}`, "of another webhook")
	}
	slices.Sort(want)
	slices.Reverse(want) // newest first
	for limit := 1; limit <= 8; limit++ {
		var got []string
		for after := (*turn.RunCursor)(nil); ; {
			page, err := turn.Runs(t.Context(), w.db.App.In(w.TenantID), hook, after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				got = append(got, r.ID)
				require.Nil(t, r.ContextSnapshot)
				require.Equal(t, hook, r.WebhookID)
			}
			after = new(page[len(page)-1].Cursor())
		}
		require.Equal(t, want, got)
	}
	stranger, err := turn.Runs(t.Context(), w.db.App.In(w.db.World(t, "globex").TenantID), hook, nil, 100)
	require.NoError(t, err)
	require.Empty(t, stranger)
}
