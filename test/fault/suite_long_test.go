//go:build long

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The program that the platforms are, and the verifier, built by TestMain.
var program, verifier string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "agentplatform-fault-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	program, verifier = filepath.Join(scratch, "fault"), filepath.Join(scratch, "audit-verifier")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", scratch+string(filepath.Separator), ".", "../../cmd/audit-verifier")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the platform:", err)
		return 1
	}
	return m.Run()
}

// lanes are how many platforms are killed at a time.
const lanes = 2

// lane is a platform on which one conversation after the other is held.
type lane struct {
	*machine
	*tenant
	*book
}

// TestKillAtEveryPoint kills the platform at every crash point, twice, and looks at what its restart has made of the conversation.
func TestKillAtEveryPoint(t *testing.T) {
	queue := make(chan cut, len(cuts))
	for _, c := range cuts {
		queue <- c
	}
	close(queue)
	for i := range lanes {
		t.Run(fmt.Sprint("platform ", i+1), func(t *testing.T) {
			t.Parallel()
			l := newLane(t)
			for c := range queue {
				ok := t.Run(c.name(), func(t *testing.T) {
					began := time.Now()
					c.held(l, t, c)
					t.Logf("%s twice: %s", c.point, time.Since(began).Round(time.Millisecond))
				})
				if !ok {
					t.Logf("the platform said:\n%s", l.said())
					return // what comes next would not begin where it should
				}
			}
			report, ok := l.verify(t.Context(), verifier)
			require.True(t, ok, report)
		})
	}
}

func (c cut) name() string {
	if c.nth > 1 {
		return fmt.Sprint(c.point, " ", c.nth)
	}
	return c.point
}

func newLane(t *testing.T) *lane {
	m, err := newMachine(program)
	require.NoError(t, err)
	b := openBook()
	t.Cleanup(func() {
		require.NoError(t, m.remove())
		b.close()
	})
	require.NoError(t, m.start(t.Context()))
	l := &lane{machine: m, book: b}
	l.tenant, err = m.enter(t.Context(), owners[0].tenant, owners[0].email, b)
	require.NoError(t, err)
	return l
}

// key is what a conversation's keys begin with.
func (c cut) key() string { return strings.ReplaceAll(c.name(), " ", "-") }

// first is the time of the first death.
func (c cut) first() int { return max(1, c.nth) }

// second is the point of the second death.
func (c cut) second() string {
	if c.then != "" {
		return c.then
	}
	return c.point
}

// kill has the platform die at a point, by what is done.
func (l *lane) kill(t *testing.T, point string, nth int, by func()) {
	t.Helper()
	require.NoError(t, l.order(point, nth))
	by()
	require.NoError(t, l.died(), "%s %d", point, nth)
}

// restart starts the platform to die again, and then to live.
func (l *lane) restart(t *testing.T, point string) {
	t.Helper()
	l.restartBy(t, point, func() {})
}

// restartBy is restart, where what is done has it die, unless it has died by itself before.
func (l *lane) restartBy(t *testing.T, point string, by func()) {
	t.Helper()
	l.dies(t, point, by)
	l.revive(t)
}

// dies starts the platform, which is to die at a point by itself or by what is done.
func (l *lane) dies(t *testing.T, point string, by func()) {
	t.Helper()
	require.NoError(t, l.order(point, 1))
	err := l.start(t.Context())
	if err == nil {
		by()
		err = l.died()
	} else if errors.Is(err, errDied) {
		err = nil
	}
	require.NoError(t, err, "the second time at %s", point)
}

func (l *lane) revive(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, orderFile(l.data()))
	require.NoError(t, l.start(t.Context()))
}

// ground is how things stand before a conversation.
type ground struct {
	thread string
	spent  int64
	key    string // of the message, and of its entry in the book
}

func (l *lane) ground(t *testing.T, c cut) ground {
	t.Helper()
	spent, reserved, err := l.money(t.Context())
	require.NoError(t, err)
	require.Zero(t, reserved)
	g := ground{spent: spent, key: c.key()}
	g.thread, err = l.open(t.Context(), g.key)
	require.NoError(t, err)
	return g
}

// say sends a message, whether it is answered or not.
func (l *lane) say(t *testing.T, g ground, body string) func() {
	return func() { _, _ = l.send(t.Context(), g.thread, body, g.key) }
}

// repeated sends a message again, and again: it is the one that there is.
func (l *lane) repeated(t *testing.T, g ground, body string) (turnID string) {
	t.Helper()
	var first sent
	for i := range 2 {
		s, err := l.send(t.Context(), g.thread, body, g.key)
		require.NoError(t, err)
		if i == 0 {
			first = s
		}
		require.Equal(t, first, s)
	}
	return first.TurnID
}

// held is what must be true once a conversation is over, whatever has happened to it: nothing is left reserved, and what is spent is what the turns say.
func (l *lane) held(t *testing.T, g ground, attempts, parts int, bodies []string, turnIDs ...string) history {
	t.Helper()
	h := l.kept(t, g, attempts, parts, bodies, turnIDs...)
	l.paid(t, g, h)
	return h
}

// paid is what a thread has cost: nothing is left reserved, and what is spent is what its turns say.
func (l *lane) paid(t *testing.T, g ground, h history) {
	t.Helper()
	spent, reserved, err := l.money(t.Context())
	require.NoError(t, err)
	cost, err := costs(h.Turns.Items...)
	require.NoError(t, err)
	require.Zero(t, reserved)
	require.Positive(t, cost)
	require.Equal(t, cost, spent-g.spent)
}

// kept is the rest of it: each of the bodies is there once, and so is the answer to each of the turns, in so many messages; the turns ran one after the
// other, and the events tell it all.
func (l *lane) kept(t *testing.T, g ground, attempts, parts int, bodies []string, turnIDs ...string) history {
	t.Helper()
	for _, id := range turnIDs {
		done, err := l.until(t.Context(), id, turn.over)
		require.NoError(t, err)
		require.Nil(t, done.Error)
		require.Equal(t, "succeeded", done.Status)
	}
	h, err := l.read(t.Context(), g.thread)
	require.NoError(t, err)
	require.Equal(t, attempts, h.turn(turnIDs[len(turnIDs)-1]).Attempts)
	l.whole(t, h, "open", parts, bodies, turnIDs...)
	return h
}

// whole is what a thread is whose turns are over.
func (l *lane) whole(t *testing.T, h history, status string, parts int, bodies []string, turnIDs ...string) {
	t.Helper()
	require.Equal(t, status, strings.ToLower(h.Status))
	require.Len(t, h.Turns.Items, len(turnIDs))
	var said []string
	for _, m := range h.Messages.Items {
		if m.Role == "user" {
			said = append(said, m.Body)
		}
	}
	require.Equal(t, bodies, said)
	for _, id := range turnIDs {
		require.Len(t, h.replies(id), parts)
	}
	require.Empty(t, h.overlaps())
	wrong, err := l.told(t.Context(), h)
	require.NoError(t, err)
	require.Empty(t, wrong)
}

// entry is the outcome of a call that must not be made twice, as the record, the model and the book have it.
func (l *lane) entry(t *testing.T, h history, turnID, name, key string, lost bool) {
	t.Helper()
	replies, outcomes := h.replies(turnID), h.turn(turnID).ToolOutcomes
	require.Equal(t, name, outcomes[0].Name)
	said := replies[len(replies)-1].Body
	if !lost {
		require.Equal(t, "ok", outcomes[0].Status)
		require.Contains(t, said, "The tool "+name+" answered: ")
		require.Equal(t, 1, l.times()[key])
		return
	}
	require.Equal(t, "error", outcomes[0].Status)
	require.Equal(t, "interrupted, outcome unknown", *outcomes[0].Error)
	require.Contains(t, said, "The tool "+name+" failed: interrupted, outcome unknown.")
	require.LessOrEqual(t, l.times()[key], 1)
}

// wait waits until the turn of a message is as it is wanted, and gives its id.
func (l *lane) wait(t *testing.T, g ground, body string, wanted func(turn) bool) string {
	t.Helper()
	id := l.repeated(t, g, body)
	_, err := l.until(t.Context(), id, wanted)
	require.NoError(t, err)
	return id
}
