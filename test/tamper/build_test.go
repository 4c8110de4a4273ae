package tamper_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/witness/witnesstest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// start is when every world begins. All of it lies before the machine's own time, so that exports, which have no other clock, find it.
func start() time.Time { return time.Now().UTC().Add(-24 * time.Hour).Truncate(interval) }

// plan says what happens in a world beside what happens in each.
type plan struct {
	crashes  bool // the writer dies now and then, and is started again
	downtime bool // for a few cadences nobody anchors
	backup   bool // the database is saved before the last anchor
	silent   bool // the last drain's beacon does not reach the bucket
}

// build makes a world by the real writer: 5 to 8 tenants, 3 to 6 cadences of which one may be idle, and events after the last anchor, some
// of them of a tenant that no anchor knows. The seed decides everything but keys and ids.
func (l *laboratory) build(t testing.TB, seed uint64, p plan) *world {
	t.Helper()
	w := &world{laboratory: l, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), clock: newClock(start()), db: pgtest.New(t), bucket: l.clone(t, audited), known: map[string]bool{}}
	w.exports = l.clone(t, exports)
	var err error
	w.witness, err = witnesstest.New("witness.test", l.keys(t)...)
	require.NoError(t, err)
	server := httptest.NewServer(w.witness)
	t.Cleanup(server.Close)
	w.follow = server.URL
	for i := range w.between(5, 8) {
		w.tenants = append(w.tenants, w.db.Tenant(t, fmt.Sprintf("tenant-%d", i)))
	}
	w.newest = w.tenants[len(w.tenants)-1]
	cadences := w.between(3, 6)
	idle, down := w.between(2, cadences+1), w.between(2, cadences)
	for n := 1; n <= cadences; n++ {
		for drain := range w.between(1, 3) {
			w.pass(time.Duration(w.between(5, 200)) * time.Second)
			if n == idle {
				break
			}
			for _, tenant := range w.tenants[:len(w.tenants)-1] {
				if n == 1 && drain == 0 || w.one(2) { // each has some from the first cadence on
					w.record(t, tenant, w.between(1, 4))
				}
			}
			w.drain(t, p.crashes)
		}
		if n == cadences && p.backup {
			w.before = w.backup(t)
		}
		windows := 1
		if p.downtime && n == down {
			windows = w.between(2, 4)
		}
		w.clock.set(w.clock.read().Truncate(interval).Add(time.Duration(windows) * interval))
		w.pass(time.Duration(w.between(1, 20)) * time.Second)
		w.anchor(t, p.crashes)
	}
	w.pass(time.Duration(w.between(5, 100)) * time.Second)
	for i, tenant := range w.tenants {
		if i < 2 || w.one(2) || tenant == w.newest {
			w.record(t, tenant, w.between(2, 5))
		}
	}
	if p.silent {
		require.Error(t, w.ledger(t, func(c *ledger.Config) { c.Signer = mute{c.Signer} }).Drain(t.Context()))
	} else {
		w.drain(t, p.crashes)
	}
	return w
}

func (w *world) pass(d time.Duration) { w.clock.set(w.clock.read().Add(d)) }

// backup is a copy of the database as it is. Its connections end.
func (w *world) backup(t testing.TB) *pgtest.DB {
	t.Helper()
	w.db.App.Close()
	saved := w.db.Clone(t)
	w.db.App = w.db.Open(t, w.db.AppURL)
	return saved
}

// drain and anchor are what the platform's schedule calls.
func (w *world) drain(t testing.TB, crashes bool) {
	t.Helper()
	w.write(t, crashes, (*ledger.Ledger).Drain)
}

func (w *world) anchor(t testing.TB, crashes bool) {
	t.Helper()
	w.write(t, crashes, (*ledger.Ledger).PublishAnchor)
}

var errCrash = errors.New("crash")

// write runs the writer; with crashes it may die at one of its first points, and somebody starts it again. (Here it dies of its context's
// end, which undoes what was begun; test/fault kills processes.)
func (w *world) write(t testing.TB, crashes bool, run func(*ledger.Ledger, context.Context) error) {
	t.Helper()
	defer func() { w.stamp(t, w.bucket, w.known, w.clock.read()) }()
	if crashes && w.one(2) {
		ctx, crash := context.WithCancelCause(t.Context())
		var point atomic.Int64
		last := int64(w.between(1, 6))
		_ = run(w.ledger(t, func(c *ledger.Config) {
			c.Signal = func(string) {
				if point.Add(1) == last {
					crash(errCrash)
				}
			}
		}), ctx)
		crash(nil)
		w.stamp(t, w.bucket, w.known, w.clock.read())
		w.pass(time.Second)
	}
	require.NoError(t, run(w.ledger(t), t.Context()), "seed %d", w.seed)
}

// clone is a copy of the world: everything of it may be changed.
func (w *world) clone(t testing.TB, trial uint64) *world {
	t.Helper()
	c := *w
	c.db, c.bucket, c.random = w.db.Clone(t), w.laboratory.clone(t, w.bucket), rand.New(rand.NewPCG(w.seed, trial))
	c.clock, c.known = newClock(w.clock.read()), w.files(t, c.bucket)
	return &c
}

// mute is a signer that cannot be reached.
type mute struct{ sign.Signer }

func (mute) Sign(context.Context, [32]byte) ([]byte, error) { return nil, errors.New("no answer") }
