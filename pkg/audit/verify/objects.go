package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// stored is a key of the bucket, and the version of it that counts: the first that was written, which its lock holds.
type stored struct {
	key, version string // an empty version: all of them are delete markers
	size         int64
	modified     time.Time
}

// list yields the keys under prefix that sort after after, in order. What is not exactly one version is a finding.
func (r *run) list(ctx context.Context, prefix, after string) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		ctx, w := watched(ctx, "the bucket", r.cfg.Patience)
		defer w.end()
		var now stored
		versions, markers := 0, 0
		give := func() bool {
			if versions > 1 {
				r.found.add(Finding{Class: ObjectReplaced, Key: now.key, Detail: fmt.Sprintf("%d versions, where one is written; the oldest is what is checked here", versions)})
			}
			if markers > 0 {
				r.found.add(Finding{Class: ObjectHidden, Key: now.key, Detail: "a delete marker hides it from readers"})
			}
			w.rest()
			defer w.wake()
			return yield(now, nil)
		}
		for v, err := range r.cfg.Bucket.Versions(ctx, prefix, after) {
			if err != nil {
				yield(stored{}, cause(ctx, err))
				return
			}
			w.wake()
			if v.Key != now.key {
				if now.key != "" && !give() {
					return
				}
				now, versions, markers = stored{key: v.Key}, 0, 0
			}
			if v.DeleteMarker {
				markers++
				continue
			}
			if versions > 0 && v.ID == now.version {
				continue // some storages list what ends a page once more at the beginning of the next
			}
			versions++
			now.version, now.size, now.modified = v.ID, v.Size, v.Modified // the newest comes first
		}
		if now.key != "" {
			give()
		}
	}
}

// fetched is an object that was listed, with its content if that was asked for.
type fetched struct {
	stored
	body []byte // good until the visit ends; nil when gone or large
	gone bool   // listed, but not to be had: a finding has been made
	hold int64  // bytes held against the budget
}

// wanted is how much of an object is fetched.
type wanted int

const (
	onlyLock wanted = iota
	small           // the content, but that of large objects is left for the visitor to stream
	entire          // the content, whatever its size
)

const (
	budget = 16 << 20 // bytes of objects that are held at a time
	large  = 4 << 20  // bytes from which an object is streamed

	// What the platform never exceeds: the ledger's own limits on what it reads back.
	maxAnchor = 1 << 30
	maxBeacon = 64 << 20
)

// most is how large an object may be that is read entire.
func most(key string) int64 {
	if strings.HasPrefix(key, anchor.BeaconPrefix) {
		return maxBeacon
	}
	return maxAnchor
}

// each visits the objects of items in their order, one at a time, while the next ones are being fetched and their locks checked.
func (r *run) each(ctx context.Context, items iter.Seq2[stored, error], want wanted, visit func(context.Context, fetched) error) error {
	g, ctx := errgroup.WithContext(ctx)
	room := semaphore.NewWeighted(budget)
	slots := semaphore.NewWeighted(int64(r.cfg.Fetches))
	turns := make(chan chan fetched, r.cfg.Fetches) // in the order of items; its one writer closes it
	g.Go(func() error {
		defer close(turns)
		for item, err := range items {
			if err != nil {
				return err
			}
			f := fetched{stored: item}
			if want == entire || want == small && item.size < large {
				f.hold = min(max(item.size, 0), budget)
			}
			// Room is given in order, so the object whose turn it is always has its own, and the visitor never waits for ever.
			if err := room.Acquire(ctx, f.hold); err != nil {
				return err
			}
			if err := slots.Acquire(ctx, 1); err != nil {
				return err
			}
			turn := make(chan fetched, 1) // the fetch never waits for the visitor
			g.Go(func() error {
				defer slots.Release(1)
				err := r.get(ctx, &f, want)
				if err == nil {
					turn <- f
				}
				return err
			})
			select {
			case turns <- turn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	g.Go(func() error {
		for turn := range turns {
			select {
			case f := <-turn:
				err := visit(ctx, f)
				r.buffers.put(f.body)
				room.Release(f.hold)
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// get checks the object's lock and reads its content.
func (r *run) get(ctx context.Context, f *fetched, want wanted) error {
	ctx, w := watched(ctx, "the bucket", r.cfg.Patience)
	defer w.end()
	if f.version == "" {
		f.gone = true
		return nil
	}
	if err := r.checkLock(ctx, f.stored); err != nil {
		return cause(ctx, err)
	}
	w.wake()
	if want == onlyLock || want == small && f.size >= large {
		return nil
	}
	if limit := most(f.key); f.size < 0 || f.size > limit {
		f.gone = true
		r.found.add(Finding{Class: ObjectChanged, Key: f.key, Detail: fmt.Sprintf("%d bytes are listed, the platform writes at most %d: it is not read", f.size, limit)})
		return nil
	}
	body, size, err := r.cfg.Bucket.Open(ctx, f.key, f.version)
	if fault.IsMissing(err) {
		f.gone = true
		r.vanished(f.stored)
		return nil
	}
	if err != nil {
		return cause(ctx, err)
	}
	defer body.Close()
	f.body, err = r.buffers.fill(&lively{body, w}, int(f.size))
	if err != nil {
		return cause(ctx, err)
	}
	r.sized(f.stored, size)
	return nil
}

func (r *run) vanished(s stored) {
	r.found.add(Finding{Class: ObjectChanged, Key: s.key, Detail: "listed, but it cannot be read"})
}

func (r *run) sized(s stored, size int64) {
	if size != s.size {
		r.found.add(Finding{Class: ObjectChanged, Key: s.key, Detail: fmt.Sprintf("%d bytes are listed, %d are read", s.size, size)})
	}
}

// checkLock holds an object's lock to the floor, counted from when the storage says it was written.
func (r *run) checkLock(ctx context.Context, s stored) error {
	if !r.retention {
		return nil
	}
	mode, until, err := r.cfg.Bucket.Lock(ctx, s.key, s.version)
	if fault.IsMissing(err) {
		return nil // reading it finds that
	}
	if err != nil {
		return err
	}
	r.tally.locks.Add(1)
	switch floor := s.modified.Add(r.cfg.RetentionFloor); {
	case mode == "":
		r.found.add(Finding{Class: LockMode, Key: s.key, Detail: "has no lock"})
	case mode != object.Compliance:
		r.found.add(Finding{Class: LockMode, Key: s.key, Detail: "locked in mode " + mode + ", which can be lifted; COMPLIANCE is asked for"})
	case until.Before(floor.Add(-time.Minute)):
		r.found.add(Finding{Class: Retention, Key: s.key, Detail: fmt.Sprintf("locked until %s; written at %s, so the floor is %s", stamp(until), stamp(s.modified), stamp(floor))})
	}
	return nil
}

// content is the size bytes of an object that were listed, and then the end, whatever the storage still sends.
type content struct {
	io.Reader
	left int64
}

func (c *content) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.Reader.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); c.left <= 0 {
		err = nil
	}
	return n, err
}

// lively wakes the watch with every byte that comes.
type lively struct {
	io.Reader
	*watch
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.wake()
	}
	return n, err
}

// buffers are reused: contents come and go by the thousand.
type buffers struct{ pool sync.Pool }

func (b *buffers) get(n int) []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok && cap(*buf) >= n {
		return (*buf)[:n]
	}
	const step = 32 << 10 // sizes differ a little: the next one shall fit
	if n <= step/8 {
		return make([]byte, n, step/8)
	}
	return make([]byte, n, (n+step-1)/step*step)
}

// fill reads up to n bytes; fewer are no error. What is large gets its memory as its bytes come, and not for a size that is only claimed.
func (b *buffers) fill(in io.Reader, n int) ([]byte, error) {
	buf := b.get(min(n, large))
	got, err := io.ReadFull(in, buf)
	for err == nil && len(buf) < n {
		buf = slices.Grow(buf, min(len(buf), n-len(buf)))
		buf = buf[:min(cap(buf), n)]
		var more int
		more, err = io.ReadFull(in, buf[got:])
		got += more
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:got], err
}

func (b *buffers) put(buf []byte) {
	if buf != nil && cap(buf) <= large {
		b.pool.Put(&buf)
	}
}
