package host

import (
	"slices"
	"time"
)

// function is a function and its instances. All of it is under the host's lock.
type function struct {
	Function
	binary string

	waiting []*invocation // no instance has them yet, oldest first
	idle    []*instance   // wait for an invoke; the last one came last
	free    int           // instances that will ask for an invoke before they have one: that start, that are idle, that have just answered
	count   int           // all instances
	starts  []time.Duration
}

// invocation is one invoke.
type invocation struct {
	id       string
	payload  []byte
	came     time.Time
	deadline time.Time // once it has begun
	done     chan outcome
}

type outcome struct {
	answer []byte
	err    error
}

// end tells the caller, who hears the first end only.
func (v *invocation) end(answer []byte, err error) {
	select {
	case v.done <- outcome{answer, err}:
	default:
	}
}

// enqueue gives an invoke to an idle instance, the one that was busy last, or has it wait for the next.
func (h *Host) enqueue(f *function, v *invocation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return ErrStopped
	}
	if n := len(f.idle); n > 0 {
		i := f.idle[n-1]
		f.idle = f.idle[:n-1]
		i.assign(v)
		i.work <- v
		return nil
	}
	f.waiting = append(f.waiting, v)
	h.balance()
	return nil
}

// withdraw takes out an invoke that has not begun.
func (h *Host) withdraw(f *function, v *invocation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(f.waiting, v); at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
	}
}

// balance starts instances for what waits, the oldest first, as long as the bounds allow; at the bound on all it has idle ones make room.
// The lock is held.
func (h *Host) balance() {
	for !h.stopped {
		f := h.neediest()
		if f == nil {
			return
		}
		if len(h.instances) < h.config.Instances {
			f.count++
			f.free++
			h.start(f)
			continue
		}
		if h.leaving == 0 { // each end comes here again
			if i := h.longestIdle(); i != nil {
				i.leave()
			}
		}
		return
	}
}

// neediest is the function that has waited longest for an instance of which none is on its way; nil: there is none.
func (h *Host) neediest() (found *function) {
	for _, f := range h.functions {
		if len(f.waiting) > f.free && f.count < f.Concurrency && (found == nil || f.waiting[f.free].came.Before(found.waiting[found.free].came)) {
			found = f
		}
	}
	return found
}

func (h *Host) longestIdle() (found *instance) {
	for _, f := range h.functions {
		for _, i := range f.idle {
			if found == nil || i.since.Before(found.since) {
				found = i
			}
		}
	}
	return found
}

// ask is an instance that wants an invoke: what it is to do, or nil when it has to wait for its work; ok: it may ask now.
func (h *Host) ask(i *instance) (v *invocation, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := i.of
	if i.current != nil || i.asking {
		return nil, false
	}
	if i.killed { // it gets nothing more; gone does the rest
		return nil, true
	}
	if !i.polled {
		i.polled = true
		i.limit.Stop()
		if f.starts = append(f.starts, time.Since(i.began)); len(f.starts) > 1000 {
			f.starts = f.starts[1:]
		}
	}
	i.since = time.Now()
	if len(f.waiting) > 0 {
		v = f.waiting[0]
		f.waiting = f.waiting[1:]
		i.assign(v)
		return v, true
	}
	i.asking = true
	f.idle = append(f.idle, i)
	h.balance() // another function may wait for room
	return nil, true
}

// unask is an instance that does not wait any more for what it asked for.
func (h *Host) unask(i *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i.asking = false
	i.of.idle = slices.DeleteFunc(i.of.idle, func(o *instance) bool { return o == i })
}

// Start is how long a function's instances took to start: from the start of the process to the first invoke it asked for.
type Start struct {
	Function  string
	Instances int // running now
	Starts    int // so far, of the last thousand
	P50, Max  time.Duration
}

// Starts are the starts of all functions that were started, by name.
func (h *Host) Starts() []Start {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Start
	for name, f := range h.functions {
		if len(f.starts) > 0 {
			sorted := slices.Sorted(slices.Values(f.starts))
			all = append(all, Start{name, f.count, len(sorted), sorted[len(sorted)/2], sorted[len(sorted)-1]})
		}
	}
	slices.SortFunc(all, func(a, b Start) int {
		if a.Function < b.Function {
			return -1
		}
		return 1
	})
	return all
}
