package sandbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// gate runs a script when it is let.
type gate struct {
	begun chan string
	let   chan struct{}
}

func (g gate) Run(_ context.Context, s sandbox.Script) (sandbox.Result, error) {
	g.begun <- s.Code
	<-g.let
	return sandbox.Result{Status: sandbox.StatusOK}, nil
}

// One runs, one waits, the third is told at once; a place that becomes free goes to who waits.
func TestBound(t *testing.T) {
	g := gate{make(chan string, 10), make(chan struct{})}
	b := sandbox.NewBound(g, 1, 1, time.Hour)
	ended := make(chan error, 3)
	start := func(ctx context.Context, code string) {
		go func() { _, err := b.Run(ctx, sandbox.Script{Code: code}); ended <- err }()
	}
	start(t.Context(), "first")
	require.Equal(t, "first", <-g.begun)
	start(t.Context(), "second")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.Run(ctx, sandbox.Script{Code: "third"})
		return errors.Is(err, sandbox.ErrBusy) // until the second is in the line, who has gone is told that
	}, time.Minute, time.Millisecond)
	_, err := b.Run(t.Context(), sandbox.Script{Code: "third"})
	require.ErrorIs(t, err, sandbox.ErrBusy)
	require.Equal(t, fault.RateLimitExceeded, fault.From(err).Type)
	g.let <- struct{}{}
	require.NoError(t, <-ended)
	require.Equal(t, "second", <-g.begun)
	g.let <- struct{}{}
	require.NoError(t, <-ended)
	require.Empty(t, g.begun, "who was refused has not run")
}

func TestWhoWaitsTooLong(t *testing.T) {
	g := gate{make(chan string, 10), make(chan struct{})}
	b := sandbox.NewBound(g, 1, 2, time.Millisecond)
	ended := make(chan error, 1)
	go func() { _, err := b.Run(t.Context(), sandbox.Script{}); ended <- err }()
	<-g.begun
	_, err := b.Run(t.Context(), sandbox.Script{})
	require.ErrorIs(t, err, sandbox.ErrBusy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sandbox.NewBound(g, 0, 1, time.Hour).Run(ctx, sandbox.Script{})
	require.ErrorIs(t, err, context.Canceled)
	g.let <- struct{}{}
	require.NoError(t, <-ended)
}
