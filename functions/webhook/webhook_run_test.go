package webhook_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
	"github.com/agentplatform/agentplatform/schema"
)

// script is a Model that answers by a function.
type script func(r model.Request) (model.Response, error)

func (f script) Converse(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
	answer, err := f(r)
	s.Text(answer.Text())
	return answer, err
}

func (s *site) run(runID string, m script) {
	s.t.Helper()
	prices, err := model.ParsePrices(schema.Prices)
	require.NoError(s.t, err)
	r := turn.Runner{DB: s.p.DB.App, Model: m, Publish: publish.Publisher(s.p), Prices: prices, Tools: tool.Of(), Dispatch: func(context.Context, string, string) error { return nil }}
	require.NoError(s.t, r.Run(s.t.Context(), turn.Dispatch{TenantID: s.TenantID, TurnID: runID}))
}

func TestPollWebhookRun(t *testing.T) {
	s := newSite(t)
	w, other := s.hook(), s.hook()
	run := s.accepted(w, `{"message":"Hello","secret":"swordfish"}`)
	answer := s.poll(w.ID, run.RunID, w.Token)
	got := read[fields](t, 200, answer)
	require.Equal(t, fields{"run_id": run.RunID, "webhook_id": w.ID, "status": "started", "test": false, "thread_id": "AUTO-1", "agent_id": s.AgentID, "routine_id": nil, "error": nil,
		"input_tokens": 0.0, "output_tokens": 0.0, "cost_usd": nil, "created_at": run.CreatedAt.String(), "started_at": nil, "finished_at": nil}, got)

	s.run(run.RunID, func(r model.Request) (model.Response, error) {
		require.NotContains(t, r.System, "swordfish")
		during := read[turn.Run](t, 200, s.poll(w.ID, run.RunID, w.Token))
		require.Equal(t, turn.RunStarted, during.Status)
		require.NotNil(t, during.StartedAt)
		return model.Response{Blocks: []model.Block{{Text: "Good morning"}}, StopReason: model.StopEndTurn, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}, nil
	})
	done := read[turn.Run](t, 200, s.poll(w.ID, run.RunID, w.Token))
	require.Equal(t, turn.RunSucceeded, done.Status)
	require.Equal(t, [2]int{10, 5}, [2]int{done.InputTokens, done.OutputTokens})
	require.Equal(t, "0.000004", *done.CostUSD)
	require.Nil(t, done.Error)
	require.False(t, done.StartedAt.Before(done.CreatedAt.Time))
	require.False(t, done.FinishedAt.Before(done.StartedAt.Time))
	require.NotContains(t, string(s.poll(w.ID, run.RunID, w.Token).Body), "swordfish", "the payload is its owner's to read")
	again := s.call(w.ID, w.Token, hello)
	require.Equal(t, 202, again.Status)

	failed := s.accepted(w, hello, "Idempotency-Key", "one")
	s.run(failed.RunID, func(model.Request) (model.Response, error) {
		return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
	})
	lost := read[turn.Run](t, 200, s.poll(w.ID, failed.RunID, w.Token))
	require.Equal(t, turn.RunFailed, lost.Status)
	require.NotEmpty(t, *lost.Error)
	require.NotNil(t, lost.FinishedAt)
	require.NotNil(t, lost.ThreadID)
	require.Equal(t, turn.RunFailed, read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, hello, "Idempotency-Key", "one")).Status)

	for _, token := range []string{"", other.Token, w.Token + "x"} {
		refused(t, 401, "Unauthorized", s.poll(w.ID, run.RunID, token))
	}
	refused(t, 401, "Unauthorized", s.poll(never(), run.RunID, w.Token))
	missing := refused(t, 404, "NotFound", s.poll(w.ID, never(), w.Token)).Detail
	require.Equal(t, missing, refused(t, 404, "NotFound", s.poll(other.ID, run.RunID, other.Token)).Detail)
	require.Equal(t, missing, refused(t, 404, "NotFound", s.poll(w.ID, "nonsense", w.Token)).Detail)
	globex := s.neighbour("globex")
	theirs := globex.hook()
	require.Equal(t, missing, refused(t, 404, "NotFound", s.poll(theirs.ID, run.RunID, theirs.Token)).Detail)
	for range 20 { // the rate is of calls that start something
		require.Equal(t, 200, s.poll(w.ID, run.RunID, w.Token).Status)
	}
	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"enabled":false}`).Status)
	refused(t, 403, "Forbidden", s.poll(w.ID, run.RunID, w.Token))
}

// TestAnInterruptedRunFailed: what a later message of the thread stopped has no answer of its own.
func TestAnInterruptedRunFailed(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	run := s.accepted(w, hello)
	s.change(`update thread_turns set status = 'interrupted', finished_at = clock_timestamp(), started_at = clock_timestamp(), lease_until = null where id = $1`, run.RunID)
	got := s.runs(w.ID)[0]
	require.Equal(t, turn.RunFailed, got.Status)
	require.Contains(t, *got.Error, "interrupted")
}

func TestGetWebhookRun(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"prompt": "Look", "rate_limit": 1000})
	for _, body := range []string{
		`{}`, `[]`, hello, ` { "b" : 1 , "a" : [ 1.50, 12345678901234567890, -0 ] } `, `{"a":1,"a":2}`,
		`{"s":"<script>&\u0000\ud800 \u2028é"}`, `[` + strings.Repeat(`"0123456789",`, 80000) + `null]`,
	} {
		run := s.accepted(w, body)
		answer := s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+run.RunID, nil)
		got := read[map[string]json.RawMessage](t, 200, answer)
		require.Equal(t, compact(t, body), string(got["context_snapshot"]), "%.50s", body)
		require.Equal(t, text(t, run.RunID), string(got["run_id"]))
		require.Equal(t, `false`, string(got["test"]))
	}
	refused(t, 404, "NotFound", s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+never(), nil))
	refused(t, 404, "NotFound", s.ask("GET", "/api/webhooks/"+w.ID+"/runs/nonsense", nil))
}
