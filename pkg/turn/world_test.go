package turn_test

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimURL) != "" {
		victim() // the process that a crash test kills
		return
	}
	pgtest.Main(m)
}

// world is a tenant whose turns a test runs by hand.
type world struct {
	pgtest.World
	t      testing.TB
	db     *pgtest.DB
	runner *turn.Runner
	events *recorder

	mu         sync.Mutex
	dispatched []string
}

func newWorld(t testing.TB, m model.Model) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, events: &recorder{}}
	prices, err := model.ParsePrices(schema.Prices)
	require.NoError(t, err)
	w.runner = &turn.Runner{DB: db.App, Model: m, Publish: w.events, Prices: prices, Tools: tool.Of(tool.ReadThread(db.App)),
		Dispatch: func(_ context.Context, _, turnID string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dispatched = append(w.dispatched, turnID)
			return nil
		}}
	return w
}

// open makes a thread.
func (w *world) open() thread.Thread {
	w.t.Helper()
	var th thread.Thread
	w.tx(func(tx pgx.Tx) (err error) {
		th, err = thread.Create(w.t.Context(), tx, w.TenantID, thread.New{})
		return err
	})
	return th
}

func (w *world) tx(run func(tx pgx.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, run))
}

// send asks the agent, as sendMessage does.
func (w *world) send(threadID, body string, onBusy turn.OnBusy) (turn.Asked, error) {
	var asked turn.Asked
	err := w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		asked, err = turn.Request(w.t.Context(), tx, w.TenantID, turn.Ask{ThreadID: threadID, Body: body, OnBusy: onBusy, UserID: w.UserID})
		return err
	})
	return asked, err
}

func (w *world) ask(threadID, body string) turn.Asked {
	w.t.Helper()
	asked, err := w.send(threadID, body, turn.Enqueue)
	require.NoError(w.t, err)
	return asked
}

func (w *world) run(turnID string) {
	w.t.Helper()
	require.NoError(w.t, w.runner.Run(w.t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: turnID}))
}

// die runs the turn until the point, and leaves it there as a killed process does.
func (w *world) die(turnID, point string) {
	w.t.Helper()
	runner := *w.runner
	runner.Signal = func(at string) {
		if at == point {
			runtime.Goexit()
		}
	}
	died := make(chan struct{})
	go func() {
		defer close(died)
		_ = runner.Run(w.t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: turnID})
		w.t.Errorf("the turn came past %s", point)
	}()
	<-died
}

func (w *world) turn(id string) turn.Turn {
	w.t.Helper()
	got, err := turn.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

func (w *world) messages(th thread.Thread) []thread.Message {
	w.t.Helper()
	all, err := thread.Messages(w.t.Context(), w.db.App.In(w.TenantID), []thread.Ref{{ID: th.ID, UUID: th.UUID}}, thread.OldestFirst, nil, 1000)
	require.NoError(w.t, err)
	return all[th.UUID]
}

// expireLeases makes every lease run out now, as an hour's silence would.
func (w *world) expireLeases() {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update thread_turns set lease_until = clock_timestamp() - interval '1 hour' where status in ('queued', 'running')`)
	require.NoError(w.t, err)
}

// recorder is a Publisher that keeps what it was given.
type recorder struct {
	mu     sync.Mutex
	events []publish.Event
	fail   error
	notify func(publish.Event) // called for every event
}

func (r *recorder) Publish(_ context.Context, events ...publish.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.events = append(r.events, events...)
	for _, e := range events {
		if r.notify != nil {
			r.notify(e)
		}
	}
	return nil
}

func (r *recorder) all() []publish.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]publish.Event(nil), r.events...)
}

// streamed is the text of each message id, and whether it was said to be done.
func (r *recorder) streamed() (text map[string]string, done map[string]bool, chunks int) {
	text, done = map[string]string{}, map[string]bool{}
	for _, e := range r.all() {
		if c, ok := e.(publish.StreamChunk); ok {
			text[c.MessageID] += c.Chunk
			done[c.MessageID] = done[c.MessageID] || c.Done
			chunks++
		}
	}
	return text, done, chunks
}

func (r *recorder) statuses() (out []publish.Activity) {
	for _, e := range r.all() {
		if s, ok := e.(publish.AgentStatus); ok {
			out = append(out, s.Status)
		}
	}
	return out
}

func (r *recorder) newMessages() (out []publish.Message) {
	for _, e := range r.all() {
		if m, ok := e.(publish.NewMessage); ok {
			out = append(out, m.Message)
		}
	}
	return out
}

// script is a Model that answers by a function.
type script func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error)

func (f script) Converse(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
	return f(ctx, r, s)
}

// say is a complete answer, streamed in the given pieces.
func say(s model.Stream, pieces ...string) model.Response {
	var text string
	for _, p := range pieces {
		s.Text(p)
		text += p
	}
	return model.Response{Blocks: []model.Block{{Text: text}}, StopReason: model.StopEndTurn, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
}

// callTool is an answer that asks for a tool.
func callTool(name, input string) model.Response {
	return model.Response{Blocks: []model.Block{{ToolUse: &model.ToolUse{ID: "call-" + name, Name: name, Input: []byte(input)}}}, StopReason: model.StopToolUse,
		Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
}

// last is the text of the newest message of a request.
func last(r model.Request) string { return r.Messages[len(r.Messages)-1].Blocks[0].Text }
