package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// told are all events of a thread, read in pages; their numbers have no gap.
func (w *world) told(th thread.Thread) (all []publish.ThreadEvent) {
	w.t.Helper()
	for {
		page, err := notify.After(w.t.Context(), w.db.App.In(w.TenantID), w.TenantID, th.ID, len(all), 7)
		require.NoError(w.t, err)
		for _, e := range page.Items {
			require.Equal(w.t, len(all)+1, e.Number())
			all = append(all, e)
		}
		if len(page.Items) == 0 {
			require.Equal(w.t, len(all), page.Last)
			return all
		}
	}
}

// retold checks what a thread's events tell of its messages: each is announced once, in order, and the chunks of a reply, up to the one that says so,
// are its body, and come before it.
func (w *world) retold(th thread.Thread) {
	w.t.Helper()
	text, done := map[string]string{}, map[string]int{}
	var announced []string
	for _, e := range w.told(th) {
		switch e := e.(type) {
		case publish.StreamChunk:
			require.Zero(w.t, done[e.MessageID], "text behind the end")
			text[e.MessageID] += e.Chunk
			if e.Done {
				done[e.MessageID]++
			}
		case publish.NewMessage:
			announced = append(announced, e.Message.ID)
			if e.Message.Role == string(thread.Assistant) {
				require.Equal(w.t, e.Message.Body, text[e.Message.ID])
				require.Equal(w.t, 1, done[e.Message.ID])
			}
		}
	}
	var written []string
	for _, m := range w.messages(th) {
		written = append(written, m.ID)
	}
	require.Equal(w.t, written, announced)
	require.LessOrEqual(w.t, len(done), len(written))
}

// Whoever gets an event can read it, and all before it, at that moment.
func TestWhatIsPublishedIsThereToBeRead(t *testing.T) {
	w := newWorld(t, nil)
	th := w.open()
	read := make(chan struct{}, 1)
	w.runner.Model = script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		for i := range 5 {
			s.Text(fmt.Sprint(i))
			<-read // until that piece was published
		}
		return say(s, "."), nil
	})
	w.events.notify = func(e publish.Event) {
		numbered, ok := e.(publish.ThreadEvent)
		if !ok {
			return
		}
		page, err := notify.After(t.Context(), w.db.App.In(w.TenantID), w.TenantID, th.ID, numbered.Number()-1, 1)
		if err != nil || len(page.Items) != 1 || page.Items[0].Number() != numbered.Number() {
			t.Errorf("published %v, and there was %v %v", e, page, err)
		}
		if c, ok := e.(publish.StreamChunk); ok && len(c.Chunk) == 1 && c.Chunk != "." {
			read <- struct{}{}
		}
	}
	w.run(w.ask(th.ID, "Hello").TurnID)
	w.retold(th)
	require.GreaterOrEqual(t, len(w.told(th)), 9) // question, thinking, streaming, five pieces, reply, idle
	require.Equal(t, publish.Idle, w.told(th)[len(w.told(th))-1].(publish.AgentStatus).Status)
	for i, e := range w.events.all() {
		for _, later := range w.events.all()[i+1:] {
			a, ok := e.(publish.ThreadEvent)
			b, also := later.(publish.ThreadEvent)
			if ok && also {
				require.Less(t, a.Number(), b.Number())
			}
		}
	}
}

// The model is read on while the database takes its time, and what it says meanwhile is joined.
func TestASlowDatabaseDoesNotSlowTheModel(t *testing.T) {
	const pieces = 5000
	w := newWorld(t, nil)
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	held, said := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	slow.Go(func() { // somebody else's write to the thread does not end
		_ = w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `select from thread_sequences where thread_uuid = $1 for update`, th.UUID)
			close(held)
			<-said
			return err
		})
	})
	<-held
	w.runner.Model = script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		for i := range pieces {
			s.Text(fmt.Sprint(i, " "))
		}
		close(said)
		return say(s, "."), nil
	})
	w.run(asked.TurnID)
	slow.Wait()
	w.retold(th)
	require.Less(t, len(w.told(th)), 50)
}

// Connections that die under the stream cost no text and double none, whether their last commit came through or not.
func TestConnectionsDieUnderTheStream(t *testing.T) {
	w := newWorld(t, nil)
	super := w.db.Superuser(t)
	th := w.open()
	cut := func() {
		_, err := super.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`)
		require.NoError(t, err)
	}
	w.runner.Model = script(func(ctx context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		var body strings.Builder
		for i := range 60 {
			piece := fmt.Sprintf("%d, ", i)
			s.Text(piece)
			body.WriteString(piece)
			if i%10 == 9 {
				cut()
			}
			select {
			case <-time.After(5 * time.Millisecond): // as a model does
			case <-ctx.Done():
				return model.Response{}, ctx.Err()
			}
		}
		return model.Response{Blocks: []model.Block{{Text: body.String()}}, StopReason: model.StopEndTurn}, nil
	})
	asked := w.ask(th.ID, "Hello")
	require.Eventually(t, func() bool { // an attempt whose last write failed leaves the turn to the next
		err := w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID})
		if err != nil {
			t.Log(err)
			w.expireLeases()
		}
		return err == nil && w.turn(asked.TurnID).Over()
	}, time.Minute, time.Millisecond)
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
	w.retold(th)
}

// An attempt that has lost its turn tells nothing more: what its successor tells is not mixed with it.
func TestAStaleAttemptTellsNothing(t *testing.T) {
	w := newWorld(t, nil)
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	started, lost := make(chan struct{}, 1), make(chan struct{})
	w.events.notify = func(e publish.Event) {
		if c, ok := e.(publish.StreamChunk); ok && c.Chunk == "stale" {
			started <- struct{}{}
		}
	}
	stale := *w.runner
	stale.Model = script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		s.Text("stale")
		<-lost
		return say(s, " and staler"), nil
	})
	var running sync.WaitGroup
	running.Go(func() {
		if err := stale.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}); err != nil {
			t.Error(err)
		}
	})
	<-started
	w.expireLeases()
	w.runner.Model = script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		close(lost)
		running.Wait()
		return say(s, "fresh"), nil
	})
	w.run(asked.TurnID)
	w.retold(th)
	said := ""
	for _, e := range w.told(th) {
		if c, ok := e.(publish.StreamChunk); ok {
			said += c.Chunk
		}
	}
	require.Equal(t, "stalefresh", said)
}

// What a thread keeps of a turn: a bounded number of rows while its events are kept, and none afterwards.
func TestAThreadDoesNotGrowByItsEvents(t *testing.T) {
	w := newWorld(t, script(echo))
	th := w.open()
	rows := func() (n int) {
		require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select count(*) from thread_events`).Scan(&n))
		return n
	}
	const turns = 20
	for i := range turns {
		w.run(w.ask(th.ID, fmt.Sprint("message ", i)).TurnID)
		require.LessOrEqual(t, rows(), 7*(i+1)) // question, thinking, streaming, text, its end, reply, idle; longer text adds 20 a second
	}
	w.retold(th)
	_, err := w.db.Superuser(t).Exec(t.Context(), `update thread_turns set finished_at = finished_at - interval '2 hours'; update thread_events set created_at = created_at - interval '2 hours';
		update thread_sequences set prune_at = now() - interval '1 second'`)
	require.NoError(t, err)
	_, err = notify.Prune(t.Context(), w.db.App)
	require.NoError(t, err)
	require.Zero(t, rows())
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select count(*) from thread_sequences`).Scan(new(int)))
	require.Len(t, w.messages(th), 2*turns)
}
