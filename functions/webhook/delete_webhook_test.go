package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestDeleteWebhook(t *testing.T) {
	s := newSite(t)
	w, other := s.hook(), s.hook()
	path := "/api/webhooks/" + w.ID
	run := s.accepted(w, `{"message":"x"}`, "Idempotency-Key", "one")
	otherRun := s.accepted(other, `{"message":"x"}`, "Idempotency-Key", "one")
	require.NotEqual(t, run.RunID, otherRun.RunID, "keys are each webhook's own")

	for _, tag := range []string{`"2"`, `W/"1"`, `"0", "2"`} {
		refused(t, 412, "ValidationError", s.ask("DELETE", path, nil, "If-Match", tag))
	}
	s.get(w.ID)
	answer := s.ask("DELETE", path, nil, "If-Match", `"0", "1"`)
	require.Equal(t, 204, answer.Status)
	require.Empty(t, answer.Body)

	for _, c := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"GET", "/runs"}, {"GET", "/runs/" + run.RunID}, {"POST", "/test"}} {
		var body any
		if c[0] == "PATCH" {
			body = fields{}
		}
		p := refused(t, 404, "NotFound", s.ask(c[0], path+c[1], body))
		require.Equal(t, "webhook not found", p.Detail)
	}
	gone := refused(t, 401, "Unauthorized", s.call(w.ID, w.Token, `{"message":"x"}`))
	require.Equal(t, gone.Detail, refused(t, 401, "Unauthorized", s.call(never(), w.Token, `{"message":"x"}`)).Detail)
	refused(t, 401, "Unauthorized", s.poll(w.ID, run.RunID, w.Token))

	// Its run stays with the thread. The other webhook is as it was, and its keys are its own.
	require.ElementsMatch(t, []string{run.RunID, otherRun.RunID}, column[string](s, `select id::text from thread_turns where thread_uuid is not null`))
	again := read[webhook.Invoked](t, 200, s.call(other.ID, other.Token, `{"message":"x"}`, "Idempotency-Key", "one"))
	require.Equal(t, otherRun.RunID, again.RunID)
	require.Equal(t, 204, s.ask("DELETE", "/api/webhooks/"+other.ID, nil).Status, "nobody has to name a version")
}
