package tamper_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// class is one way to cheat.
type class struct {
	number int    // in the list of docs/design/audit.md; 0: beyond it
	what   string // for the table of docs/design/audit.md
	world  kind
	do     func(x *trial) want
}

// kind is what world a class needs.
type kind int

const (
	usual    kind = iota
	silent        // no beacon tells of its last events
	downtime      // one of its anchors is a backfill
	kinds
)

// want is what the verifier must say of it.
type want struct {
	classes   []verify.Class       // one of these must be among the findings
	tenants   []string             // whose they are, and no other tenant is accused; none: the class is not of a tenant
	positions []int64              // where the first event that is named is, one of these; none: no event can be named
	named     bool                 // by the id that the event there had before
	key       string               // of the object; empty: any
	alone     bool                 // and no other object is named
	cadence   uint64               // of the anchor; 0: any
	with      func(*verify.Config) // how the verifier is run
	found     []verify.Finding     // what another check than the verifier's run has found
}

// trial is one tampering with one clone of a world.
type trial struct {
	testing.TB
	*world
	administrator
	chains map[string][]row
	last   int64 // number of the newest anchor
}

func newTrial(t testing.TB, w *world) *trial {
	t.Helper()
	x := &trial{TB: t, world: w, administrator: w.administrator(t)}
	x.chains = x.administrator.chains()
	x.last = x.anchored()
	x.lengths = map[string]int{}
	for tenant, rows := range x.chains {
		x.lengths[tenant] = len(rows)
	}
	return x
}

// place is an event.
type place struct {
	tenant string
	i      int // index in its chain
}

// anywhere is a random event that fits.
func (x *trial) anywhere(fits func(rows []row, i int) bool) (place, []row) {
	x.Helper()
	var places []place
	for _, tenant := range where(x.chains, func([]row) bool { return true }) {
		for i := range x.chains[tenant] {
			if fits(x.chains[tenant], i) {
				places = append(places, place{tenant, i})
			}
		}
	}
	require.NotEmpty(x, places, "seed %d: the world has no place for this", x.seed)
	p := places[x.random.IntN(len(places))]
	return p, slices.Clone(x.chains[p.tenant])
}

// under and beyond are events that the newest anchor covers, and that it does not.
func (x *trial) under(rows []row, i int) bool { return i < len(rows) && rows[i].Cadence <= x.last }
func (x *trial) beyond(rows []row, i int) bool {
	return i >= 0 && i < len(rows) && rows[i].Cadence > x.last
}

// inside is an anchored event that has an anchored one before and one behind it.
func (x *trial) inside(rows []row, i int) bool { return i > 0 && x.under(rows, i+1) }

// edited is a row that says something else, in canonical form.
func (x *trial) edited(r row) row {
	e := r.envelope(x)
	e.Payload = []byte(`{"reason":"nothing happened"}`)
	if x.one(2) {
		e.Actor = ident.New()
	}
	r.say(x, e)
	return r
}

// invented is a row that nobody recorded, to stand behind r.
func (x *trial) invented(r row) row {
	e := r.envelope(x)
	e.EventID, e.Actor, e.Payload = ident.New(), ident.New(), []byte(`{"reason":"invented"}`)
	r.say(x, e)
	return r
}

// rewrite makes rows the tenant's chain from the index on, and everything else in the database fit it.
func (x *trial) rewrite(tenant string, rows []row, from int) {
	x.Helper()
	rechain(rows, from)
	x.put(tenant, rows)
	x.cover(nil, tenant)
}

// text changes the stored text of one event only.
func (x *trial) text(r row, text string) {
	x.Helper()
	x.exec("update audit_events set canonical = $3 where tenant_id = $1 and chain_position = $2", r.Tenant, r.Position, text)
}

// sealed is the emission MAC as somebody makes it who has its key.
func sealed(pending []byte) []byte { return audit.MAC(emission, pending) }

// pending is the row's text without recorded_at, be it canonical or not.
func pending(t testing.TB, r row) []byte {
	t.Helper()
	before, rest, found := strings.Cut(r.Text, `"recorded_at":"`)
	require.True(t, found)
	_, after, found := strings.Cut(rest, `",`)
	require.True(t, found)
	return []byte(before + after)
}

// object is a random object of the bucket.
func (x *trial) object() string {
	x.Helper()
	var keys []string
	for key := range x.objects(x) {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys[x.random.IntN(len(keys))]
}

// nextAnchor is the real writer's, at the end of the window.
func (x *trial) nextAnchor() {
	x.Helper()
	x.clock.set(x.clock.read().Truncate(interval).Add(interval + time.Second))
	x.anchor(x, false)
}

// later is a verifier that comes when so much time has passed.
func (x *trial) later(d time.Duration) func(*verify.Config) {
	now := x.clock.read().Add(d)
	return func(c *verify.Config) { c.Now = func() time.Time { return now } }
}

// judge holds a report to what it must say, and gives the classes that say it.
func (x *trial) judge(w want, r verify.Report) (by []verify.Class) {
	x.Helper()
	require.False(x, r.OK(), "nothing was found")
	for _, f := range r.Findings {
		if slices.Contains(w.classes, f.Class) && (w.key == "" || w.key == f.Key) && (w.cadence == 0 || w.cadence == f.Cadence) && !slices.Contains(by, f.Class) {
			by = append(by, f.Class)
		}
		if f.TenantID != "" && len(w.tenants) > 0 {
			require.Contains(x, w.tenants, f.TenantID, "%+v", f)
		}
		require.True(x, !w.alone || w.key == f.Key, "%+v", f)
	}
	require.NotEmpty(x, by, "none of %v among %+v", w.classes, r.Findings)
	if len(w.positions) > 0 {
		first := r.FirstEvent()
		require.NotNil(x, first, "no event is named: %+v", r.Findings)
		require.Contains(x, w.positions, int64(first.Position), "%+v", r.Findings)
		require.Contains(x, w.tenants, first.TenantID)
		if w.named {
			require.Equal(x, x.chains[first.TenantID][first.Position-1].Event, first.EventID, "%+v", r.Findings)
		}
	}
	return by
}
