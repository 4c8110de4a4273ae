package sandbox

import (
	"context"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// ErrBusy is that of a script that found no place in time. It has not run.
var ErrBusy = fault.New(fault.RateLimitExceeded, "the sandbox is busy with other scripts; try again in a moment")

// Bound is a sandbox that runs a few scripts at a time in this process; more wait.
type Bound struct {
	sandbox  Sandbox
	places   chan struct{} // of those that run
	line     chan struct{} // of those that run or wait
	patience time.Duration
}

// NewBound has s run atOnce scripts at a time and waiting more wait, each for patience at most.
func NewBound(s Sandbox, atOnce, waiting int, patience time.Duration) *Bound {
	return &Bound{s, make(chan struct{}, atOnce), make(chan struct{}, atOnce+waiting), patience}
}

// Run implements Sandbox; who finds the line full, or waits in it for too long, gets ErrBusy.
func (b *Bound) Run(ctx context.Context, s Script) (Result, error) {
	select {
	case b.line <- struct{}{}:
		defer func() { <-b.line }()
	default:
		return Result{}, ErrBusy
	}
	patience := time.NewTimer(b.patience)
	defer patience.Stop()
	select {
	case b.places <- struct{}{}:
		defer func() { <-b.places }()
	case <-patience.C:
		return Result{}, ErrBusy
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	return b.sandbox.Run(ctx, s)
}
