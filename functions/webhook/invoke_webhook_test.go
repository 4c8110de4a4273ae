package webhook_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

const hello = `{"message":"Hello","context":{"order":7}}`

func TestInvokeWebhook(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	answer := s.call(w.ID, w.Token, hello)
	got := read[fields](t, 202, answer)
	require.Equal(t, fields{"run_id": got["run_id"], "thread_id": "AUTO-1", "status": "started", "created_at": got["created_at"]}, got)
	require.True(t, ident.Valid(got["run_id"].(string)))
	require.Equal(t, []string{"dispatch-turn"}, s.p.Invoked())
	require.Equal(t, []string{"AUTO-1 AUTO orders user Hello queued"}, column[string](s, `select concat_ws(' ', t.prefix || '-' || t.number, t.channel, t.title, m.role, m.body, r.status)
		from threads t join messages m on m.thread_uuid = t.uuid join thread_turns r on r.thread_uuid = t.uuid and r.id = m.turn_id where r.id = $1 and r.webhook_id = $2`, got["run_id"], w.ID))
	now := s.get(w.ID)
	require.EqualValues(t, 1, now.InvocationCount)
	require.False(t, now.LastInvokedAt.Before(now.CreatedAt.Time))

	// The body may be whatever JSON can be; a prompt makes the message of it.
	all := s.hook(fields{"prompt": "{{payload.0}}|{{ payload.order.id }}|{{payload.order}}|{{payload.none}}", "rate_limit": 1000})
	for body, message := range map[string]string{
		``:      "|||",
		`{}`:    "|||",
		"\t[]":  "|||",
		`["a"]`: "a|||",
		`{"order":{"id":12345678901234567890,"x":"<é>"},"order":{"id":1.50}}`: `|1.50|{"id":1.50}|`,
		`{"order":{"id":null},"s":"\ud800\u0000"}`:                            `||{"id":null}|`,
	} {
		run := s.accepted(all, body)
		require.Equal(t, []string{message}, column[string](s, `select body from messages where turn_id = $1`, run.RunID), body)
	}
	for _, typ := range []string{"application/json; charset=utf-8", "Application/JSON", `application/json; charset="UTF-8"`} {
		s.accepted(w, hello, "Content-Type", typ)
	}
	s.accepted(w, hello, "Content-Encoding", "identity")
	s.accepted(w, hello, "Authorization", "bEARER  "+w.Token)
	exactly := `{"message":"x","pad":"` + long(handler.MaxBody-len(`{"message":"x","pad":""}`)) + `"}`
	require.Len(t, exactly, 1<<20)
	s.accepted(w, exactly)
	refused(t, 413, "ValidationError", s.call(w.ID, w.Token, exactly+" "))
	s.accepted(all, strings.Repeat(`[`, 100)+strings.Repeat(`]`, 100))
}

func TestInvokeWebhookRefuses(t *testing.T) {
	s := newSite(t)
	w, prompted := s.hook(fields{"rate_limit": 1000}), s.hook(fields{"prompt": "{{payload}}", "rate_limit": 1000})
	other := s.hook()
	disabled := s.hook(fields{"enabled": false})
	before := s.rows()

	var details []string
	for _, c := range []struct{ id, authorization string }{
		{w.ID, "Bearer " + other.Token},
		{w.ID, "Bearer " + w.Token[:31]},
		{w.ID, "Bearer " + w.Token + "x"},
		{w.ID, "Bearer " + strings.ToLower(w.Token)},
		{w.ID, "Bearer " + strings.Repeat("*", 28) + w.Token[28:]},
		{w.ID, "Basic " + w.Token},
		{w.ID, w.Token},
		{w.ID, "Bearer " + w.Token + ", Bearer " + w.Token},
		{w.ID, "Bearer " + w.Token + " " + w.Token},
		{w.ID, "Bearer"},
		{w.ID, ""},
		{never(), "Bearer " + w.Token},
		{never(), ""},
		{"nonsense", "Bearer " + w.Token},
		{"%27%3B%20drop%20table%20webhooks", "Bearer " + w.Token},
		{disabled.ID, "Bearer " + w.Token},
	} {
		answer := s.call(c.id, "", hello, "Authorization", c.authorization)
		p := refused(t, 401, "Unauthorized", answer)
		require.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"))
		details = append(details, p.Detail)
	}
	for _, d := range details {
		require.Equal(t, details[0], d, "which of the two is wrong, nobody learns")
	}
	require.Equal(t, "the webhook is disabled", refused(t, 403, "Forbidden", s.call(disabled.ID, disabled.Token, hello)).Detail)

	deep := strings.Repeat(`[`, 101) + strings.Repeat(`]`, 101)
	for body, detail := range map[string]string{
		`{`:                        "the body is not valid JSON",
		`{"message":"a"} x`:        "the body is not valid JSON",
		`{message:"a"}`:            "the body is not valid JSON",
		` `:                        "the body is not valid JSON",
		`message=a`:                "the body is not valid JSON",
		"\xef\xbb\xbf" + hello:     "the body is not valid JSON", // a byte order mark
		"{\"message\":\"\xff\"}":   "the body is not valid JSON",
		"{\"message\":\"a\nb\"}":   "the body is not valid JSON",
		strings.Repeat(`[`, 5e5):   "the body is not valid JSON",
		`"message"`:                "the body must be a JSON object or array",
		`7`:                        "the body must be a JSON object or array",
		`null`:                     "the body must be a JSON object or array",
		deep:                       "nested more than 100 levels deep",
		`{"message":` + deep + `}`: "nested more than 100 levels deep",
	} {
		for _, hook := range []webhook.Webhook{w, prompted} {
			require.Contains(t, refused(t, 400, "ValidationError", s.call(hook.ID, hook.Token, body)).Detail, detail, "%.40s", body)
		}
	}
	for body, detail := range map[string]string{
		``:                                   "the body has no string message, and the webhook has no prompt",
		`{}`:                                 "the body has no string message",
		`[]`:                                 "the body has no string message",
		`[{"message":"x"}]`:                  "the body has no string message",
		`{"Message":"x"}`:                    "the body has no string message",
		`{"message":7}`:                      "the body has no string message",
		`{"message":null}`:                   "the body has no string message",
		`{"message":["x"]}`:                  "the body has no string message",
		`{"message":""}`:                     "the message must not be empty",
		`{"message":" \n"}`:                  "the message must not be empty",
		`{"message":"a\u0000"}`:              "the message must be UTF-8 text without NUL",
		`{"message":"` + long(131073) + `"}`: "the message is longer than 131072 bytes",
	} {
		require.Contains(t, refused(t, 400, "ValidationError", s.call(w.ID, w.Token, body)).Detail, detail, "%.40s", body)
	}
	require.Contains(t, refused(t, 400, "ValidationError", s.call(prompted.ID, prompted.Token, `["`+long(131072)+`"]`)).Detail, "the message is longer than")
	for _, header := range [][]string{
		{"Content-Type", ""},
		{"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "multipart/form-data; boundary=x"},
		{"Content-Type", "application/json; charset=latin1"},
		{"Content-Type", "application/merge-patch+json"},
		{"Content-Type", "application/json, text/plain"},
		{"Content-Encoding", "gzip"},
		{"Content-Encoding", "identity, gzip"},
	} {
		refused(t, 415, "ValidationError", s.call(w.ID, w.Token, hello, header...))
	}
	refused(t, 413, "ValidationError", s.call(w.ID, w.Token, `{"message":"`+long(1<<20)+`"}`))
	refused(t, 413, "ValidationError", s.call(w.ID, w.Token, strings.Repeat("\xff", 1<<20+1), "Content-Type", "application/octet-stream"))
	for _, key := range []string{long(256), "a b", "é", "a\tb", "one, two", "\x7f"} {
		require.Contains(t, refused(t, 400, "ValidationError", s.call(w.ID, w.Token, hello, "Idempotency-Key", key)).Detail, "Idempotency-Key ", "%.9q", key)
	}
	require.Equal(t, before, s.rows())
	require.Empty(t, s.p.Invoked())
	require.Zero(t, s.get(w.ID).InvocationCount)
}

// TestOrderOfChecks: a call with two faults is told of the one that is checked first.
func TestOrderOfChecks(t *testing.T) {
	s := newSite(t)
	const broken = `{`
	full, disabled, open := s.hook(fields{"rate_limit": 1}), s.hook(fields{"enabled": false, "rate_limit": 1}), s.hook(fields{"rate_limit": 1000})

	// A wrong token before everything; disabled before the window and the body; the window before the body.
	refused(t, 401, "Unauthorized", s.call(open.ID, full.Token, broken))
	refused(t, 401, "Unauthorized", s.call(disabled.ID, full.Token, hello))
	for range 3 {
		refused(t, 403, "Forbidden", s.call(disabled.ID, disabled.Token, broken))
	}
	refused(t, 400, "ValidationError", s.call(full.ID, full.Token, broken)) // this one counts
	refused(t, 429, "RateLimitExceeded", s.call(full.ID, full.Token, broken))
	refused(t, 429, "RateLimitExceeded", s.call(full.ID, full.Token, hello))
	refused(t, 429, "RateLimitExceeded", s.call(full.ID, full.Token, hello, "Content-Type", "text/plain"))
	refused(t, 401, "Unauthorized", s.call(full.ID, open.Token, hello))
	refused(t, 403, "Forbidden", s.call(disabled.ID, disabled.Token, hello))

	// The body before the key, the key before the target.
	first := s.accepted(open, hello, "Idempotency-Key", "used")
	refused(t, 400, "ValidationError", s.call(open.ID, open.Token, broken, "Idempotency-Key", "used"))
	require.Contains(t, refused(t, 400, "ValidationError", s.call(open.ID, open.Token, broken, "Idempotency-Key", "a b")).Detail, "JSON")
	refused(t, 415, "ValidationError", s.call(open.ID, open.Token, hello, "Idempotency-Key", "used", "Content-Type", "text/plain"))
	s.suspend("suspended")
	refused(t, 400, "ValidationError", s.call(open.ID, open.Token, hello, "Idempotency-Key", "a b"))
	require.Len(t, s.runs(open.ID), 1)
	again := read[fields](t, 200, s.call(open.ID, open.Token, hello, "Idempotency-Key", "used"))
	require.Equal(t, fields{"run_id": first.RunID, "thread_id": *first.ThreadID, "status": "started", "created_at": first.CreatedAt.String(), "deduplicated": true}, again)
	refused(t, 500, "InternalError", s.call(open.ID, open.Token, hello, "Idempotency-Key", "new"))

	// Disabled before the key.
	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+open.ID, `{"enabled":false}`).Status)
	refused(t, 403, "Forbidden", s.call(open.ID, open.Token, hello, "Idempotency-Key", "used"))
}

func TestManyWrongTokens(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	before := s.rows()
	s.call(w.ID, "wrong", hello) // connections are open
	leaks := goleak.IgnoreCurrent()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 250 {
				id := w.ID
				if i%2 == 1 {
					id = never()
				}
				answer := s.call(id, never(), hello)
				require.Equal(t, 401, answer.Status)
				require.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"))
			}
		})
	}
	wait.Wait()
	// pgx reads beside a write that takes long, until the connection has something to say.
	goleak.VerifyNone(t, leaks, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"))
	require.Equal(t, before, s.rows())
	for range 10 { // all of them are left
		s.accepted(w, hello)
	}
	refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, hello))
}

func TestALostDispatchIsFoundLater(t *testing.T) {
	s := newSite(t)
	s.rest = s.p.REST(t, with("invoke-webhook", lossy(t)))
	w := s.hook()
	run := s.accepted(w, hello)
	require.Equal(t, turn.RunStarted, read[turn.Run](t, 200, s.poll(w.ID, run.RunID, w.Token)).Status)
	require.EqualValues(t, 1, s.get(w.ID).InvocationCount)

	// The reaper dispatches what is due.
	s.change(`update thread_turns set lease_until = clock_timestamp() - interval '1 minute'`)
	var found []turn.Dispatch
	_, err := turn.Reap(t.Context(), s.p.DB.App, func(_ context.Context, tenantID, turnID string) error {
		found = append(found, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []turn.Dispatch{{TenantID: s.TenantID, TurnID: run.RunID}}, found)
}
