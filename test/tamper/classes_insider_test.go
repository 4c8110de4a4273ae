package tamper_test

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// insiders are what somebody can do who emits, who writes the log, or who has every key.
var insiders = []class{
	{27, "an anchored event edited or deleted, and database and bucket written anew with every key", usual, func(x *trial) want {
		remembered := x.TempDir() + "/state"
		honest := x.verify(x, func(c *verify.Config) { c.State = remembered })
		require.True(x, honest.OK(), "%+v", honest)

		told := x.told()
		p, rows := x.anywhere(func(rows []row, i int) bool { // no beacon would be left without a head that moved
			return x.inside(rows, i) && !(told[place{rows[i].Tenant, i}] && told[place{rows[i].Tenant, i - 1}])
		})
		if x.one(2) {
			rows[p.i] = x.edited(rows[p.i])
		} else {
			rows = slices.Delete(rows, p.i, p.i+1)
		}
		x.insider(p, rows)

		alone := x.verify(x)
		require.True(x, alone.OK(), "who has neither a witness nor a memory cannot see it: %+v", alone.Findings)
		require.Contains(x, strings.Join(alone.NotChecked, "\n"), "witness")
		if x.one(2) {
			return want{classes: []verify.Class{verify.HistoryRewritten}, with: func(c *verify.Config) { c.State = remembered }}
		}
		return want{classes: []verify.Class{verify.Unwitnessed}, with: func(c *verify.Config) { c.WitnessKeys = []anchor.Verifier{x.witness.Key()} }}
	}},
	{28, "occurred_at long before, or after, the event was recorded", usual, func(x *trial) want {
		tenant := x.tenants[x.random.IntN(len(x.tenants))]
		e := x.event(tenant)
		e.OccurredAt = instant(x.clock.read().Add(-time.Duration(x.between(25, 24*365)) * time.Hour))
		if x.one(3) {
			e.OccurredAt = instant(x.clock.read().Add(time.Duration(x.between(10, 1000)) * time.Minute))
		}
		// Past the bounds of the REST API, as only the platform's own code could.
		box := outbox.New(outbox.Config{Key: emission})
		require.NoError(x, box.InTenant(x.Context(), x.db.App, tenant, func(tx pgx.Tx) error { return box.Record(x.Context(), tx, e) }))
		x.pass(10 * time.Second)
		x.drain(x, false)
		if x.one(2) {
			x.nextAnchor()
		}
		return at(place{tenant, len(x.chains[tenant])}, verify.OccurredAt)
	}},
	{29, "the writer's clock set back; or recorded_at, with every key", usual, func(x *trial) want {
		if x.one(2) {
			x.pass(40 * time.Minute)
			tenant := x.tenants[x.random.IntN(len(x.tenants))]
			x.record(x, tenant, 2)
			back := newClock(x.clock.read().Add(-time.Duration(x.between(1, 48)) * time.Hour))
			require.NoError(x, x.ledger(x, func(c *ledger.Config) { c.Now = back.tick }).Drain(x.Context()))
			x.stamp(x, x.bucket, x.known, x.clock.read())
			return want{classes: []verify.Class{verify.Clock, verify.OccurredAt}}
		}
		p, rows := x.anywhere(x.inside)
		e := rows[p.i].envelope(x)
		e.RecordedAt = instant(rows[p.i-1].Recorded.Add(-time.Duration(x.between(1, 1e6)) * time.Microsecond))
		e.OccurredAt = instant(e.RecordedAt.Add(-time.Second))
		rows[p.i].say(x, e)
		x.insider(p, rows)
		return named(p, verify.RecordedOrder, verify.CadenceOrder)
	}},
	{30, "U+FFFD and a lone surrogate exchanged, which lenient parsers take for the same", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return x.under(rows, i) && strings.Contains(rows[i].Text, "\ufffd") })
		return x.lenient(p, rows, strings.Replace(rows[p.i].Text, "\ufffd", `\ud800`, 1))
	}},
	{31, "7 written as 7.0, which lenient parsers take for the same", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		return x.lenient(p, rows, strings.Replace(rows[p.i].Text, `"schema_version":1`, `"schema_version":1.0`, 1))
	}},
	{32, "an event of one tenant recorded again under another, with every key (constraints dropped)", usual, func(x *trial) want {
		a, rows := x.anywhere(x.under)
		b, others := x.anywhere(func(rows []row, i int) bool { return x.under(rows, i) && rows[i].Tenant != a.tenant })
		x.exec("alter table audit_events drop constraint audit_events_event_id")
		e := rows[a.i].envelope(x)
		e.TenantID, e.RecordedAt, e.OccurredAt = b.tenant, instant(others[b.i].Recorded), instant(others[b.i].Occurred)
		again := others[b.i]
		again.say(x, e)
		x.insider(b, slices.Insert(others, b.i, again))
		return want{classes: []verify.Class{verify.DuplicateEvent}, tenants: []string{a.tenant, b.tenant}, positions: []int64{int64(a.i + 1), int64(b.i + 1)}}
	}},
	{0, "a backfill not said to be one, with every key", downtime, func(x *trial) want {
		hidden := uint64(0)
		x.insiderHeaders(func(h *anchor.Header) {
			if h.Backfill != nil {
				h.Backfill, hidden = nil, h.Number
			}
		})
		require.NotZero(x, hidden)
		return want{classes: []verify.Class{verify.AnchorWindow}, key: anchor.Key(hidden)}
	}},
}

// insider makes rows the tenant's chain as if it had been so from the start: database, outbox, bucket, with every key there is.
func (x *trial) insider(p place, rows []row) {
	x.Helper()
	rechain(rows, p.i)
	x.put(p.tenant, rows)
	x.cover(sealed, p.tenant)
	x.forge(x, x.administrator, x.signer).intoFolder()
}

// told are the events that a beacon calls a head.
func (x *trial) told() map[place]bool {
	x.Helper()
	heads := map[place]bool{}
	for key, text := range x.objects(x) {
		if _, ok := anchor.ParseBeaconKey(key); !ok {
			continue
		}
		b, err := anchor.OpenBeacon(text, x.keys(x))
		require.NoError(x, err)
		for _, h := range b.Tenants {
			heads[place{h.TenantID, int(h.Length) - 1}] = true
		}
	}
	return heads
}

func (x *trial) insiderHeaders(change func(*anchor.Header)) {
	x.Helper()
	x.headers = change
	x.forge(x, x.administrator, x.signer).intoFolder()
}

// lenient brings a text in that a lenient verifier would compute the same hash of as of the event's: put into its place, or there from the
// start with every key, or emitted with the emission key, which the drainer must not take.
func (x *trial) lenient(p place, rows []row, text string) want {
	x.Helper()
	require.NotEqual(x, rows[p.i].Text, text)
	r := rows[p.i]
	r.Text = text
	switch x.random.IntN(3) {
	case 0:
		x.text(r, text)
		return named(p, verify.TextNotCanonical, verify.HashMismatch)
	case 1:
		rows[p.i] = r
		x.insider(p, rows)
		return named(p, verify.TextNotCanonical)
	default:
		id := ident.New()
		r.Text = strings.Replace(text, r.Event, id, 1)
		emitted := pending(x, r)
		x.exec("insert into audit_outbox (tenant_id, event_id, envelope, mac, body_hash) values ($1, $2, $3, $4, $4)", p.tenant, id, string(emitted), sealed(emitted))
		x.pass(10 * time.Second)
		x.drain(x, false)
		return of(p, verify.Quarantined)
	}
}
