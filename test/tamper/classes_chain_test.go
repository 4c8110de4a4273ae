package tamper_test

import (
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// anchoredChains are what the database's administrator can do to events that are anchored.
var anchoredChains = []class{
	{1, "payload or actor of an anchored event edited", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		x.text(rows[p.i], x.edited(rows[p.i]).Text)
		return named(p, verify.HashMismatch)
	}},
	{2, "edited, and its own hash computed anew", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		r := x.edited(rows[p.i])
		r.Hash = audit.Hash([]byte(r.Text), r.Prev)
		rows[p.i] = r
		x.put(p.tenant, rows)
		return named(p, verify.EventChanged)
	}},
	{3, "edited, and the chain computed anew to its head", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		rows[p.i] = x.edited(rows[p.i])
		x.rewrite(p.tenant, rows, p.i)
		return named(p, verify.EventChanged)
	}},
	{4, "hash of an event overwritten", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		sum := make([]byte, 32)
		for i := range sum {
			sum[i] = byte(x.random.Uint32())
		}
		x.exec("update audit_events set event_hash = $3 where tenant_id = $1 and chain_position = $2", p.tenant, rows[p.i].Position, hex.EncodeToString(sum))
		return named(p, verify.HashMismatch)
	}},
	{5, "one bit of a text flipped", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		for {
			text := []byte(rows[p.i].Text)
			text[x.random.IntN(len(text))] ^= 1 << x.random.IntN(8)
			if utf8.Valid(text) && !slices.Contains(text, 0) { // other bytes no text column takes
				x.text(rows[p.i], string(text))
				return named(p, verify.HashMismatch)
			}
		}
	}},
	{6, "an event from the middle deleted", usual, func(x *trial) want {
		p, rows := x.anywhere(x.inside)
		x.put(p.tenant, slices.Delete(rows, p.i, p.i+1))
		return named(p, verify.PositionGap, verify.LinkBroken, verify.EventChanged)
	}},
	{7, "deleted from the middle, and the chain computed anew", usual, func(x *trial) want {
		p, rows := x.anywhere(x.inside)
		x.rewrite(p.tenant, slices.Delete(rows, p.i, p.i+1), p.i)
		return named(p, verify.EventChanged)
	}},
	{8, "the end of a chain deleted, anchored events with it", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return i > 0 && x.under(rows, i) })
		x.rewrite(p.tenant, rows[:p.i], p.i)
		return want{classes: []verify.Class{verify.ChainTruncated}, tenants: []string{p.tenant}}
	}},
	{9, "an anchored tenant deleted", usual, func(x *trial) want {
		p, _ := x.anywhere(x.under)
		x.rewrite(p.tenant, nil, 0)
		return want{classes: []verify.Class{verify.TenantMissing}, tenants: []string{p.tenant}}
	}},
	{10, "two events swapped, the chain computed anew or not", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return x.under(rows, i+1) })
		a, b := rows[p.i], rows[p.i+1]
		rows[p.i], rows[p.i+1] = b, a
		rows[p.i].Cadence, rows[p.i+1].Cadence = a.Cadence, b.Cadence
		if x.one(2) {
			x.rewrite(p.tenant, rows, p.i)
			return named(p, verify.EventChanged)
		}
		rows[p.i].Position, rows[p.i+1].Position = a.Position, b.Position
		x.put(p.tenant, rows)
		return named(p, verify.EventChanged, verify.LinkBroken)
	}},
	{11, "an invented event inserted, the chain computed anew", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		x.rewrite(p.tenant, slices.Insert(rows, p.i, x.invented(rows[p.i])), p.i)
		return named(p, verify.EventChanged)
	}},
	{12, "events of two tenants exchanged, both chains computed anew", usual, func(x *trial) want {
		a, rows := x.anywhere(x.under)
		b, others := x.anywhere(func(rows []row, i int) bool { return x.under(rows, i) && rows[i].Tenant != a.tenant })
		rows[a.i], others[b.i] = others[b.i], rows[a.i]
		rows[a.i].Tenant, others[b.i].Tenant = a.tenant, b.tenant
		rechain(rows, a.i)
		rechain(others, b.i)
		x.put(a.tenant, nil)
		x.put(b.tenant, others)
		x.put(a.tenant, rows)
		x.cover(nil, a.tenant, b.tenant)
		return want{classes: []verify.Class{verify.ForeignTenant}, tenants: []string{a.tenant, b.tenant}, positions: []int64{int64(a.i + 1), int64(b.i + 1)}}
	}},
	{13, "a second event behind one that has a successor (constraints dropped)", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		x.exec("alter table audit_events drop constraint audit_events_prev_hash")
		r := x.invented(rows[p.i])
		r.Hash = audit.Hash([]byte(r.Text), r.Prev)
		if x.one(2) {
			x.exec("alter table audit_events drop constraint audit_events_pkey")
			x.insert(r)
			return at(p, verify.Fork)
		}
		r.Position, r.Cadence = int64(len(rows)+1), x.last+1
		x.insert(r)
		p.i = len(rows)
		return at(p, verify.LinkBroken, verify.Fork)
	}},
	{14, "the database set back to a backup", usual, func(x *trial) want {
		x.db = x.saved(x)
		for _, write := range []func() error{func() error { return x.ledger(x).Drain(x.Context()) }, func() error { return x.ledger(x).PublishAnchor(x.Context()) }} {
			require.ErrorIs(x, write(), ledger.ErrRollback, "and the writer stops")
		}
		return want{classes: []verify.Class{verify.ChainTruncated, verify.TenantMissing, verify.AnchorDatabase}}
	}},

	// Beyond the list: what is not hashed.
	{0, "a column edited, and not the text", usual, func(x *trial) want {
		p, rows := x.anywhere(func(rows []row, i int) bool { return len(rows) > i })
		edit := []string{"actor = actor || 'x'", "occurred_at = occurred_at - interval '1 microsecond'", "recorded_at = recorded_at + interval '1 microsecond'",
			"event_type = 'user.' || event_type", "event_id = '" + ident.New() + "'"}[x.random.IntN(5)]
		x.exec("update audit_events set "+edit+" where tenant_id = $1 and chain_position = $2", p.tenant, rows[p.i].Position)
		return at(p, verify.ColumnMismatch)
	}},
	{0, "an anchored event said to be of another cadence", usual, func(x *trial) want {
		p, rows := x.anywhere(x.under)
		to := int64(x.between(1, int(x.last)))
		if to == rows[p.i].Cadence {
			to++
		}
		x.exec("update audit_events set cadence = $3 where tenant_id = $1 and chain_position = $2", p.tenant, rows[p.i].Position, to)
		return of(p, verify.CadenceOrder, verify.HeadMismatch)
	}},
}

// saved is a copy of the backup.
func (w *world) saved(x *trial) *pgtest.DB {
	x.Helper()
	require.NotNil(x, w.before)
	return w.before.Clone(x)
}

// named is at, for an event that keeps its id in the write-once log, whatever the database says.
func named(p place, classes ...verify.Class) want {
	w := at(p, classes...)
	w.named = true
	return w
}

// at is a finding of one of these classes, the first event named being at this place.
func at(p place, classes ...verify.Class) want {
	return want{classes: classes, tenants: []string{p.tenant}, positions: []int64{int64(p.i + 1)}}
}
