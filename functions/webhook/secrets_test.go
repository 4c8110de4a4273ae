package webhook_test

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// sink is a log that several goroutines write.
type sink struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (s *sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func listen(t *testing.T) *sink {
	var log sink
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

// TestNoLogLineHasATokenOrAPayload goes through whatever is logged: calls that fail, dispatches that are lost, a database that refuses.
func TestNoLogLineHasATokenOrAPayload(t *testing.T) {
	log := listen(t)
	s := newSite(t)
	s.rest = s.p.REST(t, with("invoke-webhook", lossy(t)))
	w := s.hook(fields{"rate_limit": 1000, "prompt": "prompt-swordfish {{payload}}", "config": fields{"key": "config-swordfish"}})
	const body = `{"message":"payload-swordfish","deep":["swordfish"]}`
	run := s.accepted(w, body, "Idempotency-Key", "one")
	read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, body, "Idempotency-Key", "one"))
	s.poll(w.ID, run.RunID, w.Token)
	s.run(run.RunID, func(model.Request) (model.Response, error) {
		return model.Response{Blocks: []model.Block{{Text: "Done"}}, StopReason: model.StopEndTurn}, nil
	})
	refused(t, 401, "Unauthorized", s.call(w.ID, w.Token[:31], body))
	refused(t, 401, "Unauthorized", s.call(never(), w.Token, body))
	refused(t, 400, "ValidationError", s.call(w.ID, w.Token, body+`{`))
	refused(t, 415, "ValidationError", s.call(w.ID, w.Token, body, "Content-Type", "text/plain"))
	s.ask("PATCH", "/api/webhooks/"+w.ID, fields{"config": fields{"other": "config-swordfish"}})
	s.ask("POST", "/api/webhooks/"+w.ID+"/test", body)
	s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+run.RunID, nil)
	s.suspend("suspended")
	refused(t, 500, "InternalError", s.call(w.ID, w.Token, body))
	s.suspend("active")

	// A row that the database refuses: its message must not bring the row along.
	s.change(`alter table messages add constraint refused check (body not like '%swordfish%') not valid`)
	p := refused(t, 500, "InternalError", s.call(w.ID, w.Token, body))
	require.Regexp(t, `^internal error \(request req-[-0-9a-f]+\)$`, p.Detail)
	s.change(`alter table webhooks add constraint refused check (config::text not like '%swordfish%') not valid`)
	refused(t, 500, "InternalError", s.ask("PATCH", "/api/webhooks/"+w.ID, fields{"name": "x"}))
	s.change(`alter table webhooks drop constraint refused`)
	s.ask("DELETE", "/api/webhooks/"+w.ID, nil)

	lines := log.String()
	require.Contains(t, lines, "dispatch failed")
	require.Contains(t, lines, "the webhook's agent is suspended")
	require.Contains(t, lines, "violates check constraint")
	for _, secret := range []string{"swordfish", w.Token, w.Token[:31], w.Token[28:], hex.EncodeToString([]byte(w.Token))} {
		require.NotContains(t, lines, secret)
	}
}
