package runtime_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/runtime"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestAnInvocationTellsOfItsTurn(t *testing.T) {
	g := newGate()
	subscribers := &recorder{}
	w := newWorld(t, runtime.Config{}, g, subscribers)
	idle := w.ping()
	require.Equal(t, "Healthy", idle.Status)

	_, id := w.ask("Hello")
	events := w.invoke(id)
	name, data := events.next()
	require.Equal(t, "accepted", name)
	require.Equal(t, map[string]any{"turnId": id}, data)
	g.wait(t)
	require.Equal(t, turn.Running, w.turn(id).Status)
	busy := w.ping()
	require.Equal(t, "HealthyBusy", busy.Status)
	require.GreaterOrEqual(t, busy.Changed, idle.Changed)
	require.Equal(t, busy, w.ping(), "a ping changes nothing")

	close(g.open)
	names, text, last := events.rest()
	require.Equal(t, "Good morning.\n\"", text)
	require.Equal(t, "done", names[len(names)-1])
	require.Equal(t, map[string]any{"status": "succeeded"}, last)
	for _, n := range names[:len(names)-1] {
		require.Equal(t, "progress", n)
	}
	require.Equal(t, turn.Succeeded, w.turn(id).Status)
	require.Equal(t, 1, subscribers.messages())
	require.Eventually(t, func() bool { return w.ping().Status == "Healthy" }, patience, time.Millisecond)
}

func TestTheTurnGoesOnWithoutItsClient(t *testing.T) {
	g := newGate()
	w := newWorld(t, runtime.Config{}, g, &recorder{})
	_, id := w.ask("Hello")
	events := w.invoke(id)
	g.wait(t)
	events.leave()
	require.Equal(t, "HealthyBusy", w.ping().Status)
	close(g.open)
	require.Eventually(t, func() bool { return w.turn(id).Status == turn.Succeeded }, patience, time.Millisecond)
}

func TestWhatDoesNotRunHereIsRefused(t *testing.T) {
	g := newGate()
	w := newWorld(t, runtime.Config{MaxTurns: 1}, g, &recorder{})
	refused := func(turnID, reason string) {
		t.Helper()
		names, _, data := w.invoke(turnID).rest()
		require.Equal(t, []string{"refused"}, names)
		require.Equal(t, map[string]any{"reason": reason}, data)
	}
	refused("01900000-0000-7000-8000-000000000001", "not_due") // there is none
	_, id := w.ask("Hello")
	_, other := w.ask("Hello")
	events := w.invoke(id)
	g.wait(t)
	refused(other, "busy")
	close(g.open)
	events.rest()
	require.Eventually(t, func() bool { return w.ping().Status == "Healthy" }, patience, time.Millisecond)
	refused(id, "not_due") // it has ended

	require.NoError(t, w.server.Stop(t.Context()))
	refused(other, "stopping")
	require.Equal(t, turn.Queued, w.turn(other).Status)
	require.Equal(t, "Healthy", w.ping().Status)
}

// Another attempt has the lease.
func TestATurnIsAcceptedOnce(t *testing.T) {
	g := newGate()
	w := newWorld(t, runtime.Config{}, g, &recorder{})
	_, id := w.ask("Hello")
	first := w.invoke(id)
	g.wait(t)
	names, _, data := w.invoke(id).rest()
	require.Equal(t, []string{"refused"}, names)
	require.Equal(t, map[string]any{"reason": "not_due"}, data)
	close(g.open)
	_, _, last := first.rest()
	require.Equal(t, map[string]any{"status": "succeeded"}, last)
}

func TestStopTellsThatTheTurnGoesOn(t *testing.T) {
	g := newGate()
	w := newWorld(t, runtime.Config{}, g, &recorder{})
	_, id := w.ask("Hello")
	events := w.invoke(id)
	g.wait(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, w.server.Stop(ctx))
	names, _, _ := events.rest()
	require.Equal(t, "released", names[len(names)-1])
	require.Equal(t, turn.Running, w.turn(id).Status)

	next := runtime.New(runtime.Config{Runner: turn.NewRunner(w.db.App, g, &recorder{}, func(context.Context, string, string) error { return nil })})
	defer func() { require.NoError(t, next.Stop(ctx)) }()
	close(g.open)
	reason, err := next.Start(turn.Dispatch{TenantID: w.TenantID, TurnID: id})
	require.NoError(t, err)
	require.Empty(t, reason)
	require.Eventually(t, func() bool { return w.turn(id).Status == turn.Succeeded }, patience, time.Millisecond)
}

// Without subscribers of its own, a reply that nobody follows is published by the sweep: its notice stays.
func TestNobodyFollows(t *testing.T) {
	g := newGate()
	close(g.open)
	w := newWorld(t, runtime.Config{}, g, nil)
	notices := func() (n int) {
		require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select count(*) from thread_events e join messages m using (tenant_id, thread_uuid, position) where undelivered and role = 'assistant'`).Scan(&n))
		return n
	}
	_, followed := w.ask("Hello")
	_, _, last := w.invoke(followed).rest()
	require.Equal(t, map[string]any{"status": "succeeded"}, last)
	require.Zero(t, notices())

	_, alone := w.ask("Hello")
	reason, err := w.server.Start(turn.Dispatch{TenantID: w.TenantID, TurnID: alone})
	require.NoError(t, err)
	require.Empty(t, reason)
	require.Eventually(t, func() bool { return w.turn(alone).Status == turn.Succeeded }, patience, time.Millisecond)
	require.NoError(t, w.server.Stop(t.Context()))
	require.Equal(t, 1, notices())
}

func TestWhatIsNoInvocation(t *testing.T) {
	w := newWorld(t, runtime.Config{}, newGate(), &recorder{})
	ids := `"tenantId":"` + w.TenantID + `","turnId":"01900000-0000-7000-8000-000000000001"`
	for _, c := range []struct {
		path, typ, body string
		status          int
		says            string
	}{
		{"/invocations", "application/json", `{`, 400, "not a dispatch"},
		{"/invocations", "application/json", `[]`, 400, "not a dispatch"},
		{"/invocations", "application/json", ``, 400, "not a dispatch"},
		{"/invocations", "application/json", `{}`, 400, "UUIDs"},
		{"/invocations", "application/json", `{"tenantId":"acme","turnId":"1"}`, 400, "UUIDs"},
		{"/invocations", "application/json", `{` + ids + `,"publishedEvents":{"'":[1]}}`, 400, "UUIDs"},
		{"/invocations", "application/json", `{"published":["` + strings.Repeat("x", 65<<10) + `"]}`, 413, "larger than 65536 bytes"},
		{"/invocations", "text/plain", `{` + ids + `}`, 415, "application/json"},
		{"/ping", "application/json", `{}`, 405, "GET"},
		{"/invocations/", "application/json", `{}`, 404, "path not found"},
		{"/", "application/json", `{}`, 404, "path not found"},
	} {
		response := w.post(t.Context(), c.path, c.typ, c.body)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, c.status, response.StatusCode, "%s %s", c.path, body)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
		require.Contains(t, string(body), c.says)
		require.Contains(t, string(body), `"errorType"`)
		require.NotEmpty(t, response.Header.Get("X-Request-Id"))
	}
	response, err := http.Get(w.url + "/invocations")
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	require.Equal(t, "POST", response.Header.Get("Allow"))
}

// A database that cannot be reached is an internal error: its text stays in the log.
func TestTheDatabaseIsGone(t *testing.T) {
	w := newWorld(t, runtime.Config{}, newGate(), &recorder{})
	_, id := w.ask("Hello")
	w.db.App.Close()
	response := w.post(t.Context(), "/invocations", "application/json", `{"tenantId":"`+w.TenantID+`","turnId":"`+id+`"}`)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
	require.NotContains(t, string(body), "pool")
	require.Equal(t, "Healthy", w.ping().Status)
}

// recorder is a publisher that counts replies.
type recorder struct {
	mu      sync.Mutex
	replies int
}

func (r *recorder) Publish(_ context.Context, events ...publish.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if _, ok := e.(publish.NewMessage); ok {
			r.replies++
		}
	}
	return nil
}

func (r *recorder) messages() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replies
}
