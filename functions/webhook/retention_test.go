package webhook_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/retention"
)

// A run whose body is not kept any more says since when; all else of it stays.
func TestARunWithoutItsBody(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"prompt": "Look", "rate_limit": 1000})
	run := s.accepted(w, hello)
	_, err := s.p.DB.Superuser(t).Exec(t.Context(), `update thread_turns set status = 'succeeded', started_at = now(), finished_at = now(), model = 'm' where id = $1`, run.RunID)
	require.NoError(t, err)
	before := read[map[string]json.RawMessage](t, 200, s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+run.RunID, nil))
	require.NotContains(t, before, "payload_pruned_at")

	p := retention.Pruner{DB: s.p.DB.App, Now: func() time.Time { return time.Now().Add(91 * 24 * time.Hour) }}
	done, err := p.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, done.Payloads)
	got := read[map[string]json.RawMessage](t, 200, s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+run.RunID, nil))
	require.NotContains(t, got, "context_snapshot")
	require.Contains(t, got, "payload_pruned_at")
	delete(before, "context_snapshot")
	delete(got, "payload_pruned_at")
	require.Equal(t, before, got)
}
