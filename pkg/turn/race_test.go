package turn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func echo(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
	return say(s, "re: "+last(r)), nil
}

// Many senders, many dispatchers, one thread: one turn at a time, every message answered by exactly one turn, nothing numbered twice.
func TestConcurrentSendersAndDispatchers(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		answer, err := echo(ctx, r, s)
		mu.Lock()
		running--
		mu.Unlock()
		return answer, err
	}))
	th := w.open()
	var g errgroup.Group
	w.runner.Dispatch = func(ctx context.Context, tenantID, turnID string) error {
		g.Go(func() error { return w.runner.Run(t.Context(), turn.Dispatch{TenantID: tenantID, TurnID: turnID}) })
		return nil
	}
	var start sync.WaitGroup
	start.Add(1)
	for i := range 24 {
		g.Go(func() error {
			start.Wait()
			asked, err := w.send(th.ID, fmt.Sprintf("message %d", i), turn.Enqueue)
			if err != nil {
				return err
			}
			notify.Deliver(t.Context(), w.db.App, w.events, w.TenantID, asked.Notices...)
			var twice errgroup.Group // a dispatch may arrive twice
			for range 2 {
				twice.Go(func() error {
					return w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID})
				})
			}
			return twice.Wait()
		})
	}
	start.Done()
	require.NoError(t, g.Wait())

	require.Equal(t, 1, most)
	messages := w.messages(th)
	replies := map[string]int{}
	asked := map[string]bool{}
	for i, m := range messages {
		require.Equal(t, i+1, m.Position)
		if m.Role == thread.Assistant {
			replies[*m.TurnID]++
		} else {
			asked[*m.TurnID] = true
		}
	}
	require.Len(t, messages, 24+len(replies))
	require.Len(t, replies, len(asked))
	for id := range asked {
		require.Equal(t, 1, replies[id])
		require.Equal(t, turn.Succeeded, w.turn(id).Status)
	}
}

// An attempt that lost its lease can write nothing, whatever it still has in hand.
func TestLostLease(t *testing.T) {
	asking, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		slow := false
		once.Do(func() { slow = true })
		if slow {
			close(asking)
			<-answer
			return say(s, "too late"), nil
		}
		return say(s, "in time"), nil
	}))
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}) }()
	<-asking
	w.run(asked.TurnID) // the lease holds
	require.Len(t, w.messages(th), 1)
	w.expireLeases()
	w.run(asked.TurnID)
	close(answer)
	require.NoError(t, <-done)
	messages := w.messages(th)
	require.Len(t, messages, 2)
	require.Equal(t, "in time", messages[1].Body)
	require.Equal(t, 2, w.turn(asked.TurnID).Attempts)
}

func TestATurnThatKeepsDyingFails(t *testing.T) {
	w := newWorld(t, script(func(ctx context.Context, _ model.Request, _ model.Stream) (model.Response, error) {
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	}))
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	for range 3 {
		w.die(asked.TurnID, "claimed")
		require.Equal(t, turn.Running, w.turn(asked.TurnID).Status)
		w.expireLeases()
	}
	w.runner.Signal = nil
	w.run(asked.TurnID)
	require.Equal(t, "the turn died 3 times", *w.turn(asked.TurnID).Error)
}

// A database that does not take a step leaves the turn to another attempt: it has not failed.
func TestUnwrittenStepGoesOnLater(t *testing.T) {
	calls := 0
	w := newWorld(t, nil)
	w.runner.Model = script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		if calls++; calls < 3 {
			if calls == 1 { // between the answer and its record, every connection is cut
				_, err := w.db.Superuser(t).Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'agentplatform_app' and datname = current_database()`)
				require.NoError(t, err)
			}
			return callTool("read_thread", `{"threadId":"CHAT-1"}`), nil
		}
		return say(s, "done"), nil
	})
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	if err := w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}); err != nil {
		require.Equal(t, turn.Running, w.turn(asked.TurnID).Status)
		w.expireLeases()
		w.run(asked.TurnID)
	}
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
	for _, p := range w.turn(asked.TurnID).Phases {
		require.NotNil(t, p.FinishedAt)
	}
}

// 32 messages to 32 threads of an agent that may start 10 turns a minute: exactly 10 start, the others write nothing.
func TestRateLimitIsExact(t *testing.T) {
	w := newWorld(t, script(echo))
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agents set turns_per_minute = 10, turns_per_hour = 100`)
	require.NoError(t, err)
	threads := make([]thread.Thread, 32)
	for i := range threads {
		threads[i] = w.open()
	}
	var mu sync.Mutex
	var limited int
	var g errgroup.Group
	for _, th := range threads {
		g.Go(func() error {
			_, err := w.send(th.ID, "Hello", turn.Enqueue)
			if fault.From(err) != nil && fault.From(err).Type == fault.RateLimitExceeded {
				mu.Lock()
				limited++
				mu.Unlock()
				return nil
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, 22, limited)
	written := 0
	for _, th := range threads {
		written += len(w.messages(th))
	}
	require.Equal(t, 10, written)
}

func TestReapFindsWhatWasLost(t *testing.T) {
	w := newWorld(t, script(echo))
	lost := w.ask(w.open().ID, "dispatch was lost")
	fresh := w.open()
	var found []string
	collect := func(_ context.Context, tenantID, turnID string) error {
		require.Equal(t, w.TenantID, tenantID)
		found = append(found, turnID)
		return nil
	}
	n, err := turn.Reap(t.Context(), w.db.App, collect)
	require.NoError(t, err)
	require.Zero(t, n) // its dispatch may still be on the way
	w.expireLeases()
	w.ask(fresh.ID, "just now")
	n, err = turn.Reap(t.Context(), w.db.App, collect)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{lost.TurnID}, found)
}

func TestSweepPublishesWhatItsWriterDidNot(t *testing.T) {
	w := newWorld(t, script(echo))
	asked := w.ask(w.open().ID, "Hello") // and its sender dies before it delivers
	n, err := notify.Sweep(t.Context(), w.db.App, w.events, time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = notify.Sweep(t.Context(), w.db.App, w.events, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, asked.Message.ID, w.events.newMessages()[0].ID)
	w.ask(w.open().ID, "published by nobody yet")
	w.events.fail = errors.New("no")
	n, err = notify.Sweep(t.Context(), w.db.App, w.events, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	w.events.fail = nil
	n, err = notify.Sweep(t.Context(), w.db.App, w.events, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = notify.Sweep(t.Context(), w.db.App, w.events, 0)
	require.NoError(t, err)
	require.Zero(t, n)
}
