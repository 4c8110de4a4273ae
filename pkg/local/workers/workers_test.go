package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/workers"
)

func TestFree(t *testing.T) {
	free := workers.New(3)
	require.Equal(t, 3, free.Take(t.Context()), "all that there are")
	taken := make(chan int)
	go func() { taken <- free.Take(t.Context()) }()
	free.Give(1)
	require.Equal(t, 1, <-taken, "it waits for one")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Zero(t, free.Take(over))
}

func TestPause(t *testing.T) {
	look := make(chan struct{}, 1)
	look <- struct{}{}
	workers.Pause(t.Context(), time.Hour, look)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	workers.Pause(over, time.Hour, look)
	workers.Pause(t.Context(), time.Nanosecond, look)
}
