package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// span is a part of the chains that is read in one go: whole tenants.
type span struct {
	from, to uuid     // tenants from (with it) … to (without it)
	open     bool     // there is no to
	only     []resume // these tenants, ascending, instead
}

// resume is where a tenant's chain is read from.
type resume struct {
	id       uuid
	position uint64
}

// query is what reads the span's rows, in order.
func (r *run) query(h *history, s span) string {
	text := "canonical"
	if h.lo > 0 && r.memory == nil {
		text = fmt.Sprintf("case when cadence > %d then canonical end", h.lo) // what the base covers is held to its side trees
	}
	if s.only != nil {
		var ids, positions []string
		for _, t := range s.only {
			ids, positions = append(ids, t.id.String()), append(positions, fmt.Sprint(max(t.position, 1)))
		}
		// The nested loop goes through the tenants in their order; without "offset 0" it might become another join.
		return fmt.Sprintf(`select e.* from unnest('{%s}'::uuid[], '{%s}'::bigint[]) b (id, position) cross join lateral
(select %s, %s from audit_events where tenant_id = b.id and chain_position >= b.position%s order by chain_position offset 0) e`,
			strings.Join(ids, ","), strings.Join(positions, ","), columns, text, r.upTo(h))
	}
	where := fmt.Sprintf("tenant_id >= '%s'", s.from)
	if !s.open {
		where += fmt.Sprintf(" and tenant_id < '%s'", s.to)
	}
	return fmt.Sprintf("select %s, %s from audit_events where %s%s order by tenant_id, chain_position", columns, text, where, r.upTo(h))
}

func (r *run) upTo(h *history) string {
	if r.cfg.Until.IsZero() {
		return ""
	}
	return fmt.Sprintf(" and cadence <= %d", h.hi)
}

// eventsAtOnce is about how many events a span has, unless one tenant has more.
const eventsAtOnce = 50_000

// spans cuts the chains into parts, by what the anchors say of their lengths.
func (r *run) spans(ctx context.Context, s *session, h *history) ([]span, error) {
	if r.cfg.Tenant != "" {
		id, _ := parseUUID(r.cfg.Tenant)
		return []span{{only: []resume{r.from(id)}}}, nil
	}
	if r.memory != nil {
		return r.resumed(ctx, s)
	}
	var list []span
	next, events := span{open: true}, uint64(0)
	for _, t := range h.tenants {
		if events > 0 && events+t.now.length > eventsAtOnce {
			next.to, next.open = t.id, false
			list = append(list, next)
			next, events = span{from: t.id, open: true}, 0
		}
		events += t.now.length
	}
	return append(list, next), nil
}

func (r *run) from(id uuid) resume {
	if saved := r.saved(id); saved != nil {
		return resume{id, saved.Length}
	}
	return resume{id, 1}
}

// resumed are all tenants, those that an earlier run knew and those that the database knows, each from where that run stopped.
func (r *run) resumed(ctx context.Context, s *session) ([]span, error) {
	known := map[uuid]bool{}
	for _, t := range r.memory.Tenants {
		known[t.id] = true
	}
	err := s.rows(ctx, `with recursive t (id) as ((select tenant_id from audit_events order by tenant_id limit 1)
union all select (select tenant_id from audit_events where tenant_id > t.id order by tenant_id limit 1) from t where t.id is not null) select id from t where id is not null`, nil,
		func(rows pgx.Rows) error {
			var id uuid
			err := rows.Scan((*[16]byte)(&id))
			known[id] = true
			return err
		})
	if err != nil {
		return nil, err
	}
	all := make([]resume, 0, len(known))
	for id := range known {
		all = append(all, r.from(id))
	}
	slices.SortFunc(all, func(a, b resume) int { return bytes.Compare(a.id[:], b.id[:]) })
	var list []span
	for part := range slices.Chunk(all, 500) {
		list = append(list, span{only: part})
	}
	return list, nil
}

// walkAll reads all chains, on several connections.
func (r *run) walkAll(ctx context.Context, h *history) ([]ended, error) {
	list, err := r.spans(ctx, r.db.leader, h)
	if err != nil {
		return nil, err
	}
	var chains []ended
	var mu sync.Mutex
	next := 0
	take := func() (span, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(list) {
			return span{}, false
		}
		next++
		return list[next-1], true
	}
	g, ctx := errgroup.WithContext(ctx)
	for range min(r.cfg.Workers, len(list)) {
		g.Go(func() error {
			s, err := r.db.session(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			ids := r.ids.run()
			defer ids.done()
			for part, more := take(); more; part, more = take() {
				w := r.walk(h, ids, part)
				if err := r.walkSpan(ctx, s, w, part); err != nil {
					return err
				}
				mu.Lock()
				chains = append(chains, w.ended...)
				mu.Unlock()
			}
			return nil
		})
	}
	err = g.Wait()
	slices.SortFunc(chains, func(a, b ended) int { return bytes.Compare(a.id[:], b.id[:]) })
	return chains, err
}

// walk is a walk of the span.
func (r *run) walk(h *history, ids *idRun, s span) *walk {
	w := &walk{run: r, h: h, ids: ids, until: len(h.tenants)}
	switch {
	case s.only == nil:
		w.next = h.from(s.from)
		if !s.open {
			w.until = h.from(s.to)
		}
	default: // the tenants of the anchors that are in none of the spans are few, and are looked for at the end
		w.next, w.until = 0, 0
		w.listed = s.only
	}
	return w
}

// walkSpan reads the span's rows.
func (r *run) walkSpan(ctx context.Context, s *session, w *walk, part span) error {
	take := func(fields [][]byte) error {
		if err := w.take(fields); err != nil || !w.asking {
			return err
		}
		w.asking = false
		return r.settle(ctx, doubtsAtOnce)
	}
	if err := s.copyOut(ctx, r.query(w.h, part), &binaryCopy{row: take}); err != nil {
		return err
	}
	w.finish()
	w.rest()
	w.tally.events.Add(w.seen)
	w.seen = 0
	return nil
}

// kept is a row as far as explanations need it.
type kept struct {
	position, cadence uint64
	event             uuid
	text, link        [sha256.Size]byte // of its text; of its hashes
}

// linkOf is a row's event_hash and prev_hash as one hash.
func linkOf(hash, prev []byte) [sha256.Size]byte {
	return sha256.Sum256(slices.Concat(hash, []byte{' '}, prev))
}

// keptAtOnce is how many positions of a chain are held.
const keptAtOnce = 50_000

// keptRows are a tenant's rows by position, which goes forward; some are held at a time.
type keptRows struct {
	session  *session
	id       uuid
	atOnce   uint64 // how many positions are held
	from, to uint64 // from … to-1
	rows     map[uint64]kept
}

// at is the row at the position, of a fork the first.
func (k *keptRows) at(ctx context.Context, position uint64) (row kept, there bool, err error) {
	if position < k.from || position >= k.to {
		k.from, k.to = position, position+k.atOnce
		err = k.read(ctx)
	}
	row, there = k.rows[position]
	return row, there, err
}

func (k *keptRows) read(ctx context.Context) error {
	k.rows = map[uint64]kept{}
	var x row
	query := fmt.Sprintf("select %s, canonical from audit_events where tenant_id = '%s' and chain_position >= %d and chain_position < %d order by chain_position", columns, k.id, k.from, k.to)
	return k.session.copyOut(ctx, query, &binaryCopy{row: func(f [][]byte) error {
		if err := x.read(f); err != nil {
			return err
		}
		if at := uint64(max(x.position, 0)); k.rows[at].position == 0 {
			k.rows[at] = kept{at, uint64(max(x.cadence, 0)), x.event, sha256.Sum256(x.text), linkOf(x.hash, x.prev)}
		}
		return nil
	}})
}
