package verify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"math"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// logs reads the event logs of the bucket in the order of tenants and cadences: from each anchor's head, a log's events must lead to the next one's. It needs
// nothing of the database.
type logs struct {
	*run
	h        *history
	next     int // index of the next tenant of h that was not seen
	begun    bool
	id       uuid
	known    *tenant
	base     entry
	length   uint64
	hash     []byte // of the last event, hexadecimal, or GENESIS
	cadence  uint64 // of the last log
	heads    digest
	text     []byte
	diverged []uuid
}

func (l *logs) read(ctx context.Context) error {
	want := small
	if !l.chains {
		want = onlyLock
	}
	err := l.each(ctx, l.list(ctx), want, func(ctx context.Context, f fetched) error {
		l.tally.logs.Add(1)
		if want == onlyLock {
			return nil
		}
		return l.visit(ctx, f)
	})
	if err == nil && l.chains {
		l.finish()
		l.passed(uuid{}, true)
	}
	return err
}

// list lists the logs of the cadences that are checked. With a base, only tenants that moved since are asked for, several at a time.
func (l *logs) list(ctx context.Context) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		if l.h.lo == 0 && l.cfg.Tenant == "" {
			l.listUnder(ctx, anchor.EventPrefix, "", yield)
			return
		}
		var moved []string
		for i := range l.h.tenants {
			t := &l.h.tenants[i]
			if id := t.id.String(); t.now != t.base && (l.cfg.Tenant == "" || l.cfg.Tenant == id) {
				moved = append(moved, id)
			}
		}
		l.listTenants(ctx, moved, yield)
	}
}

// listedAhead is how many logs of a tenant are listed before its turn comes: a page.
const listedAhead = 1000

// listTenants lists the logs of these tenants in their order, while those of the next ones are being listed, as many tenants at a time as there may be requests.
func (l *logs) listTenants(ctx context.Context, ids []string, yield func(stored, error) bool) {
	type item struct {
		stored
		err error
	}
	var g sync.WaitGroup
	defer g.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	turns := make(chan chan item, l.cfg.Fetches) // in the order of ids; its one writer closes it
	g.Go(func() {
		defer close(turns)
		for _, id := range ids {
			turn := make(chan item, listedAhead)
			select {
			case turns <- turn:
			case <-ctx.Done():
				return
			}
			g.Go(func() {
				defer close(turn)
				after := ""
				if l.h.lo > 0 {
					after = anchor.EventsKey(id, l.h.lo)
				}
				l.listUnder(ctx, anchor.EventPrefix+id+"/", after, func(s stored, err error) bool {
					select {
					case turn <- item{s, err}:
						return true
					case <-ctx.Done():
						return false
					}
				})
			})
		}
	})
	for turn := range turns {
		for i := range turn {
			if !yield(i.stored, i.err) || i.err != nil {
				return
			}
		}
		if ctx.Err() != nil {
			break // what was listed may not be all
		}
	}
	if err := ctx.Err(); err != nil {
		yield(stored{}, err)
	}
}

func (l *logs) listUnder(ctx context.Context, prefix, after string, yield func(stored, error) bool) {
	for s, err := range l.run.list(ctx, prefix, after) {
		if err != nil {
			yield(s, err)
			return
		}
		_, n, ok := anchor.ParseEventsKey(s.key)
		if !ok {
			l.found.add(Finding{Class: ObjectUnexpected, Key: s.key, Detail: "not the key of an event log"})
			continue
		}
		if s.version == "" || n > l.h.hi || n <= l.h.lo { // hidden; of an anchor that is still being made; before the base
			continue
		}
		if !yield(s, nil) {
			return
		}
	}
}

func (l *logs) visit(ctx context.Context, f fetched) error {
	name, n, _ := anchor.ParseEventsKey(f.key)
	id, _ := parseUUID(name)
	if !l.begun || id != l.id {
		l.finish()
		l.passed(id, false)
		l.start(id)
	}
	if f.gone {
		return nil
	}
	l.turn(n)
	before := l.length
	err := l.lines(ctx, f, func(line []byte) error {
		l.text = append(append(l.text[:0], line...), l.hash...)
		sum := sha256.Sum256(l.text)
		l.hash = hex.AppendEncode(l.hash[:0], sum[:])
		l.length++
		return nil
	})
	if errors.Is(err, errLine) || err == nil && l.length == before {
		l.found.add(Finding{Class: LogMismatch, TenantID: name, Cadence: n, Key: f.key, Detail: "not lines of events"})
		err = nil
	}
	l.cadence = n
	return err
}

var errLine = errors.New("the last line has no end")

// lines gives each line of a log.
func (r *run) lines(ctx context.Context, f fetched, line func([]byte) error) error {
	if f.body != nil || f.size == 0 {
		for rest := f.body; len(rest) > 0; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return errLine
			}
			if err := line(rest[:i]); err != nil {
				return err
			}
			rest = rest[i+1:]
		}
		return nil
	}
	ctx, w := watched(ctx, "the bucket", r.cfg.Patience)
	defer w.end()
	body, size, err := r.cfg.Bucket.Open(ctx, f.key, f.version)
	if fault.IsMissing(err) {
		r.vanished(f.stored)
		return nil
	}
	if err != nil {
		return cause(ctx, err)
	}
	defer body.Close()
	r.sized(f.stored, size)
	in := bufio.NewReaderSize(&lively{&content{body, min(f.size, size)}, w}, 256<<10)
	var long []byte // a line that does not fit
	for {
		piece, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine:
			long = append(long, piece...)
			continue
		case errors.Is(err, io.EOF) && len(piece)+len(long) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return errLine
		case err != nil:
			return cause(ctx, err)
		}
		if len(long) > 0 {
			long = append(long, piece...)
			piece, long = long, long[:0]
		}
		w.rest() // the line's visitor may ask the database
		err = line(piece[:len(piece)-1])
		w.wake()
		if err != nil {
			return err
		}
	}
}

const maxLine = 8 << 20 // bytes; an event has at most one MiB of payload

func (l *logs) start(id uuid) {
	l.begun, l.id, l.known = true, id, l.h.tenant(id)
	l.base, l.length, l.cadence, l.heads = entry{}, 0, 0, digest{}
	l.hash = append(l.hash[:0], audit.Genesis...)
	if l.known != nil && l.known.base.length > 0 {
		l.base, l.length = l.known.base, l.known.base.length
		l.hash = hex.AppendEncode(l.hash[:0], l.base.hash[:])
	}
}

// turn is as walk.turn.
func (l *logs) turn(to uint64) {
	if l.length <= l.base.length || to <= l.cadence {
		return
	}
	n := l.h.covering(l.cadence)
	if n == 0 || n >= to {
		return
	}
	head := entry{length: l.length}
	head.hash, _ = unhex(l.hash)
	l.heads.add(n, head, false)
}

func (l *logs) finish() {
	if !l.begun {
		return
	}
	l.begun = false
	l.turn(math.MaxUint64)
	switch {
	case l.known == nil:
		l.found.add(Finding{Class: LogMismatch, TenantID: l.id.String(), Key: anchor.EventPrefix + l.id.String() + "/", Detail: "event logs of a tenant that no anchor knows"})
	case l.heads != l.known.heads:
		l.diverged = append(l.diverged, l.id)
	}
}

// passed notes the tenants before id (or all) that should have logs and have none.
func (l *logs) passed(id uuid, all bool) {
	for ; l.next < len(l.h.tenants); l.next++ {
		t := &l.h.tenants[l.next]
		order := bytes.Compare(t.id[:], id[:])
		if !all && order > 0 {
			return
		}
		if !all && order == 0 {
			l.next++
			return
		}
		if t.heads != (digest{}) && (l.cfg.Tenant == "" || l.cfg.Tenant == t.id.String()) {
			l.diverged = append(l.diverged, t.id)
		}
	}
}
