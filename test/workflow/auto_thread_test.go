package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestAutoThread(t *testing.T) {
	t.Parallel()
	binaries := build(t)
	for name, start := range engines {
		t.Run(name, func(t *testing.T) { testAutoThread(t, newSite(t, binaries, start)) })
	}
}

func testAutoThread(t *testing.T, s *site) {
	threadOf := func(t *testing.T, output json.RawMessage) string {
		t.Helper()
		var r struct{ ThreadID string }
		require.NoError(t, json.Unmarshal(output, &r), "%q", output)
		return r.ThreadID
	}
	failed := func(t *testing.T, x ended, k kept, states ...string) {
		t.Helper()
		require.Equal(t, []any{workflow.Failed, k.ErrorType, k.Error, "failed"}, []any{x.Status, x.Error, x.Cause, k.Status})
		require.Equal(t, append(states, "FailThread", "Outcome", "Failed"), x.states())
	}

	t.Run("the agent answers, once an occurrence", func(t *testing.T) {
		input := s.scheduled(t, object{"prompt": "/say All is well."})
		x := s.run(t, input)
		require.Equal(t, workflow.Succeeded, x.Status, "%s: %s", x.Error, x.Cause)
		require.Equal(t, []string{"OpenThread", "Opened", "RunTurn", "Loops", "CloseThread"}, x.states())
		require.Equal(t, kept{Status: "succeeded", Thread: "AUTO", Title: "Daily", ThreadStatus: "closed", Turn: "succeeded", LastMessage: "assistant: All is well.",
			Messages: 2}, s.kept(t, x.ID))
		require.True(t, s.told(threadOf(t, x.Output), "closed"))

		again := s.run(t, input)
		require.Equal(t, workflow.Succeeded, again.Status, "%s: %s", again.Error, again.Cause)
		require.Equal(t, []string{"OpenThread", "Opened", "Succeeded"}, again.states())
	})
	t.Run("until a condition stops it", func(t *testing.T) {
		x := s.run(t, s.scheduled(t, object{"prompt": "/say One.", "loop": object{"maxIterations": 2, "continuationPrompt": "/say Two."}}))
		require.Equal(t, workflow.Succeeded, x.Status, "%s: %s", x.Error, x.Cause)
		require.Equal(t, []string{"OpenThread", "Opened", "RunTurn", "Loops", "NextTurn", "Goes on", "RunTurn", "Loops", "NextTurn", "Goes on", "CloseThread"}, x.states())
		require.Equal(t, kept{Status: "succeeded", Stop: "maxIterations", Thread: "AUTO", Title: "Daily", ThreadStatus: "closed", Turn: "succeeded",
			LastMessage: "assistant: Two.", Messages: 4}, s.kept(t, x.ID))
	})
	t.Run("the model fails", func(t *testing.T) {
		x := s.run(t, s.scheduled(t, object{"prompt": "/fail validation"}))
		k := s.kept(t, x.ID)
		require.NotEmpty(t, k.TurnError)
		require.Equal(t, kept{Status: "failed", ErrorType: "TurnFailed", Error: k.TurnError, Thread: "AUTO", Title: "Daily", ThreadStatus: "failed", Turn: "failed",
			TurnError: k.TurnError, LastMessage: "user: /fail validation", Messages: 1}, k)
		failed(t, x, k, "OpenThread", "Opened", "RunTurn")
	})
	t.Run("another tenant's schedule", func(t *testing.T) {
		other := s.scheduled(t, object{"prompt": "Hello"})
		other["tenantId"] = s.db.World(t, "globex-"+ident.New()).TenantID
		x := s.run(t, other)
		require.Equal(t, workflow.Succeeded, x.Status, "%s: %s", x.Error, x.Cause)
		require.Equal(t, []string{"OpenThread", "Opened", "Succeeded"}, x.states(), "to that tenant it has been deleted")
	})
	t.Run("a function is killed", func(t *testing.T) { // the one that opens the thread, after a millisecond
		x := s.run(t, s.scheduled(t, object{"prompt": "/say Hello."}), prefix+"open-auto-thread", prefix+hurried+"open-auto-thread", `"MaxAttempts": 6`, `"MaxAttempts": 1`)
		k := s.kept(t, x.ID)
		require.Equal(t, []string{"InternalError", "internal error"}, []string{k.ErrorType, k.Error})
		failed(t, x, k, "OpenThread")
		if k.Thread != "" { // it had come as far as that
			require.Equal(t, []string{"failed", "failed"}, []string{k.ThreadStatus, k.Turn})
		}
	})
	t.Run("the turn takes longer than the workflow waits", func(t *testing.T) {
		x := s.run(t, s.scheduled(t, object{"prompt": "/slow 20000\n/say One two three four."}), `"TimeoutSeconds": 93600`, `"TimeoutSeconds": 3`, `"HeartbeatSeconds": 300`, `"HeartbeatSeconds": 2`,
			`{"ErrorEquals": ["States.HeartbeatTimeout"], "IntervalSeconds": 1, "MaxAttempts": 100`, `{"ErrorEquals": ["States.HeartbeatTimeout"], "IntervalSeconds": 1, "MaxAttempts": 0`)
		k := s.kept(t, x.ID)
		require.Equal(t, []string{"TurnNotOver", "failed", "failed", k.Error}, []string{k.ErrorType, k.ThreadStatus, k.Turn, k.TurnError})
		failed(t, x, k, "OpenThread", "Opened", "RunTurn")
	})
}
