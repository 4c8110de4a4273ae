package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestTestWebhook(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 1})
	path := "/api/webhooks/" + w.ID + "/test"
	snapshot := func(runID string) string {
		t.Helper()
		one := read[turn.Run](t, 200, s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+runID, nil))
		require.True(t, one.Test)
		return string(one.ContextSnapshot)
	}
	got := read[fields](t, 202, s.ask("POST", path, nil))
	require.Equal(t, fields{"run_id": got["run_id"], "thread_id": "AUTO-1", "status": "started", "created_at": got["created_at"], "test": true}, got)
	require.Equal(t, `{"message":"This is a test of the webhook.","context":{"test":true}}`, snapshot(got["run_id"].(string)))
	own := read[webhook.Invoked](t, 202, s.ask("POST", path, `{"message":"Mine", "n":1.0}`))
	require.Equal(t, `{"message":"Mine","n":1.0}`, snapshot(own.RunID))
	require.Equal(t, []string{"Mine"}, column[string](s, `select body from messages where turn_id = $1`, own.RunID))
	require.Equal(t, []string{"dispatch-turn", "dispatch-turn"}, s.p.Invoked())

	// Beside the window, also with an Idempotency-Key, which is the callers' own.
	for range 3 {
		read[webhook.Invoked](t, 202, s.ask("POST", path, nil, "Idempotency-Key", "one"))
	}
	real := s.accepted(w, hello, "Idempotency-Key", "one")
	refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, hello))
	read[webhook.Invoked](t, 202, s.ask("POST", path, nil))
	tests := 0
	for _, run := range s.runs(w.ID) {
		require.Equal(t, run.ID != real.RunID, run.Test)
		if run.Test {
			tests++
		}
	}
	require.Equal(t, 6, tests)
	now := s.get(w.ID)
	require.EqualValues(t, 7, now.InvocationCount)
	require.NotNil(t, now.LastInvokedAt)

	// A disabled webhook can be tried out.
	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"enabled":false}`).Status)
	read[webhook.Invoked](t, 202, s.ask("POST", path, nil))
	refused(t, 403, "Forbidden", s.call(w.ID, w.Token, hello))

	before := s.rows()
	for body, status := range map[string]int{`{`: 400, `7`: 400, `{"message":""}`: 400, `{"message":"` + long(1<<20) + `"}`: 413} {
		refused(t, status, "ValidationError", s.ask("POST", path, body))
	}
	refused(t, 415, "ValidationError", s.ask("POST", path, hello, "Content-Type", "text/plain"))
	require.Equal(t, before, s.rows())

	s.suspend("suspended")
	p := refused(t, 500, "InternalError", s.ask("POST", path, nil))
	failed := s.runs(w.ID)[0]
	require.Contains(t, p.Detail, failed.ID)
	require.True(t, failed.Test)
	require.Equal(t, turn.RunFailed, failed.Status)
	require.Nil(t, failed.ThreadID)
	require.Contains(t, *failed.Error, "suspended")
}
