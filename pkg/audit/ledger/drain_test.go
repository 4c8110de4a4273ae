package ledger_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestDrain(t *testing.T) {
	w := newWorld(t, 3)
	w.drain()
	w.consistent() // of nothing
	w.recordAll(4)
	w.drain()
	w.consistent()
	require.Len(t, w.keys("heads/"), 1)
	w.recordAll(1)
	require.NoError(t, w.ledger(func(c *ledger.Config) { c.Batch = 2 }).Drain(t.Context()))
	w.consistent()
	before := len(w.keys(""))
	w.drain()
	w.consistent()
	require.Len(t, w.keys(""), before, "nothing new, nothing told")
}

// Many writers of many tenants, many drainers in many processes, anchors in between: nothing is lost, nothing is doubled, every tenant's order is that of its commits.
func TestDrainUnderLoad(t *testing.T) {
	w := newWorld(t, 5)
	ctx, done := context.WithCancel(t.Context())
	var writers, others errgroup.Group
	for _, tenant := range w.tenants { // one writer a tenant, so that the order of its commits is known
		writers.Go(func() error {
			for range 40 {
				w.record(tenant, 1)
			}
			return nil
		})
	}
	for i := range 3 {
		l := w.ledger(func(c *ledger.Config) { c.Batch = 1 + 5*i; c.BeaconEvery = 20 * time.Millisecond })
		others.Go(func() error {
			for ctx.Err() == nil {
				if err := l.Drain(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var clock sync.Mutex
	now := time.Now()
	for range 2 {
		l := w.ledger(func(c *ledger.Config) {
			c.Now = func() time.Time {
				clock.Lock()
				defer clock.Unlock()
				now = now.Add(time.Minute)
				return now
			}
		})
		others.Go(func() error {
			for ctx.Err() == nil {
				if err := l.PublishAnchor(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, writers.Wait())
	done()
	require.NoError(t, others.Wait())
	w.drain()
	w.offset = time.Until(now) + interval
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.consistent()
	require.Greater(t, len(w.keys("anchors/")), 1)
}

// A wake that finds a drainer at work is not lost, at whatever point of its work that is.
func TestNoWakeIsLost(t *testing.T) {
	w := newWorld(t, 1)
	points := 0
	w.record(w.tenants[0], 1)
	var mine *ledger.Ledger
	late := true
	mine = w.ledger(func(c *ledger.Config) {
		c.Signal = func(point string) {
			if points++; late {
				late = points < 30
				w.record(w.tenants[0], 1)
				require.NoError(t, mine.Drain(t.Context())) // as in the same process
			}
		}
	})
	require.NoError(t, mine.Drain(t.Context()))
	w.consistent()

	other := w.ledger() // as in another process
	points, late = 0, true
	mine = w.ledger(func(c *ledger.Config) {
		c.Signal = func(point string) {
			if points++; late && !strings.HasSuffix(point, "committed") { // between two batches the other is the one who drains
				late = points < 30
				w.record(w.tenants[0], 1)
				require.NoError(t, other.Drain(t.Context()))
			}
		}
	})
	w.record(w.tenants[0], 1)
	require.NoError(t, mine.Drain(t.Context()))
	w.consistent()
}

func TestQuarantine(t *testing.T) {
	w := newWorld(t, 3)
	ours, other := w.tenants[0], w.tenants[1]
	w.record(ours, 1)
	w.drain()
	chained := w.recorded[ours][0]

	envelope := func(change func(*audit.Envelope)) (id, text string) {
		e, err := event(ours).Envelope()
		require.NoError(t, err)
		change(&e)
		b, err := e.Append(nil)
		require.NoError(t, err)
		return e.EventID, string(b)
	}
	keyed := func(text string) []byte { return audit.MAC(emissionKey, []byte(text)) }
	want := map[string]string{}
	put := func(reason, tenant, id, text string, mac []byte) {
		w.forge(tenant, id, text, mac)
		want[id] = reason
		w.record(ours, 1) // what comes after it is drained all the same
		w.record(other, 1)
	}
	id, text := envelope(func(*audit.Envelope) {})
	put("the emission MAC is wrong", ours, id, text, audit.MAC([]byte("another key"), []byte(text)))
	id, text = envelope(func(*audit.Envelope) {})
	put("the emission MAC is wrong", ours, id, strings.Replace(text, "tester", "Tester", 1), keyed(text))
	id, text = envelope(func(*audit.Envelope) {})
	put("the emission MAC is wrong", ours, id, text, []byte{})
	id, text = envelope(func(*audit.Envelope) {})
	put("audit: envelope: ", ours, id, text+" ", keyed(text+" "))
	text = `{"a":1}`
	put("audit: envelope: ", ours, ident.New(), text, keyed(text))
	id, text = envelope(func(*audit.Envelope) {})
	put("the envelope is another tenant's", other, id, text, keyed(text))
	_, text = envelope(func(*audit.Envelope) {})
	put("the envelope is another event's", ours, ident.New(), text, keyed(text))
	id, text = envelope(func(e *audit.Envelope) { e.RecordedAt = ident.Now() })
	put("the envelope says when it was recorded", ours, id, text, keyed(text))
	id, text = envelope(func(e *audit.Envelope) { e.Actor = "a\x00b" })
	put("the actor holds NUL, which no column takes", ours, id, text, keyed(text))
	id, text = envelope(func(*audit.Envelope) {})
	put("there is no envelope", ours, id, text, keyed(text))
	w.super(`update audit_outbox set envelope = null where event_id = $1`, id)

	// An event that is in a chain already, its outbox row having been removed by somebody who may do everything; here and under another tenant.
	canonical := ask[string](w, `select canonical from audit_events where event_id = $1`, chained)
	pending, err := audit.Pending(nil, []byte(canonical))
	require.NoError(t, err)
	w.super(`delete from audit_outbox where event_id = $1`, chained)
	put("the event is in a chain already", ours, chained, string(pending), keyed(string(pending)))

	w.drain()
	for id, reason := range want {
		require.Equal(t, "quarantined", ask[string](w, `select state from audit_outbox where event_id = $1`, id), reason)
		require.Contains(t, ask[string](w, `select reason from audit_outbox where event_id = $1`, id), reason)
		require.True(t, ask[bool](w, `select drained_at is not null and (envelope is not null or reason = 'there is no envelope') from audit_outbox where event_id = $1`, id))
	}
	require.Equal(t, len(want), ask[int](w, `select count(*) from audit_outbox where state = 'quarantined'`))
	w.super(`update audit_outbox set state = 'drained', envelope = null where event_id = $1`, chained) // as it was before it was tampered with
	w.consistent()
}

// A row that the database does not take, for whatever reason, is the only one that stays behind.
func TestPoison(t *testing.T) {
	w := newWorld(t, 2)
	w.super(`alter table audit_events add constraint poison check (actor <> 'poison')`)
	w.recordAll(3)
	e := event(w.tenants[0])
	e.Actor = "poison"
	sealed, err := e.Envelope()
	require.NoError(t, err)
	text, err := sealed.Append(nil)
	require.NoError(t, err)
	w.forge(e.TenantID, e.EventID, string(text), audit.MAC(emissionKey, text))
	w.recordAll(3)
	w.drain()
	require.Contains(t, ask[string](w, `select reason from audit_outbox where state = 'quarantined' and event_id = $1`, e.EventID), "cannot be stored")
	w.consistent()
}

// A chain whose head is not its last event is left alone; the others go on.
func TestDamagedHead(t *testing.T) {
	w := newWorld(t, 3)
	w.recordAll(3)
	w.drain()
	tenant := w.tenants[1]
	w.super(`update audit_heads set length = length - 1, event_hash = (select event_hash from audit_events e where e.tenant_id = $1 and chain_position = 2) where tenant_id = $1`, tenant)
	w.recordAll(2)
	err := w.ledger(func(c *ledger.Config) { c.Batch = 2 }).Drain(t.Context())
	require.ErrorIs(t, err, ledger.ErrDamaged)
	require.ErrorContains(t, err, tenant)
	require.Equal(t, 2, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`))
	require.Equal(t, 0, ask[int](w, `select count(*) from audit_outbox where state = 'pending' and tenant_id <> $1`, tenant))
	w.super(`update audit_heads set length = 3, event_hash = (select event_hash from audit_events e where e.tenant_id = $1 and chain_position = 3) where tenant_id = $1`, tenant)
	w.drain()
	w.consistent()
}

// The clock may jump: recorded_at does not.
func TestRecordedAtNeverGoesBack(t *testing.T) {
	w := newWorld(t, 2)
	step := func(d time.Duration) {
		w.pass(d)
		w.recordAll(1)
		w.drain()
	}
	step(2 * time.Hour)
	step(-time.Hour) // behind the event before
	newest := ask[time.Time](w, `select max(recorded_at) from audit_events`)
	require.Equal(t, 1, ask[int](w, `select count(distinct recorded_at) from audit_events where tenant_id = $1`, w.tenants[0]))
	w.pass(20 * time.Minute)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	closed := ask[time.Time](w, `select recorded_at from audit_anchors`)
	require.False(t, closed.Before(newest), "a cadence is closed after what it covers")
	w.tenants = append(w.tenants, w.db.Tenant(t, "later")) // has no event that would hold it
	step(0)
	require.True(t, ask[time.Time](w, `select recorded_at from audit_events where tenant_id = $1`, w.tenants[2]).Equal(closed), "not before the cadence that was closed")
	w.pass(interval)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	require.True(t, ask[time.Time](w, `select recorded_at from audit_anchors where number = 2`).After(closed))
	w.consistent()
}

// Between two beacons the drainer waits, and drains what comes; a deadline ends that.
func TestBeaconsKeepTheirDistance(t *testing.T) {
	w := newWorld(t, 1)
	w.recordAll(1)
	w.drain() // the first beacon
	more := func(point string) {
		if point == "drain: committed" && len(w.recorded[w.tenants[0]]) < 20 {
			w.recordAll(1)
		}
	}
	w.recordAll(1)
	require.NoError(t, w.ledger(func(c *ledger.Config) { c.BeaconEvery, c.Signal = 100*time.Millisecond, more }).Drain(t.Context()))
	w.consistent() // and so told of

	w.recordAll(1)
	told := len(w.keys("heads/"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+200*time.Millisecond)
	defer cancel()
	require.NoError(t, w.ledger(func(c *ledger.Config) { c.BeaconEvery, c.Margin, c.Signal = time.Hour, time.Minute, more }).Drain(ctx))
	require.Len(t, w.keys("heads/"), told)
	w.drain()
	require.Len(t, w.keys("heads/"), told+1)
	w.consistent()
}

// The clock may have been set back since the newest beacon: Drain ends all the same, without a deadline, and the next beacon is not older than the one before.
func TestBeaconOfTheFuture(t *testing.T) {
	w := newWorld(t, 1)
	w.pass(2 * time.Hour)
	w.recordAll(1)
	w.drain()
	newest := ask[time.Time](w, `select beacon_at from audit_ledger`)
	w.pass(-2 * time.Hour)
	w.recordAll(1)
	require.NoError(t, w.ledger(func(c *ledger.Config) { c.BeaconEvery = 20 * time.Millisecond }).Drain(t.Context()))
	require.Len(t, w.keys("heads/"), 2)
	require.True(t, ask[time.Time](w, `select beacon_at from audit_ledger`).Equal(newest))
	w.consistent()
}

// An envelope may be large: a batch has so many bytes at the most, and one event at least.
func TestLargeEvents(t *testing.T) {
	w := newWorld(t, 2)
	large := map[string]any{}
	for i := range 240 {
		large[ident.New()] = strings.Repeat("x", 4000+i%7)
	}
	for range 12 {
		e := event(w.tenants[0])
		e.Type, e.Payload = audit.ExportInitiated, map[string]any{"filter": large}
		w.recordEvent(e)
	}
	w.recordAll(2)
	batches := 0
	l := w.ledger(func(c *ledger.Config) {
		c.Signal = func(point string) {
			if point == "drain: committed" {
				batches++
			}
		}
	})
	require.NoError(t, l.Drain(t.Context()))
	require.Equal(t, 2, batches)
	w.anchor() // its log is larger than what is kept in memory
	w.consistent()
}
