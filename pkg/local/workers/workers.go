// Package workers counts the workers of a process that takes what is due from a database, as many at a time as are free.
package workers

import (
	"context"
	"time"
)

// Free are workers that have nothing to do, a token each.
type Free chan struct{}

// New is that many.
func New(n int) Free {
	f := make(Free, n)
	f.Give(n)
	return f
}

// Take waits for a worker and takes all that are free; none when ctx ends first.
func (f Free) Take(ctx context.Context) (n int) {
	select {
	case <-f:
		n++
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case <-f:
			n++
		default:
			return n
		}
	}
}

// Give gives that many back.
func (f Free) Give(n int) {
	for range n {
		f <- struct{}{}
	}
}

// Pause waits so long, until there is something to look at, or until ctx ends.
func Pause(ctx context.Context, pause time.Duration, look <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-look:
	case <-ctx.Done():
	}
}
