package tamper_test

import (
	"slices"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

// pendingChains are what the database's administrator can do to events that no anchor covers yet.
var pendingChains = []class{
	{16, "a pending event edited, the chain computed anew", usual, func(x *trial) want {
		p, rows := x.anywhere(x.beyond)
		rows[p.i] = x.edited(rows[p.i])
		x.rewrite(p.tenant, rows, p.i)
		return of(p, verify.BeaconMismatch)
	}},
	{17, "the newest pending events deleted", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return x.beyond(rows, i) && i > 0 })
		x.rewrite(p.tenant, rows[:p.i], p.i)
		return of(p, verify.BeaconTruncated)
	}},
	{18, "a pending event deleted, the chain computed anew", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return x.beyond(rows, i) && i+1 < len(rows) })
		x.rewrite(p.tenant, slices.Delete(rows, p.i, p.i+1), p.i)
		return of(p, verify.BeaconTruncated)
	}},
	{19, "an invented event appended; heads and outbox made to fit, or the drainer left to sign for it", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return i+1 == len(rows) })
		r := x.invented(rows[p.i])
		r.Cadence = x.last + 1
		rows = append(rows, r)
		rechain(rows, p.i+1)
		p.i++
		switch x.random.IntN(3) {
		case 0: // in haste: nothing else of the database says so
			x.put(p.tenant, rows)
			return at(p, verify.NotEmitted, verify.HeadDatabase)
		case 1: // with care: nothing is odd but that no beacon comes
			x.rewrite(p.tenant, rows, p.i)
			w := of(p, verify.BeaconLate)
			w.with = x.later(10 * time.Minute)
			return w
		default: // with care and patience: the writer itself tells the bucket. Only who has the emission key sees it
			x.rewrite(p.tenant, rows, p.i)
			x.pass(10 * time.Second)
			x.drain(x, false)
			if x.one(2) {
				x.nextAnchor()
			}
			w := at(p, verify.MACMismatch)
			w.with = func(c *verify.Config) { c.EmissionKey = emission }
			return w
		}
	}},
	{20, "a tenant deleted before its first anchor", usual, func(x *trial) want {
		x.rewrite(x.newest, nil, 0)
		return want{classes: []verify.Class{verify.BeaconTruncated}, tenants: []string{x.newest}}
	}},

	// Beyond the list: within the seconds before a beacon, when only receipts tell.
	{0, "before its beacon: a pending event edited or deleted whose receipt somebody kept", silent, func(x *trial) want {
		kept := func(id string) bool {
			return slices.ContainsFunc(x.kept, func(r verify.Receipt) bool { return r.EventID == id })
		}
		p, rows := x.anywhere(func(rows []row, i int) bool { return x.beyond(rows, i) && kept(rows[i].Event) })
		w := at(p, verify.ReceiptMismatch, verify.MACMismatch)
		if x.one(2) {
			rows[p.i] = x.edited(rows[p.i])
		} else {
			rows = slices.Delete(rows, p.i, p.i+1)
			w = want{classes: []verify.Class{verify.ReceiptMissing}}
		}
		x.rewrite(p.tenant, rows, p.i)
		w.with = func(c *verify.Config) { c.Receipts, c.EmissionKey = x.kept, emission }
		return w
	}},
	{0, "a row of the outbox edited before it is drained", usual, func(x *trial) want {
		tenant := x.tenants[x.random.IntN(len(x.tenants))]
		x.record(x, tenant, 3)
		x.exec(`update audit_outbox set envelope = replace(envelope, '"actor":"', '"actor":"not ')
			where position = (select max(position) - $1::bigint from audit_outbox)`, x.random.IntN(3))
		x.pass(10 * time.Second)
		x.drain(x, false)
		return want{classes: []verify.Class{verify.Quarantined}, tenants: []string{tenant}}
	}},
}

// of is a finding of one of these classes on this tenant's chain, of which no single event need be named.
func of(p place, classes ...verify.Class) want {
	return want{classes: classes, tenants: []string{p.tenant}}
}
