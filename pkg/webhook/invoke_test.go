package webhook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestInvoke(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	const body = " {\"message\" : \"Where is 4711?\",\n\t\"b\":1e400, \"a\":\"\\ud800\\u0000 < \\u003c é\u2028\", \"n\":12345678901234567890, \"b\" : 1.10}\n"
	before := ident.Now()
	got := w.start(hook.ID, "", body)
	after := ident.Now()

	require.Equal(t, "AUTO-1", *got.ThreadID)
	require.Equal(t, turn.RunStarted, got.Status)
	require.False(t, got.Test || got.Deduplicated)
	require.False(t, got.CreatedAt.Before(before.Time) || got.CreatedAt.After(after.Time))
	w.whole()

	th, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), "AUTO-1")
	require.NoError(t, err)
	require.Equal(t, thread.Auto, th.Channel)
	require.Equal(t, thread.Open, th.Status)
	require.Equal(t, "Orders", *th.Title)
	require.Equal(t, []string{w.AgentID, w.SpaceID}, []string{th.AgentID, th.SpaceID})
	require.Equal(t, int64(thread.EstimateTokens("Where is 4711?")+(len(body)+3)/4), th.TokenCount, "with its payload")
	require.Equal(t, "1 1", query[string](w, `select message_count || ' ' || turn_count from threads`))

	messages, err := thread.Messages(t.Context(), w.db.App.In(w.TenantID), []thread.Ref{{ID: th.ID, UUID: th.UUID}}, thread.OldestFirst, nil, 10)
	require.NoError(t, err)
	require.Len(t, messages[th.UUID], 1)
	m := messages[th.UUID][0]
	require.Equal(t, thread.User, m.Role)
	require.Equal(t, "Where is 4711?", m.Body)
	require.Equal(t, got.RunID, *m.TurnID)
	require.Equal(t, 1, m.Position)
	require.Nil(t, query[*string](w, `select user_id::text from messages`))
	require.Equal(t, 1, query[int](w, `select turn_number from messages`))

	require.Equal(t, body, query[string](w, `select context_snapshot::text from thread_turns`))
	require.Equal(t, "queued 1 0 false "+hook.ID, query[string](w, `select status || ' ' || number || ' ' || attempts || ' ' || test || ' ' || webhook_id from thread_turns`))
	run, err := turn.GetRunWithPayload(t.Context(), w.db.App.In(w.TenantID), hook.ID, got.RunID)
	require.NoError(t, err)
	require.Equal(t, body, string(run.ContextSnapshot))
	run.ContextSnapshot = nil
	require.Equal(t, turn.Run{ID: got.RunID, WebhookID: hook.ID, Status: turn.RunStarted, ThreadID: got.ThreadID, AgentID: &w.AgentID, CreatedAt: got.CreatedAt}, run)
	require.Equal(t, got.RunID, w.turn(got.RunID).ID)

	counted := w.get(hook.ID)
	require.EqualValues(t, 1, counted.InvocationCount)
	require.False(t, counted.LastInvokedAt.Before(got.CreatedAt.Time) || counted.LastInvokedAt.After(after.Time))
	require.Equal(t, 1, counted.Version)
	require.Equal(t, hook.UpdatedAt, counted.UpdatedAt)

	require.Equal(t, "AUTO-2", *w.start(hook.ID, "", `{"message":"again"}`).ThreadID)
}

func (w *world) turn(id string) turn.Turn {
	w.t.Helper()
	got, err := turn.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

func TestInvokeRendersThePrompt(t *testing.T) {
	w := newWorld(t)
	hook := w.create(func(s *webhook.Settings) {
		s.Prompt = new("Order {{payload.order.id}} of {{ payload.items.0.name }}: {{payload.message}}")
	})
	w.start(hook.ID, "", `{"order":{"id":12345678901234567890},"items":[{"name":"{{payload.message}}"}],"message":"urgent"}`)
	require.Equal(t, "Order 12345678901234567890 of {{payload.message}}: urgent", query[string](w, `select body from messages`))
	w.start(hook.ID, "", `[1]`)
	require.Equal(t, "Order  of : ", query[string](w, `select m.body from messages m join threads t on t.uuid = m.thread_uuid where t.number = 2`))
	test, err := webhook.Invoke(t.Context(), w.db.App, w.TenantID, webhook.Invocation{WebhookID: hook.ID, Payload: payload(t, `{}`), Test: true})
	require.NoError(t, err)
	require.True(t, test.Test)
	require.True(t, w.runs(hook.ID)[0].Test)
	require.EqualValues(t, 3, w.get(hook.ID).InvocationCount)
}

func payload(t testing.TB, raw string) webhook.Payload {
	t.Helper()
	p, err := webhook.ReadPayload([]byte(raw))
	require.NoError(t, err)
	return p
}

func TestInvokeLargest(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	body := `{"message":"` + strings.Repeat("m", thread.MaxBody) + `","rest":"`
	body += strings.Repeat("é", (1<<20-len(body)-2)/2) + `"}`
	got := w.start(hook.ID, "", body)
	require.Equal(t, body, query[string](w, `select context_snapshot::text from thread_turns where id = $1`, got.RunID))
}

func TestInvokeRefusesTheCall(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	for body, text := range map[string]string{
		`{}`: "no string message", `[]`: "no string message", `{"message":7}`: "no string message", `{"message":" "}`: "must not be empty", `{"message":"\u0000"}`: "NUL",
		`{"message":"` + strings.Repeat("x", thread.MaxBody+1) + `"}`: "longer than",
	} {
		_, err := w.invoke(hook.ID, "key", body)
		is(t, err, fault.ValidationError, text)
	}
	for _, id := range []string{ident.New(), w.neighbour("globex").create().ID} {
		_, err := w.invoke(id, "key", `{"message":"Hello"}`)
		is(t, err, fault.NotFound, "webhook not found")
	}
	require.Equal(t, rows{}, w.rows())
	w.start(hook.ID, "key", `{"message":"a refused call does not take its key"}`)
	w.whole()
}

// An agent that takes no turns leaves a failed run, which is counted and says why. Its key is free: the call can be made again.
func TestInvokeAnAgentThatTakesNoTurns(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	for i, status := range []string{"suspended", "archived"} {
		w.exec(`update agents set status = $1`, status)
		before := ident.Now()
		_, err := w.invoke(hook.ID, "key", `{"message":"Hello","order":4711}`)
		after := ident.Now()
		is(t, err, fault.InternalError, "the webhook's agent is "+status+" and takes no turns")
		var shown *fault.Error
		require.ErrorAs(t, err, &shown, "its text is for the caller")

		run := w.runs(hook.ID)[0]
		require.Contains(t, err.Error(), run.ID)
		require.Equal(t, "the webhook's agent is "+status+" and takes no turns", *run.Error)
		require.Equal(t, run.CreatedAt, *run.StartedAt)
		require.Equal(t, run.CreatedAt, *run.FinishedAt)
		require.False(t, run.CreatedAt.Before(before.Time) || run.CreatedAt.After(after.Time))
		run.Error, run.StartedAt, run.FinishedAt = nil, nil, nil
		require.Equal(t, turn.Run{ID: run.ID, WebhookID: hook.ID, Status: turn.RunFailed, AgentID: &w.AgentID, CreatedAt: run.CreatedAt}, run)
		withPayload, err := turn.GetRunWithPayload(t.Context(), w.db.App.In(w.TenantID), hook.ID, run.ID)
		require.NoError(t, err)
		require.Equal(t, `{"message":"Hello","order":4711}`, string(withPayload.ContextSnapshot))
		require.Nil(t, w.turn(run.ID).ThreadID)
		require.Equal(t, rows{Refused: i + 1, Counted: i + 1}, w.rows())
	}
	last := *w.get(hook.ID).LastInvokedAt
	_, err := w.invoke(hook.ID, "key", `{}`)
	is(t, err, fault.ValidationError, "no string message")
	require.Equal(t, last, *w.get(hook.ID).LastInvokedAt)

	w.exec(`update agents set status = 'active'`)
	got := w.start(hook.ID, "key", `{"message":"Hello"}`)
	require.Equal(t, "AUTO-1", *got.ThreadID)
	require.False(t, got.Deduplicated)
	require.Equal(t, rows{Runs: 1, Refused: 2, Threads: 1, Messages: 1, Keys: 1, Counted: 3}, w.rows())
	w.exec(`update agents set status = 'suspended'`)
	again := w.start(hook.ID, "key", `{"message":"Hello"}`)
	require.True(t, again.Deduplicated, "the run of the same key is there, whatever the agent has become")
}

func TestInvokeBeyondTheAgentsLimit(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	w.exec(`update agents set status = 'suspended', turns_per_minute = 2, turns_per_day = 100`)
	for range 3 {
		_, err := w.invoke(hook.ID, "", `{"message":"refused, and not counted against the limit"}`)
		is(t, err, fault.InternalError, "suspended")
	}
	w.exec(`update agents set status = 'created'`)
	w.start(hook.ID, "one", `{"message":"Hello"}`)
	w.start(hook.ID, "two", `{"message":"Hello"}`)
	full := rows{Runs: 2, Refused: 3, Threads: 2, Messages: 2, Keys: 2, Counted: 5}
	require.Equal(t, full, w.rows())
	for _, key := range []string{"", "three"} {
		_, err := w.invoke(hook.ID, key, `{"message":"Hello"}`)
		is(t, err, fault.RateLimitExceeded, "the agent's limit of 2 turns per minute is reached")
	}
	require.True(t, w.start(hook.ID, "one", `{"message":"Hello"}`).Deduplicated)
	require.Equal(t, full, w.rows())
	w.exec(`update thread_turns set queued_at = queued_at - interval '1 minute'`)
	got := w.start(hook.ID, "three", `{"message":"Hello"}`)
	require.False(t, got.Deduplicated)
	require.Equal(t, "AUTO-3", *got.ThreadID)
	w.whole()
}

// What a webhook started waits for its dispatch, and the reaper finds it if that is lost; a run that never started is not waiting.
func TestReaperFindsRuns(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	got := w.start(hook.ID, "", `{"message":"Hello"}`)
	w.exec(`update agents set status = 'suspended'`)
	_, err := w.invoke(hook.ID, "", `{"message":"Hello"}`)
	is(t, err, fault.InternalError, "suspended")
	var found []string
	reap := func() int {
		n, err := turn.Reap(t.Context(), w.db.App, func(_ context.Context, tenantID, turnID string) error {
			require.Equal(t, w.TenantID, tenantID)
			found = append(found, turnID)
			return nil
		})
		require.NoError(t, err)
		return n
	}
	require.Zero(t, reap(), "its dispatch may be on the way")
	w.exec(`update thread_turns set lease_until = lease_until - $1::interval`, time.Hour)
	require.Equal(t, 1, reap())
	require.Equal(t, []string{got.RunID}, found)
}

// What a run may cost is what the agent's own model costs, where it has one.
func TestInvokeReservesForTheAgentsOwnModel(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	w.exec(`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'tenant', $1, 1000000000)`, w.TenantID)
	w.exec(`update agents set model_id = 'vendor.new-1'`)
	_, err := w.invoke(hook.ID, "", `{"message":"Hello"}`)
	is(t, err, fault.BudgetExceeded, "the price of the model vendor.new-1 is not known")
	w.exec(`update agent_templates set model_id = 'vendor.new-2'`)
	w.exec(`update agents set model_id = $1`, pgtest.ModelID)
	w.start(hook.ID, "", `{"message":"Hello"}`)
	require.Equal(t, 1, query[int](w, `select count(*) from budget_reservations`))
}
