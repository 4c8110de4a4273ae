package tamper_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// row is a row of audit_events.
type row struct {
	Tenant             string
	Position           int64
	Event              string
	Occurred, Recorded time.Time
	Actor, Type        string
	Hash, Prev         string
	Cadence            int64
	Text               string
}

// envelope takes the row's text apart.
func (r row) envelope(t testing.TB) audit.Envelope {
	t.Helper()
	e, err := audit.ParseEnvelope([]byte(r.Text))
	require.NoError(t, err)
	return e
}

// say makes the row say what e says, in its columns too.
func (r *row) say(t testing.TB, e audit.Envelope) {
	t.Helper()
	text, err := e.Append(nil)
	require.NoError(t, err)
	r.Event, r.Occurred, r.Recorded, r.Actor, r.Type, r.Text = e.EventID, e.OccurredAt.Time, e.RecordedAt.Time, e.Actor, string(e.Type), string(text)
}

// rechain numbers the rows and computes their hashes anew, from the one at index from on.
func rechain(rows []row, from int) {
	for i := from; i < len(rows); i++ {
		prev := audit.Genesis
		if i > 0 {
			prev = rows[i-1].Hash
		}
		rows[i].Position, rows[i].Prev, rows[i].Hash = int64(i+1), prev, audit.Hash([]byte(rows[i].Text), prev)
	}
}

// administrator is the database's superuser, whom neither triggers nor foreign keys stop.
type administrator struct {
	t    testing.TB
	conn *pgx.Conn
}

func (w *world) administrator(t testing.TB) administrator {
	t.Helper()
	a := administrator{t, w.db.Superuser(t)}
	a.exec("set session_replication_role = replica")
	return a
}

func (a administrator) exec(statement string, args ...any) {
	a.t.Helper()
	_, err := a.conn.Exec(a.t.Context(), statement, args...)
	require.NoError(a.t, err)
}

func query[T any](a administrator, into pgx.RowToFunc[T], statement string, args ...any) []T {
	a.t.Helper()
	rows, err := a.conn.Query(a.t.Context(), statement, args...)
	require.NoError(a.t, err)
	list, err := pgx.CollectRows(rows, into)
	require.NoError(a.t, err)
	return list
}

const columns = "tenant_id::text, chain_position, event_id::text, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, cadence, canonical"

// chains are all rows, by tenant and in order.
func (a administrator) chains() map[string][]row {
	a.t.Helper()
	chains := map[string][]row{}
	for _, r := range query(a, pgx.RowToStructByPos[row], "select "+columns+" from audit_events order by tenant_id, chain_position") {
		chains[r.Tenant] = append(chains[r.Tenant], r)
	}
	return chains
}

func (a administrator) chain(tenant string) []row {
	a.t.Helper()
	return query(a, pgx.RowToStructByPos[row], "select "+columns+" from audit_events where tenant_id = $1 order by chain_position", tenant)
}

// put makes rows the chain of a tenant, and nothing else: its heads stay.
func (a administrator) put(tenant string, rows []row) {
	a.t.Helper()
	a.exec("delete from audit_events where tenant_id = $1", tenant)
	a.insert(rows...)
}

func (a administrator) insert(rows ...row) {
	a.t.Helper()
	var b pgx.Batch
	for _, r := range rows {
		b.Queue(`insert into audit_events (tenant_id, chain_position, event_id, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, cadence, canonical)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, r.Tenant, r.Position, r.Event, r.Occurred, r.Recorded, r.Actor, r.Type, r.Hash, r.Prev, r.Cadence, r.Text)
	}
	require.NoError(a.t, a.conn.SendBatch(a.t.Context(), &b).Close())
}

// cover makes whatever else the database says of these tenants fit their chains: the writer's heads and trees, and the outbox, for whose
// rows seal gives the emission MAC. Without it these are left as they are, and made up for new rows.
func (a administrator) cover(seal func(pending []byte) []byte, tenants ...string) {
	a.t.Helper()
	anchored := a.anchored()
	for _, tenant := range tenants {
		rows := a.chain(tenant)
		var tree merkle.Range
		covered := 0
		for _, r := range rows {
			if r.Cadence <= anchored {
				tree.Append(leaf(a.t, r))
				covered++
			}
		}
		if len(rows) == 0 {
			a.exec("delete from audit_heads where tenant_id = $1", tenant)
		} else {
			last := rows[len(rows)-1]
			a.exec("update audit_heads set length = $2, event_hash = $3, recorded_at = $4, beaconed = least(beaconed, $2) where tenant_id = $1",
				tenant, len(rows), last.Hash, last.Recorded)
		}
		if covered == 0 {
			a.exec("delete from audit_anchored_heads where tenant_id = $1", tenant)
		} else {
			state, err := tree.MarshalBinary()
			require.NoError(a.t, err)
			root := tree.Root()
			a.exec("update audit_anchored_heads set length = $2, event_hash = $3, tree = $4, tree_root = $5 where tenant_id = $1", tenant, covered, rows[covered-1].Hash, state, root[:])
		}
		a.coverOutbox(seal, tenant, rows)
	}
}

func (a administrator) coverOutbox(seal func([]byte) []byte, tenant string, rows []row) {
	a.t.Helper()
	a.exec("delete from audit_outbox o where tenant_id = $1 and state = 'drained' and not exists (select from audit_events e where e.event_id = o.event_id)", tenant)
	for _, r := range rows {
		mac := make([]byte, 32)
		conflict := "nothing"
		if seal != nil {
			mac, conflict = seal(pending(a.t, r)), "update set mac = excluded.mac, tenant_id = excluded.tenant_id"
		}
		a.exec(`insert into audit_outbox (tenant_id, event_id, mac, body_hash, state, drained_at) values ($1, $2, $3, $3, 'drained', $4)
			on conflict (event_id) do `+conflict, tenant, r.Event, mac, r.Recorded)
	}
}

// anchored is the number of the newest published anchor.
func (a administrator) anchored() int64 {
	a.t.Helper()
	return query(a, pgx.RowTo[int64], "select coalesce(max(number), 0) from audit_anchors where anchored_at is not null")[0]
}

// tenants are those that satisfy fits, in order.
func where(chains map[string][]row, fits func(rows []row) bool) (tenants []string) {
	for tenant, rows := range chains {
		if fits(rows) {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return tenants
}

func instant(t time.Time) ident.Time { return ident.Time{Time: t.UTC().Truncate(time.Microsecond)} }
