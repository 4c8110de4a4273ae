package notify_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a tenant with a thread.
type world struct {
	pgtest.World
	t  *testing.T
	db *pgtest.DB
	th thread.Thread
}

func newWorld(t *testing.T) *world { return open(t, pgtest.New(t), "acme") }

func open(t *testing.T, db *pgtest.DB, slug string) *world {
	w := &world{World: db.World(t, slug), t: t, db: db}
	w.th = w.thread()
	return w
}

func (w *world) thread() (th thread.Thread) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		th, err = thread.Create(w.t.Context(), tx, w.TenantID, thread.New{})
		return err
	}))
	return th
}

func (w *world) chunk(text string) publish.StreamChunk {
	return publish.StreamChunk{TenantID: w.TenantID, ThreadID: w.th.ID, MessageID: "m", Chunk: text}
}

func (w *world) update(title string) publish.ThreadUpdate {
	return publish.ThreadUpdate{TenantID: w.TenantID, ThreadID: w.th.ID, Thread: publish.Thread{ID: w.th.ID, Status: "open", Title: &title, UpdatedAt: ident.Now()}}
}

// tell stores events as of no turn.
func (w *world) tell(events ...publish.Event) notify.Notice {
	w.t.Helper()
	return w.tellOf("", events...)
}

func (w *world) tellOf(turnID string, events ...publish.Event) (n notify.Notice) {
	w.t.Helper()
	var b pgx.Batch
	if turnID == "" {
		n = notify.Queue(&b, w.TenantID, w.th.UUID, events...)
	} else {
		n = notify.QueueTurn(&b, w.TenantID, w.th.UUID, turnID, events...)
	}
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
	return n
}

// turn is a turn's row.
func (w *world) turn(status string) (id string) {
	w.t.Helper()
	id = ident.New()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, finished_at)
		values ($1, $2, $3, $4, (select count(*) + 1 from thread_turns where thread_uuid = $3), $5::text, case when $5::text in ('succeeded', 'failed') then now() end)`,
		w.TenantID, id, w.th.UUID, w.AgentID, status)
	require.NoError(w.t, err)
	return id
}

// say writes a message with its event.
func (w *world) say(m publish.Message) notify.Notice {
	w.t.Helper()
	var b pgx.Batch
	b.Queue(`update threads set message_count = message_count + 1 where uuid = $1`, w.th.UUID)
	b.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, tool_calls, tool_results, token_count, model, created_at)
		select tenant_id, $2, uuid, message_count, $3, $4, $5, $6, $7, $8, $9 from threads where uuid = $1`,
		w.th.UUID, m.ID, m.Role, m.Body, m.ToolCalls, m.ToolResults, *m.TokenCount, m.Model, m.CreatedAt)
	n := notify.Queue(&b, w.TenantID, w.th.UUID, publish.NewMessage{TenantID: w.TenantID, ThreadID: w.th.ID, Message: m})
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
	return n
}

func (w *world) message(body string) publish.Message {
	tokens := 1
	return publish.Message{ID: ident.New(), ThreadID: w.th.ID, Role: "user", Body: body, TokenCount: &tokens, CreatedAt: ident.Now()}
}

// age makes the events with these numbers older.
func (w *world) age(by string, numbers ...int) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update thread_events set created_at = created_at - $1::text::interval where thread_uuid = $2 and sequence = any($3)`,
		by, w.th.UUID, numbers)
	require.NoError(w.t, err)
}

func (w *world) after(number, limit int) notify.Page {
	w.t.Helper()
	page, err := notify.After(w.t.Context(), w.db.App.In(w.TenantID), w.TenantID, w.th.ID, number, limit)
	require.NoError(w.t, err)
	return page
}

func numbers(events []publish.ThreadEvent) []int {
	all := []int{}
	for _, e := range events {
		all = append(all, e.Number())
	}
	return all
}

// subscribers are a Publisher that keeps what it was given, and fails where it is told to.
type subscribers struct {
	mu     sync.Mutex
	events []publish.Event
	fail   func(publish.Event) bool
}

func (s *subscribers) Publish(_ context.Context, events ...publish.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if s.fail != nil && s.fail(e) {
			return errors.New("no")
		}
		s.events = append(s.events, e)
	}
	return nil
}
