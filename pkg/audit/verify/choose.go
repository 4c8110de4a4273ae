package verify

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// listMore lists again, up to an anchor that the database knows as published: it may have been published since the first listing.
func (r *run) listMore(ctx context.Context, list []numbered, anchored uint64) ([]numbered, error) {
	newest := uint64(0)
	if len(list) > 0 {
		newest = list[len(list)-1].n
	}
	if anchored <= newest {
		return list, nil
	}
	more, err := r.listAnchors(ctx, newest)
	if err != nil {
		return nil, err
	}
	for _, a := range more {
		if a.n <= anchored {
			list = append(list, a)
		}
	}
	return list, nil
}

// choose finds which anchors the run is about. The list that it gives begins with the base if the state of the log at the base is known (seeded), else with
// the first anchor of all.
func (r *run) choose(ctx context.Context, list []numbered) (h *history, chosen []numbered, seeded bool, err error) {
	h = &history{}
	if len(list) > 0 {
		h.hi = list[len(list)-1].n
	}
	if m := r.memory; m != nil {
		h.lo, h.log = m.Anchor.Number, m.log.Clone()
		return h, after(list, h.lo-1), true, nil
	}
	if !r.cfg.Until.IsZero() {
		end := 0
		end, err = r.search(ctx, list, func(h anchor.Header) bool { return !begins(h).Before(r.cfg.Until) })
		list = list[:end]
		if h.hi = 0; end > 0 {
			h.hi = list[end-1].n
		}
	}
	if err == nil && !r.cfg.Since.IsZero() {
		var first int
		first, err = r.search(ctx, list, func(h anchor.Header) bool { return h.Window.To.After(r.cfg.Since) })
		if first > 0 {
			h.lo = list[first-1].n
		}
	}
	if err != nil || h.lo == 0 {
		return h, list, false, err
	}
	if r.db != nil {
		if h.log, seeded, err = r.logAt(ctx, list, h.lo); err != nil {
			return h, nil, false, err
		}
	}
	if seeded {
		list = after(list, h.lo-1)
	}
	return h, list, seeded, nil
}

func begins(h anchor.Header) time.Time {
	if h.Backfill != nil {
		return h.Backfill.From.Time
	}
	return h.Window.From.Time
}

// after are the anchors with a higher number.
func after(list []numbered, n uint64) []numbered {
	return list[sort.Search(len(list), func(i int) bool { return list[i].n > n }):]
}

// search is the index of the first anchor that is so; those after it are so too. Anchors that cannot be read are passed over.
func (r *run) search(ctx context.Context, list []numbered, is func(anchor.Header) bool) (int, error) {
	from, to := 0, len(list)
	for from < to {
		middle := (from + to) / 2
		at, yes := middle, false
		for ; at < to; at++ {
			a, err := r.peek(ctx, list[at])
			if err != nil {
				return 0, err
			}
			if a != nil {
				yes = is(a.Header)
				break
			}
		}
		switch {
		case at == to || yes: // what cannot be read goes with what comes after it
			to = middle
		default:
			from = at + 1
		}
	}
	return from, nil
}

// peek reads an anchor; nil if there is none.
func (r *run) peek(ctx context.Context, n numbered) (*anchor.Anchor, error) {
	f := &fetched{stored: n.stored}
	if err := r.silent().get(ctx, f, entire); err != nil || f.gone {
		return nil, err
	}
	a, err := anchor.Parse(f.body)
	r.buffers.put(f.body)
	if err != nil {
		return nil, nil //nolint:nilerr // reading it in its turn finds that
	}
	return &a, nil
}

// logAt takes the state of the log at anchor n from the database, if it leads to the root that the anchor's checkpoint signs.
func (r *run) logAt(ctx context.Context, list []numbered, n uint64) (log merkle.Range, ok bool, err error) {
	i := slices.IndexFunc(list, func(a numbered) bool { return a.n == n })
	a, err := r.peek(ctx, list[i])
	if err != nil || a == nil {
		return log, false, err
	}
	var state []byte
	err = r.db.leader.row(ctx, `select coalesce((select log_tree from audit_anchors where number = $1), '')`, []any{int64(n)}, &state)
	if err != nil || log.UnmarshalBinary(state) != nil {
		return merkle.Range{}, false, err
	}
	c, err := anchor.ParseCheckpoint(a.Checkpoint)
	if err != nil || log.Size() != n || log.Root() != c.Root {
		return merkle.Range{}, false, nil //nolint:nilerr // then all anchors are read
	}
	return log, true, nil
}

// Origin is the name that the newest anchor's checkpoint gives the log; empty if there is no anchor. It says what the bucket says: whoever can, gives the verifier
// the name instead.
func Origin(ctx context.Context, cfg Config) (string, error) {
	if err := cfg.fill(); err != nil {
		return "", err
	}
	r := &run{cfg: cfg, found: &collector{limit: 1}, tally: &tally{}, buffers: &buffers{}}
	list, err := r.listAnchors(ctx, 0)
	if err != nil || len(list) == 0 {
		return "", err
	}
	a, err := r.peek(ctx, list[len(list)-1])
	if err != nil || a == nil {
		return "", err
	}
	c, err := anchor.ParseCheckpoint(a.Checkpoint)
	return c.Origin, err
}
