package notify_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Many write at once, some of them in vain, and one reads: whatever it has seen up to a number stays all there is up to that number.
func TestNumbersHaveNoGapsAndFollowTheCommits(t *testing.T) {
	w := newWorld(t)
	const writers, each = 8, 25
	errVain := errors.New("rolled back")
	var writing errgroup.Group
	for writer := range writers {
		writing.Go(func() error {
			for i := range each {
				said := fmt.Sprintf("%d.%d", writer, i)
				vain := i%5 == 4
				var n notify.Notice
				err := w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
					var b pgx.Batch
					n = notify.Queue(&b, w.TenantID, w.th.UUID, w.chunk(said+"a"), publish.AgentActivity{TenantID: w.TenantID}, w.chunk(said+"b"))
					if err := tx.SendBatch(t.Context(), &b).Close(); err != nil {
						return err
					}
					if vain {
						return errVain
					}
					return nil
				})
				if vain && errors.Is(err, errVain) {
					continue
				}
				if err != nil {
					return err
				}
				var got subscribers
				notify.Publish(t.Context(), &got, w.TenantID, n)
				a, b := got.events[0].(publish.StreamChunk), got.events[2].(publish.StreamChunk)
				if a.Sequence == 0 || b.Sequence != a.Sequence+1 || a.Chunk != said+"a" || b.Chunk != said+"b" {
					return fmt.Errorf("published %v", got.events)
				}
			}
			return nil
		})
	}
	var all []publish.ThreadEvent
	over := make(chan error, 1)
	go func() { over <- writing.Wait() }()
	for done := false; !done; {
		select {
		case err := <-over:
			require.NoError(t, err)
			done = true
		default:
		}
		page := w.after(len(all), 7)
		for _, e := range page.Items {
			require.Equal(t, len(all)+1, e.Number())
			all = append(all, e)
		}
	}
	for page := w.after(len(all), 1000); len(page.Items) > 0; page = w.after(len(all), 1000) {
		all = append(all, page.Items...)
	}
	require.Equal(t, len(all), w.after(0, 1).Last)
	for i, e := range all {
		require.Equal(t, i+1, e.Number())
	}
	require.Len(t, all, writers*each*4/5*2)
	last := map[int]int{} // each writer's events are in the order of its transactions
	for _, e := range all {
		var writer, i int
		_, err := fmt.Sscanf(e.(publish.StreamChunk).Chunk, "%d.%d", &writer, &i)
		require.NoError(t, err)
		require.GreaterOrEqual(t, i, last[writer])
		last[writer] = i
	}
}

// Two threads have numbers of their own, and so have two tenants' threads of the same name.
func TestNumbersAreAThreadsOwn(t *testing.T) {
	w := newWorld(t)
	other := open(t, w.db, "globex")
	require.Equal(t, w.th.ID, other.th.ID)
	w.tell(w.chunk("a"), w.chunk("b"))
	other.tell(other.chunk("x"))
	require.Equal(t, 2, w.after(0, 10).Last)
	page := other.after(0, 10)
	require.Equal(t, []int{1}, numbers(page.Items))
	require.Equal(t, other.TenantID, page.Items[0].(publish.StreamChunk).TenantID)
}

func TestAfterPages(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, notify.Page{Items: []publish.ThreadEvent{}, Last: 0, PrunedBefore: 1}, w.after(0, 10))
	for i := range 5 {
		w.tell(w.chunk(fmt.Sprint(i)))
	}
	for _, c := range []struct {
		after, limit int
		want         []int
	}{{0, 2, []int{1, 2}}, {2, 2, []int{3, 4}}, {4, 2, []int{5}}, {5, 2, []int{}}, {99, 1000, []int{}}, {0, 1000, []int{1, 2, 3, 4, 5}}} {
		page := w.after(c.after, c.limit)
		require.Equal(t, c.want, numbers(page.Items))
		require.Equal(t, []int{5, 1}, []int{page.Last, page.PrunedBefore})
	}
	for _, c := range []struct{ after, limit int }{{-1, 10}, {0, 0}, {0, -1}, {0, 1001}} {
		_, err := notify.After(t.Context(), w.db.App.In(w.TenantID), w.TenantID, w.th.ID, c.after, c.limit)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, c)
	}
	foreign := open(t, w.db, "globex")
	only := w.thread()
	for _, id := range []string{only.ID, "CHAT-77", "", "CHAT", "chat-1"} {
		_, err := notify.After(t.Context(), w.db.App.In(foreign.TenantID), foreign.TenantID, id, 0, 10)
		require.Equal(t, fault.Missing("thread"), err, id)
	}
}

// A page holds about 1 MiB, and one event in any case.
func TestAPageHasAnEndInBytes(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.say(w.message(strings.Repeat("é", 64<<10)))
	}
	w.tell(w.chunk(strings.Repeat("x", 3<<20)), w.chunk("end"))
	var seen []int
	for last := 0; last < 22; {
		page := w.after(last, 1000)
		require.NotEmpty(t, page.Items)
		require.LessOrEqual(t, len(page.Items), 8)
		seen = append(seen, numbers(page.Items)...)
		last = seen[len(seen)-1]
	}
	require.Len(t, seen, 22)
	require.True(t, slices.IsSorted(seen))
}

// An event of a message is the message: the same that was published, and no text is there twice.
func TestAMessageIsNotStoredTwice(t *testing.T) {
	w := newWorld(t)
	said := func(v string) *string { return &v }
	plain, full := w.message("Hé <b> \u2028 \"you\""), w.message("All of it")
	full.Role, full.Model = "assistant", said("claude")
	full.ToolCalls = []publish.ToolCall{{ID: "c1", Name: "search", Input: `{"q": "x"}`}}
	full.ToolResults = []publish.ToolResult{{ToolCallID: "c1", Name: "search", Status: "ok", Output: said(`[1]`), DurationMs: 7}, {ToolCallID: "c2", Name: "no", Status: "error", Error: said("none")}}
	var got subscribers
	for _, m := range []publish.Message{plain, full, w.message("third")} {
		require.True(t, notify.Deliver(t.Context(), w.db.App, &got, w.TenantID, w.say(m)))
	}
	page := w.after(0, 10)
	require.Len(t, page.Items, 3)
	for i, e := range page.Items {
		require.Equal(t, got.events[i], e)
	}
	var stored int
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select count(event) from thread_events`).Scan(&stored))
	require.Zero(t, stored)
}

// What may be lost does not keep what must arrive, and what did not arrive is published later, once.
func TestDeliveryOfAMessageDoesNotHangOnItsChunks(t *testing.T) {
	w := newWorld(t)
	broken := &subscribers{fail: func(e publish.Event) bool { _, chunk := e.(publish.StreamChunk); return chunk }}
	require.False(t, notify.Deliver(t.Context(), w.db.App, broken, w.TenantID, w.tell(w.chunk("a"), w.update("one"), w.chunk("b"))))
	require.Len(t, broken.events, 1)
	n, err := notify.Sweep(t.Context(), w.db.App, &subscribers{}, 0)
	require.NoError(t, err)
	require.Zero(t, n, "chunks are read, not published again")

	nobody := &subscribers{fail: func(publish.Event) bool { return true }}
	require.False(t, notify.Deliver(t.Context(), w.db.App, nobody, w.TenantID, w.tell(w.update("two"))))
	w.tell(w.update("three")) // and its writer died
	published := notify.Publish(t.Context(), &subscribers{}, w.TenantID, w.tell(w.update("four")))
	require.Equal(t, notify.Published{w.th.UUID: {6}}, published)
	var b pgx.Batch
	notify.Settle(&b, published)
	require.NoError(t, w.db.App.Once(t.Context(), w.TenantID, &b))
	n, err = notify.Sweep(t.Context(), w.db.App, nobody, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = notify.Sweep(t.Context(), w.db.App, nobody, time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	var got subscribers
	n, err = notify.Sweep(t.Context(), w.db.App, &got, 0)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"two", "three"}, []string{*got.events[0].(publish.ThreadUpdate).Thread.Title, *got.events[1].(publish.ThreadUpdate).Thread.Title})
	require.Equal(t, 4, got.events[0].(publish.ThreadUpdate).Sequence)
	n, err = notify.Sweep(t.Context(), w.db.App, &got, 0)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Whoever tells of a thread waits for one small write of whoever else does, and never for the thread's row: a streaming turn and sendMessage do not
// stand in each other's way.
func TestTheCounterIsNotTheThread(t *testing.T) {
	w := newWorld(t)
	locked, release := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		_ = w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error { // as a message is being written
			_, err := tx.Exec(t.Context(), `select from threads where uuid = $1 for no key update`, w.th.UUID)
			close(locked)
			<-release
			return err
		})
	})
	<-locked
	w.tell(w.chunk("while the thread is locked"))
	close(release)
	holding.Wait()
	require.Equal(t, 1, w.after(0, 10).Last)
}
