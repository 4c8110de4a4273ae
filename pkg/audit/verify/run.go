package verify

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// run is one verification.
type run struct {
	cfg       Config
	now       time.Time
	latest    micros // no event can have been recorded after this
	chains    bool   // chains are walked, and beacons and logs read
	retention bool   // locks are checked
	found     *collector
	tally     *tally
	buffers   *buffers
	db        *database // nil: none
	ids       *idSet
	doubts    *doubts // nil: nobody asks
	open      uint64  // number of the newest cadence that an event may be of
	memory    *memory // of an earlier run; nil: a full run
}

// tally counts what was done.
type tally struct {
	anchors, beacons, logs, locks, events, pending, outbox, quarantined, receipts atomic.Uint64
	step                                                                          atomic.Value // string
	totalAnchors, totalEvents                                                     atomic.Uint64
}

func (t *tally) fill(c *Counts) {
	tenants := c.Tenants
	*c = Counts{Anchors: t.anchors.Load(), Beacons: t.beacons.Load(), Logs: t.logs.Load(), Locks: t.locks.Load(), Tenants: tenants, Events: t.events.Load(),
		Pending: t.pending.Load(), Outbox: t.outbox.Load(), Receipts: t.receipts.Load()}
}

func (t *tally) progress() Progress {
	step, _ := t.step.Load().(string)
	return Progress{Step: step, Anchors: t.anchors.Load(), Beacons: t.beacons.Load(), Logs: t.logs.Load(), Events: t.events.Load(),
		TotalAnchors: t.totalAnchors.Load(), TotalEvents: t.totalEvents.Load()}
}

// silent is the run, to look at something once more: its findings go nowhere.
func (r *run) silent() *run {
	quiet := *r
	quiet.found, quiet.tally, quiet.doubts, quiet.retention = &collector{limit: 1}, &tally{}, nil, false
	return &quiet
}

func (r *run) step(format string, args ...any) { r.tally.step.Store(fmt.Sprintf(format, args...)) }

// everyRow reports whether the walk reads all rows (of the run's tenant).
func (r *run) everyRow() bool { return r.cfg.Until.IsZero() && r.memory == nil }

func (r *run) verify(ctx context.Context, report *Report) error {
	if r.cfg.State != "" {
		var err error
		if r.memory, err = readMemory(r.cfg.State, r.cfg.Bucket.Name()); err != nil {
			return err
		}
		if err := r.remember(ctx); err != nil {
			return err
		}
	}
	r.step("listing anchors")
	list, err := r.listAnchors(ctx, 0)
	if err != nil {
		return err
	}
	var l ledger
	if r.cfg.Database != "" {
		r.step("connecting to the database")
		// After the anchors were listed: all that they cover was in the database before.
		if r.db, err = openDatabase(ctx, r.cfg.Database, r.cfg.Patience); err != nil {
			return err
		}
		defer r.db.close()
		if l, err = r.readLedger(ctx, r.db.leader); err != nil {
			return err
		}
		if list, err = r.listMore(ctx, list, l.anchored); err != nil {
			return err
		}
	}
	h, list, seeded, err := r.choose(ctx, list)
	if err != nil {
		return err
	}
	r.step("reading anchors")
	r.tally.totalAnchors.Store(uint64(len(list)))
	if err := r.readAnchors(ctx, list, h, seeded); err != nil {
		return err
	}
	report.LastAnchor = h.last
	r.lateness(h)
	r.open = max(l.open, h.hi+1)
	b, chains, err := r.readAll(ctx, h, list, l)
	if err != nil {
		return err
	}
	report.Counts.Tenants = uint64(max(len(chains), len(h.tenants)))
	if r.cfg.State != "" && r.found.clean() && h.last != nil {
		return r.keep(h, b, chains)
	}
	return nil
}

// readAll reads what is not an anchor: beacons, event logs, chains, outbox.
func (r *run) readAll(ctx context.Context, h *history, list []numbered, l ledger) (*beacons, []ended, error) {
	var err error
	if r.ids, err = newIDSet(); err != nil {
		return nil, nil, err
	}
	defer r.ids.close()
	b := r.beacons(h)
	logs := &logs{run: r, h: h}
	var chains []ended
	var outbox idSum
	var rows uint64
	g, ctx2 := errgroup.WithContext(ctx)
	if r.chains || r.retention {
		r.step("reading chains, beacons and event logs")
		g.Go(func() error { return b.readOn(ctx2) })
		g.Go(func() error { return logs.read(ctx2) })
	}
	if r.chains && r.db != nil {
		r.tally.totalEvents.Store(total(h))
		r.doubts = &doubts{}
		g.Go(func() (err error) {
			chains, err = r.walkAll(ctx2, h)
			return err
		})
		g.Go(func() error {
			s, err := r.db.session(ctx2)
			if err != nil {
				return err
			}
			defer s.close()
			set := &idSet{block: r.ids.block}
			ids := set.run()
			if err := r.readOutbox(ctx2, s, ids); err != nil || !r.everyRow() || r.cfg.Tenant != "" {
				outbox = ids.sum
				return err
			}
			outbox = ids.sum
			rows, err = r.countRows(ctx2, s)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return b, chains, err
	}
	if !r.chains || r.db == nil {
		r.bare(h)
		return b, chains, nil
	}
	return b, chains, r.together(ctx, h, list, l, b, chains, logs.diverged, outbox, rows)
}

func total(h *history) (events uint64) {
	for i := range h.tenants {
		events += h.tenants[i].now.length
	}
	return events
}

// together makes the checks that need more than one of what was read.
func (r *run) together(ctx context.Context, h *history, list []numbered, l ledger, b *beacons, chains []ended, diverged []uuid, outbox idSum, rows uint64) error {
	r.step("comparing")
	s := r.db.leader
	if err := r.settle(ctx, 1); err != nil {
		return err
	}
	if n := r.doubts.waited; n > 0 {
		r.found.notice("%d events occurred more than %s before they were recorded: the API took them in time, then they waited in the outbox for the drainer", n, r.cfg.MaxEventAge)
	}
	if err := r.compareAnchors(ctx, s, h); err != nil {
		return err
	}
	if r.everyRow() && r.cfg.Tenant == "" && rows != r.tally.events.Load() {
		r.found.add(Finding{Class: HiddenRow, Detail: fmt.Sprintf("audit_events has %d rows, but by tenant and position %d are to be read", rows, r.tally.events.Load())})
	}
	if r.cfg.Until.IsZero() {
		if err := r.compareHeads(ctx, s, chains); err != nil {
			return err
		}
		if l.anchored == h.hi {
			if err := r.compareAnchored(ctx, s, h); err != nil {
				return err
			}
		}
		if r.cfg.MaxBeaconLag >= 0 {
			if err := r.compareBeacons(ctx, s, h, b, chains); err != nil {
				return err
			}
		}
		if l.beacon > b.number {
			r.found.add(Finding{Class: BeaconMissing, Detail: fmt.Sprintf("the writer has made %d beacons, the bucket has %d", l.beacon, b.number)})
		}
	}
	if err := r.checkUnique(ctx, s); err != nil {
		return err
	}
	if r.everyRow() {
		r.compareOutbox(ctx, s, outbox)
		if err := r.checkMACs(ctx, s); err != nil {
			return err
		}
	} else {
		r.found.unchecked("the outbox against the chains: only a run over all events does")
	}
	if err := r.checkReceipts(ctx, s); err != nil {
		return err
	}
	r.step("looking closer")
	if err := r.explain(ctx, list, h, chains, diverged); err != nil {
		return err
	}
	r.empty(h, chains)
	return nil
}

// lateness judges the age of the newest anchor.
func (r *run) lateness(h *history) {
	if h.last == nil || !r.cfg.Until.IsZero() {
		return
	}
	limit := r.limit(h)
	if age := r.now.Sub(h.last.WindowTo); age > limit {
		r.found.add(Finding{Class: AnchorLate, Cadence: h.last.Number, Detail: fmt.Sprintf("the newest anchor ends at %s, %s ago; one is due every %s: anchoring has stopped, or anchors are gone",
			stamp(h.last.WindowTo), age.Round(time.Second), h.length)})
	}
}

// limit is how late an anchor may be.
func (r *run) limit(h *history) time.Duration {
	switch {
	case r.cfg.MaxLateness > 0:
		return r.cfg.MaxLateness
	case h.length == 0:
		return firstAnchor
	}
	return 2*h.length + max(h.length/2, 30*time.Second)
}

// empty judges a log in which there is nothing.
func (r *run) empty(h *history, chains []ended) {
	oldest := micros(math.MaxInt64)
	for _, c := range chains {
		oldest = min(oldest, c.first)
	}
	switch events := r.tally.events.Load(); {
	case h.last != nil || !r.cfg.Since.IsZero() || !r.cfg.Until.IsZero() || r.cfg.Tenant != "":
	case events > 0 && r.now.Sub(oldest.time()) > r.limit(h):
		r.found.add(Finding{Class: AnchorLate, Detail: fmt.Sprintf("there is no anchor, and the first event was recorded at %s: anchoring has not begun, or the anchors are gone", oldest)})
	case events > 0:
		r.found.notice("there is no anchor yet: %d events are in the chains, and nothing outside of the database vouches for them but beacons", events)
	case !r.cfg.AllowEmpty:
		r.found.add(Finding{Class: NothingToVerify, Detail: "no anchor and no event; if that is to be so, allow it"})
	}
}

// bare judges a run without chains.
func (r *run) bare(h *history) {
	if h.last == nil && !r.cfg.AllowEmpty && r.cfg.Since.IsZero() && r.cfg.Until.IsZero() {
		r.found.add(Finding{Class: NothingToVerify, Detail: "no anchor; if that is to be so, allow it"})
	}
}

// firstAnchor is how long the first anchor may take: two and a half of the usual cadences.
const firstAnchor = 2*15*time.Minute + 15*time.Minute/2
