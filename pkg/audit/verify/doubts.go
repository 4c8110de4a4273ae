package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// doubts gathers events whose occurred_at is out of bounds by their recorded_at. An emitter's time is judged when the event is accepted; it is recorded when the
// drainer comes to it, later if that was out of order, or by a clock that is a little behind. So the outbox is asked when the row was written: by the
// database's own clock, in a column that no role of the platform can set.
type doubts struct {
	mu     sync.Mutex
	list   []doubt
	waited int // events that a long wait in the outbox excuses
}

type doubt struct {
	Finding
	occurred, recorded micros
}

const (
	doubtsAtOnce = 4000
	clockSkew    = time.Minute // how far the clocks of the platform's functions and its database may be apart
)

// doubt notes the row that is being read.
func (w *walk) doubt() {
	if w.doubts == nil {
		return
	}
	r := &w.row
	d := doubt{Finding{Class: OccurredAt, TenantID: w.link.id.String(), EventID: r.event.String(), Position: uint64(max(r.position, 0)), Cadence: uint64(max(r.cadence, 0))}, r.occurred, r.recorded}
	w.doubts.mu.Lock()
	defer w.doubts.mu.Unlock()
	w.doubts.list = append(w.doubts.list, d)
	w.asking = len(w.doubts.list) >= doubtsAtOnce
}

// settle judges the doubts so far, if there are at least so many. Its caller's connection is busy, so it makes one of its own.
func (r *run) settle(ctx context.Context, least int) error {
	q := r.doubts
	q.mu.Lock()
	list := q.list
	if len(list) < least {
		q.mu.Unlock()
		return nil
	}
	q.list = nil
	q.mu.Unlock()
	s, err := r.db.session(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for len(list) > 0 {
		n := min(len(list), doubtsAtOnce)
		if err := r.judge(ctx, s, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (r *run) judge(ctx context.Context, s *session, list []doubt) error {
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.EventID
	}
	accepted := make([]*time.Time, len(list))
	err := s.rows(ctx, `select b.i, `+finite("o.created_at")+` from unnest($1::uuid[]) with ordinality b (id, i) join audit_outbox o on o.event_id = b.id`, []any{ids}, func(rows pgx.Rows) error {
		var i int
		var at time.Time
		err := rows.Scan(&i, &at)
		accepted[i-1] = &at
		return err
	})
	if err != nil {
		return err
	}
	waited := 0
	for i, d := range list {
		switch {
		case d.occurred > d.recorded:
			if d.occurred > d.recorded.add(r.cfg.MaxEventAhead+clockSkew) {
				d.Detail = fmt.Sprintf("says it occurred at %s, but it was recorded at %s", d.occurred, d.recorded)
			}
		case accepted[i] == nil, microsOf(*accepted[i]) > d.recorded: // then nothing is known but when it was recorded
			if allowed := r.cfg.MaxEventAge + r.cfg.MaxOutboxAge; d.occurred < d.recorded.add(-allowed) {
				d.Detail = fmt.Sprintf("says it occurred at %s, but it was recorded at %s, more than %s later", d.occurred, d.recorded, allowed)
			}
		case d.occurred < microsOf(accepted[i].Add(-r.cfg.MaxEventAge-clockSkew)):
			d.Detail = fmt.Sprintf("says it occurred at %s, but it came into the outbox at %s, more than %s later", d.occurred, stamp(*accepted[i]), r.cfg.MaxEventAge)
		case d.recorded.time().Sub(*accepted[i]) > r.cfg.MaxOutboxAge:
			waited++
		}
		if d.Detail != "" {
			r.found.add(d.Finding)
		}
	}
	r.doubts.mu.Lock()
	r.doubts.waited += waited
	r.doubts.mu.Unlock()
	return nil
}
