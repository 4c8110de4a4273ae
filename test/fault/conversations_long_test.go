//go:build long

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// work is a turn with two model calls and two tools between them.
func (l *lane) work(t *testing.T, c cut) {
	g := l.ground(t, c)
	body := task(g.key)
	l.kill(t, c.point, c.first(), l.say(t, g, body))
	l.restart(t, c.second())
	id := l.repeated(t, g, body)
	h := l.held(t, g, c.attempts, 1, []string{body}, id)
	require.Len(t, h.turn(id).ToolOutcomes, 2)
	lost := c.lost && (!c.maybe || h.turn(id).ToolOutcomes[0].Status != "ok")
	l.entry(t, h, id, "book__enter", g.key, lost)
	require.Equal(t, outcome{Name: "book__look", Status: "ok"}, h.turn(id).ToolOutcomes[1])
}

// flight is the same, killed from outside while the server works on the call.
func (l *lane) flight(t *testing.T, c cut) {
	g := l.ground(t, c)
	body := task(g.key)
	release := l.hold(g.key)
	defer release()
	l.say(t, g, body)()
	require.Equal(t, g.key, <-l.entered)
	l.machine.kill()
	release()
	l.restart(t, c.second())
	id := l.repeated(t, g, body)
	l.entry(t, l.held(t, g, c.attempts, 1, []string{body}, id), id, "book__enter", g.key, true)
	require.Equal(t, 1, l.times()[g.key], "it was made")
}

// over dies when the turn is over: the next turn of the thread dies there again.
func (l *lane) over(t *testing.T, c cut) {
	g := l.ground(t, c)
	next := g
	next.key += " again"
	body, again := task(g.key), task(next.key)
	l.kill(t, c.point, 1, l.say(t, g, body))
	l.revive(t)
	first := l.repeated(t, g, body)
	l.kill(t, c.point, 1, l.say(t, next, again))
	l.revive(t)
	second := l.repeated(t, next, again)
	require.NotEqual(t, first, second)
	h := l.held(t, g, c.attempts, 1, []string{body, again}, first, second)
	l.entry(t, h, first, "book__enter", g.key, false)
	l.entry(t, h, second, "book__enter", next.key, false)
}

// question dies when the agent has asked, and when it is answered.
func (l *lane) question(t *testing.T, c cut) {
	g := l.ground(t, c)
	body, answer := `/tool ask_user {"question":"Which colour?"}`, "Blue."
	l.kill(t, c.point, 1, l.say(t, g, body))
	l.revive(t)
	id := l.wait(t, g, body, turn.waits)
	reply := g
	reply.key += " answered"
	l.kill(t, c.second(), 1, l.say(t, reply, answer))
	l.revive(t)
	require.Equal(t, id, l.repeated(t, reply, answer), "the same turn goes on")
	h := l.held(t, g, c.attempts, 2, []string{body, answer}, id)
	require.Equal(t, []outcome{{Name: "ask_user", Status: "ok"}}, h.turn(id).ToolOutcomes)
	require.Contains(t, h.replies(id)[1].Body, "Blue")
}

func (t turn) waits() bool { return t.Status == "waiting" }

// approval dies when a person has approved a call, and when it begins.
func (l *lane) approval(t *testing.T, c cut) {
	g := l.ground(t, c)
	body := `/tool book__pay {"key":"` + g.key + `"}`
	l.say(t, g, body)()
	id := l.wait(t, g, body, turn.waits)
	waiting, err := l.until(t.Context(), id, turn.waits)
	require.NoError(t, err)
	require.Len(t, waiting.Approvals, 1)
	approve := func() error {
		return l.query(t.Context(), `mutation ($t: ID!, $c: ID!) { approveToolCall(turnId: $t, toolCallId: $c) { id } }`,
			vars{"t": id, "c": waiting.Approvals[0].ToolCallID}, &struct{}{})
	}
	l.kill(t, c.point, 1, func() { _ = approve() })
	l.restart(t, c.second())
	_, err = l.until(t.Context(), id, turn.over)
	require.NoError(t, err)
	h := l.held(t, g, c.attempts, 1, []string{body}, id)
	l.entry(t, h, id, "book__pay", g.key, c.lost)
	require.Zero(t, l.times()[g.key], "it had not begun")
}

// stopped is told to stop in the middle of a reply, and dies while it hands its turn back; twice.
func (l *lane) stopped(t *testing.T, c cut) {
	g := l.ground(t, c)
	body := "/slow 500\n/say one two three four five six seven"
	l.say(t, g, body)()
	for range 2 {
		l.wait(t, g, body, func(t turn) bool { return t.Status == "running" && t.Attempts == 1 }) // one that is handed back has none
		l.kill(t, c.point, 1, l.stop)
		l.revive(t)
	}
	h := l.held(t, g, c.attempts, 1, []string{body}, l.repeated(t, g, body))
	require.Equal(t, "one two three four five six seven", h.Messages.Items[1].Body)
}

// queue dies when a turn's end has woken the one behind it.
func (l *lane) queue(t *testing.T, c cut) {
	g := l.ground(t, c)
	next := g
	next.key += " next"
	body, again := "/slow 100\n/say one two three four five six seven eight", task(next.key)
	l.say(t, g, body)()
	first := l.wait(t, g, body, func(t turn) bool { return t.Status == "running" })
	l.kill(t, c.point, 1, l.say(t, next, again))
	l.restart(t, c.second())
	second := l.repeated(t, next, again)
	require.NotEqual(t, first, second)
	_, err := l.until(t.Context(), second, turn.over)
	require.NoError(t, err)
	done, err := l.read(t.Context(), g.thread)
	require.NoError(t, err)
	require.GreaterOrEqual(t, done.turn(second).Attempts, c.attempts)
	h := l.held(t, g, done.turn(second).Attempts, 1, []string{body, again}, first, second)
	require.LessOrEqual(t, l.times()[next.key], 1)
	require.Len(t, h.turn(second).ToolOutcomes, 2)
}

// webhook dies when another system's call is committed; the call's repeat, with its key, is the same run.
func (l *lane) webhook(t *testing.T, c cut) {
	var made struct{ ID, Token string }
	status, err := l.post(t.Context(), "/api/webhooks", vars{"name": "Orders", "agent_id": l.agent, "rate_limit": 1000}, &made,
		"Content-Type", "application/json", "Authorization", l.token)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)
	type answer struct {
		RunID        string `json:"run_id"`
		ThreadID     string `json:"thread_id"`
		Deduplicated bool   `json:"deduplicated"`
	}
	g := ground{key: c.key()}
	g.spent, _, err = l.money(t.Context())
	require.NoError(t, err)
	call := func() (a answer, err error) {
		_, err = l.post(t.Context(), "/webhooks/"+made.ID, vars{"message": task(g.key)}, &a,
			"Content-Type", "application/json", "Authorization", "Bearer "+made.Token, "Idempotency-Key", g.key)
		return a, err
	}
	l.kill(t, c.point, 1, func() { _, _ = call() })
	l.restart(t, c.second())
	a, err := call()
	require.NoError(t, err)
	require.True(t, a.Deduplicated, "%+v", a)
	g.thread = a.ThreadID
	h := l.held(t, g, c.attempts, 1, []string{task(g.key)}, a.RunID)
	l.entry(t, h, a.RunID, "book__enter", g.key, c.lost)
	require.True(t, strings.HasPrefix(g.thread, "AUTO-"))
}

// summary dies while a long thread's summary is made, which is made after a later turn, in the end; and is paid for once.
func (l *lane) summary(t *testing.T, c cut) {
	g := l.ground(t, c)
	var bodies, turns []string
	say := func(body string, by func(send func())) {
		m := g
		m.key += fmt.Sprint("-", len(bodies))
		by(l.say(t, m, body))
		bodies, turns = append(bodies, body), append(turns, l.repeated(t, m, body))
	}
	long := strings.Repeat("All work and no play makes Jack a dull boy.\n", 2500) + "/say Go on."
	for range 2 {
		say(long, func(send func()) { send() })
		_, err := l.until(t.Context(), turns[len(turns)-1], turn.over)
		require.NoError(t, err)
	}
	for _, body := range []string{long, "/say And on."} {
		say(body, func(send func()) {
			l.kill(t, c.point, 1, send)
			l.revive(t)
		})
	}
	say("/say At last.", func(send func()) { send() })
	h := l.kept(t, g, c.attempts, 1, bodies, turns...)
	require.Eventually(t, func() bool {
		spent, _, err := l.money(t.Context())
		require.NoError(t, err)
		cost, err := costs(h.Turns.Items...)
		require.NoError(t, err)
		return spent-g.spent > cost
	}, waitTime, 50*time.Millisecond, "there is no summary")
}
