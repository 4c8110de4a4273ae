package main

import (
	"bytes"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// A process that is told to stop in the middle of the model's second answer hands its turn back, wakes the dispatcher and ends with exit code
// 0. Another process takes the turn up at once, behind its last finished step.
func TestStopInTheMiddleOfATurn(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		w := newWorld(t)
		w.gated.Store(2)
		th, id := w.ask("/tool read_thread {\"threadId\":\"CHAT-1\"}")
		first := start(t, w.environment())
		require.NoError(t, agentcore.HTTP{URL: first.url}.Start(t.Context(), th.UUID, w.dispatch(id)))
		w.wait()

		require.NoError(t, first.cmd.Process.Signal(signal))
		require.Equal(t, 0, first.exit(), first.output())
		require.Equal(t, []string{"agentplatform-test-dispatch-turn"}, w.woken())
		require.Equal(t, turn.Running, w.turn(id).Status)

		second := start(t, w.environment())
		close(w.open)
		response, err := http.Post(second.url+"/invocations", "application/json", bytes.NewReader(w.dispatch(id)))
		require.NoError(t, err)
		var stream bytes.Buffer
		_, err = stream.ReadFrom(response.Body) // until the turn's end
		require.NoError(t, err)
		response.Body.Close()
		require.Contains(t, stream.String(), "event: accepted\n")
		require.Contains(t, stream.String(), "event: done\ndata: {\"status\":\"succeeded\"}\n")

		record := w.turn(id)
		require.Equal(t, turn.Succeeded, record.Status)
		require.Equal(t, 1, record.Attempts)
		require.Len(t, record.ToolOutcomes, 1)
		require.Equal(t, int32(3), w.calls.Load(), "the answer of before was not asked for again")
		messages, err := thread.Messages(t.Context(), w.db.App.In(w.TenantID), []thread.Ref{{ID: th.ID, UUID: th.UUID}}, thread.OldestFirst, nil, 10)
		require.NoError(t, err)
		require.Len(t, messages[th.UUID], 2)
	}
}

func TestAnIdleRuntimeStops(t *testing.T) {
	w := newWorld(t)
	p := start(t, w.environment())
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.exit(), p.output())
	require.Empty(t, w.woken())
}

// Without Lambda, the turn that waits in the thread runs in the same process.
func TestTheNextTurnRunsHere(t *testing.T) {
	w := newWorld(t)
	w.gated.Store(1)
	th, first := w.ask("/say One two three.")
	p := start(t, append(w.environment(), "FUNCTION_PREFIX=none", "APPSYNC_URL=none"))
	var progress [][]byte
	ended := make(chan error, 1)
	go func() {
		ended <- agentcore.HTTP{URL: p.url, Relay: func(e []byte) { progress = append(progress, bytes.Clone(e)) }}.Start(t.Context(), th.UUID, w.dispatch(first))
	}()
	w.wait()
	second := w.more(th, "/say Four.")
	close(w.open)
	require.NoError(t, <-ended)
	require.Equal(t, turn.Succeeded, w.turn(first).Status)
	require.NotEmpty(t, progress)
	require.Eventually(t, func() bool { return w.turn(second).Status == turn.Succeeded }, patience, tick)
}

func TestAMissingSettingIsNamed(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"DATABASE_URL", "AWS_REGION", "APPSYNC_URL", "FUNCTION_PREFIX"} {
		p := launch(t, append(w.environment(), name+"="))
		require.Equal(t, 1, p.exit())
		require.Equal(t, "agent-runtime: "+name+" is not set\n", p.output())
	}
}
