package notify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

func (w *world) prune() int {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update thread_sequences set prune_at = now() - interval '1 second' where prune_at is not null`)
	require.NoError(w.t, err)
	n, err := notify.Prune(w.t.Context(), w.db.App)
	require.NoError(w.t, err)
	return n
}

// end gives a turn an end, so long ago.
func (w *world) end(turnID, ago string) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update thread_turns set status = 'succeeded', finished_at = now() - $1::text::interval where id = $2`, ago, turnID)
	require.NoError(w.t, err)
}

// The events of a turn stay until an hour after its end, however long it takes; the others for an hour. What stays has no gaps.
func TestPruneKeepsAnUnbrokenEnd(t *testing.T) {
	w := newWorld(t)
	id := w.turn("running")
	w.say(w.message("hello"))                       // 1
	w.tellOf(id, w.chunk("a"), w.chunk("b"))        // 2, 3
	w.tell(w.update("meanwhile"))                   // 4
	w.tellOf(id, w.chunk("c"))                      // 5
	w.age("59 minutes", 1, 2, 3, 4, 5)              // nothing is old
	require.Zero(t, w.prune())                      //
	w.age("2 hours", 1, 2, 3, 4, 5)                 // all is old, and the turn still runs
	require.Equal(t, 1, w.prune())                  // the message that came before
	require.Equal(t, 2, w.after(0, 9).PrunedBefore) // and not the update: its number is among the turn's
	w.end(id, "59 minutes")
	require.Zero(t, w.prune())

	page := w.after(0, 10)
	require.Equal(t, []int{2, 3, 4, 5}, numbers(page.Items))
	w.end(id, "61 minutes")
	w.tell(w.chunk("new")) // 6
	require.Equal(t, 4, w.prune())
	page = w.after(3, 10)
	require.Equal(t, []int{6}, numbers(page.Items))
	require.Equal(t, []int{6, 6}, []int{page.Last, page.PrunedBefore})
	w.age("2 hours", 6)
	require.Equal(t, 1, w.prune())
	page = w.after(3, 10)
	require.Equal(t, notify.Page{Items: []publish.ThreadEvent{}, Last: 6, PrunedBefore: 7}, page, "nothing is kept, and the client is told so")
	w.tell(w.chunk("next"))
	require.Equal(t, []int{7}, numbers(w.after(6, 10).Items), "numbers go on")
}

// A turn that waits for a person for days does not keep what it said before: that is in the thread.
func TestPruneDoesNotWaitForPeople(t *testing.T) {
	w := newWorld(t)
	id := w.turn("waiting")
	w.tellOf(id, w.chunk("a"), w.chunk("b"))
	w.age("65 minutes", 1, 2)
	require.Zero(t, w.prune(), "it may have said that ten minutes before it stopped")
	w.age("6 minutes", 1, 2)
	require.Equal(t, 2, w.prune())
}

// Threads that cannot be pruned keep no others from it; many events go in several batches.
func TestPruneIsDoneInBatches(t *testing.T) {
	w := newWorld(t)
	super := w.db.Superuser(t)
	stuck := w.turn("running")
	w.tellOf(stuck, w.chunk("stays"))
	other := open(t, w.db, "globex")
	many := w.thread()
	for _, c := range []struct {
		w    *world
		uuid string
		n    int
	}{{w, w.th.UUID, 10}, {w, many.UUID, 2500}, {other, other.th.UUID, 11_000}} {
		_, err := super.Exec(t.Context(), `with last as (insert into thread_sequences (tenant_id, thread_uuid, last, prune_at) values ($1, $2, $3, now()) on conflict (tenant_id, thread_uuid)
				do update set last = thread_sequences.last + excluded.last returning last)
			insert into thread_events (tenant_id, thread_uuid, sequence, event, undelivered, created_at)
			select $1, $2, last.last - $3 + n, '{"__typename":"StreamChunkEvent"}', n % 2 = 0, now() - interval '1 day' from last, generate_series(1, $3) n`,
			c.w.TenantID, c.uuid, c.n)
		require.NoError(t, err)
	}
	require.Equal(t, 13_500, w.prune())
	require.Equal(t, 1, w.after(0, 1).PrunedBefore)
	require.Equal(t, 11_001, other.after(0, 1).PrunedBefore)
	require.Zero(t, w.prune())
}

// A thread is looked at when it may have something old, again a while later where that must stay, and never where nothing is left.
func TestPruneLooksWhereItMust(t *testing.T) {
	w := newWorld(t)
	super := w.db.Superuser(t)
	due := func() (in string) {
		require.NoError(t, super.QueryRow(t.Context(), `select coalesce(date_trunc('minute', prune_at - now() + interval '30 seconds')::text, 'never') from thread_sequences`).Scan(&in))
		return in
	}
	w.tell(w.chunk("a"))
	require.Equal(t, "01:00:00", due())
	id := w.turn("running")
	w.tellOf(id, w.chunk("b"))
	require.Equal(t, "01:00:00", due(), "it is looked at by its oldest event")
	w.age("2 hours", 1, 2)
	require.Equal(t, 1, w.prune())
	require.Equal(t, "00:05:00", due())
	w.end(id, "2 hours")
	w.tell(w.chunk("c"))
	w.age("20 minutes", 3)
	require.Equal(t, 1, w.prune())
	require.Equal(t, "00:40:00", due())
	w.age("50 minutes", 3)
	require.Equal(t, 1, w.prune())
	require.Equal(t, "never", due())
	w.tell(w.chunk("d"))
	require.Equal(t, "01:00:00", due())
}
