package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	webhookID = "01900000-0000-7000-8000-000000000101"
	agentID   = "01900000-0000-7000-8000-00000000a003"
	at        = "2026-05-04T10:00:00.000000Z"
)

type object = map[string]any

// exchange is a request and its answer.
type exchange struct {
	method, path string
	sent         http.Header
	asked        any // nil: no body
	status       int
	got          http.Header
	answered     any
}

func (e exchange) breaches(t testing.TB) []string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), e.method, "https://api.example.test"+e.path, http.NoBody)
	require.NoError(t, err)
	request.Header = e.sent
	return New(t).breaches(request, text(t, e.asked), e.status, e.got, text(t, e.answered))
}

// text is v as JSON; a string as it is, nothing for nil.
func text(t testing.TB, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []byte(v)
	}
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

// sent and got are the headers that every request and answer has, and these.
func sent(more ...string) http.Header {
	return with(http.Header{"Authorization": {"Bearer x"}, "Content-Type": {"application/json"}}, more)
}

func got(more ...string) http.Header {
	return with(http.Header{"X-Request-Id": {"req-1"}, "Cache-Control": {"no-store"}, "Content-Type": {"application/json"}}, more)
}

// with sets headers, by name and value; "" takes one out.
func with(h http.Header, pairs []string) http.Header {
	for i := 0; i < len(pairs); i += 2 {
		if h.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			h.Del(pairs[i])
		}
	}
	return h
}

func shown() object {
	return object{"id": webhookID, "tenant_id": webhookID, "token": strings.Repeat("*", 28) + "x7Qe", "name": "n", "description": nil, "target_type": "agent", "agent_id": agentID,
		"routine_id": nil, "prompt": nil, "config": object{"of": object{"the": "owner"}}, "enabled": true, "rate_limit": 10, "last_invoked_at": at, "invocation_count": 1, "has_signing_secret": false,
		"created_at": at, "updated_at": at}
}

func run() object {
	return object{"run_id": webhookID, "webhook_id": webhookID, "status": "succeeded", "test": false, "thread_id": "AUTO-1", "agent_id": agentID, "routine_id": nil, "error": nil, "input_tokens": 1,
		"output_tokens": 1, "cost_usd": "0.000001", "created_at": at, "started_at": at, "finished_at": at}
}

func problem(status int, title, errorType string) object {
	return object{"type": "about:blank", "title": title, "status": status, "detail": "d", "instance": "/webhooks/x%20y", "errorType": errorType}
}

func started() object {
	return object{"run_id": webhookID, "thread_id": "AUTO-1", "status": "started", "created_at": at}
}

func list(items ...object) object { return object{"items": items, "next_token": nil} }

// but is an object with some members changed; a removed one is taken out.
func but(of, changes object) object {
	of = maps.Clone(of)
	maps.Copy(of, changes)
	maps.DeleteFunc(of, func(_ string, v any) bool { return v == removed })
	return of
}

const removed = "\x00removed"

var (
	get    = exchange{"GET", "/api/webhooks/" + webhookID, sent(), nil, 200, got("ETag", `"3"`), shown()}
	post   = exchange{"POST", "/webhooks/" + webhookID, sent("Idempotency-Key", "k"), object{"message": "m", "list": []int{1}}, 202, got(), started()}
	create = exchange{"POST", "/api/webhooks", sent(), object{"name": "n", "agent_id": agentID, "rate_limit": nil}, 201,
		got("ETag", `"1"`, "Location", "/api/webhooks/"+webhookID), but(shown(), object{"token": strings.Repeat("a1", 16), "last_invoked_at": nil})}
	patch  = exchange{"PATCH", "/api/webhooks/" + webhookID, sent("Content-Type", "application/merge-patch+json", "If-Match", `"2"`), object{"prompt": nil}, 200, got("ETag", `"3"`), shown()}
	poll   = exchange{"GET", "/webhooks/" + webhookID + "/runs/" + webhookID, sent(), nil, 200, got(), run()}
	remove = exchange{"DELETE", "/api/webhooks/" + webhookID, sent("Content-Type", ""), nil, 204, got("Content-Type", ""), nil}
	busy   = exchange{"POST", "/webhooks/" + webhookID, sent(), nil, 429, got("Content-Type", "application/problem+json", "Retry-After", "60"), problem(429, "Too Many Requests", "RateLimitExceeded")}
	nobody = exchange{"GET", "/api/webhooks", nil, nil, 401, http.Header{"Content-Type": {"application/json"}, "Www-Authenticate": {"Bearer"}}, object{"message": "Unauthorized"}}
)

func TestWhatIsAsDescribedPasses(t *testing.T) {
	for name, e := range map[string]exchange{
		"get": get, "post": post, "create": create, "patch": patch, "poll": poll, "remove": remove, "busy": busy, "refused by the gateway": nobody,
		"refused by the function": change(nobody, func(e *exchange) {
			e.got, e.answered = got("Content-Type", "application/problem+json", "WWW-Authenticate", "Bearer"), problem(401, "Unauthorized", "Unauthorized")
		}),
		"a list": change(get, func(e *exchange) {
			e.path, e.got, e.answered = "/api/webhooks?limit=2&next_token=x", got(), list(shown())
		}),
		"an empty list": change(get, func(e *exchange) {
			e.path, e.got, e.answered = "/api/webhooks", got(), object{"items": []int{}, "next_token": "t"}
		}),
		"no body":             change(post, func(e *exchange) { e.asked, e.sent = nil, sent("Content-Type", "") }),
		"no body, but a type": change(post, func(e *exchange) { e.asked = nil }),
		"an array":            change(post, func(e *exchange) { e.asked = []any{1, nil, "x"} }),
		"a charset":           change(post, func(e *exchange) { e.sent = sent("Content-Type", "application/json; charset=UTF-8") }),
		"again":               change(post, func(e *exchange) { e.status, e.answered = 200, but(started(), object{"deduplicated": true}) }),
		"JWT without scheme":  change(get, func(e *exchange) { e.sent = sent("Authorization", "eyJhbGciOi") }),
		"lower-case header": change(get, func(e *exchange) {
			e.got = http.Header{"x-request-id": {"r"}, "cache-control": {"no-store"}, "content-type": {"application/json"}, "etag": {`"3"`}}
		}),
		"patch as JSON":             change(patch, func(e *exchange) { e.sent = sent() }),
		"busy without a time":       change(busy, func(e *exchange) { e.got.Del("Retry-After") }),
		"bad request, not taken":    refused(create, func(e *exchange) { e.asked = object{"name": 7} }),
		"no JSON, not taken":        refused(create, func(e *exchange) { e.asked = "{" }),
		"bad query, not taken":      refused(get, func(e *exchange) { e.path = "/api/webhooks?limit=many" }),
		"a path with percent signs": change(busy, func(e *exchange) { e.path = "/webhooks/x%2Fy%20z" }),
		"a run that goes on": change(poll, func(e *exchange) {
			e.answered = but(run(), object{"status": "started", "started_at": nil, "finished_at": nil})
		}),
		"a run that never was": change(poll, func(e *exchange) {
			e.answered = but(run(), object{"status": "failed", "thread_id": nil, "error": "e", "cost_usd": nil})
		}),
	} {
		require.Empty(t, e.breaches(t), name)
	}
}

func TestWhatIsNotDescribedFails(t *testing.T) {
	answering := func(of exchange, body any) exchange { return change(of, func(e *exchange) { e.answered = body }) }
	headed := func(of exchange, pairs ...string) exchange {
		return change(of, func(e *exchange) { e.got = with(e.got, pairs) })
	}
	asking := func(of exchange, body any) exchange { return change(of, func(e *exchange) { e.asked = body }) }
	asked := func(of exchange, pairs ...string) exchange {
		return change(of, func(e *exchange) { e.sent = with(e.sent, pairs) })
	}
	for name, c := range map[string]struct {
		exchange
		says string
	}{
		"unknown path":             {change(get, func(e *exchange) { e.path = "/api/hooks" }), "has no path /api/hooks"},
		"a slash too many":         {change(get, func(e *exchange) { e.path += "/" }), "has no path"},
		"unknown method":           {change(get, func(e *exchange) { e.method = "PUT" }), "no method PUT"},
		"unknown status":           {change(get, func(e *exchange) { e.status = 418 }), "get-webhook has no status 418"},
		"status of another":        {change(post, func(e *exchange) { e.status = 201 }), "no status 201"},
		"wrong content type":       {headed(get, "Content-Type", "text/plain"), "text/plain"},
		"problem as JSON":          {headed(busy, "Content-Type", "application/json"), "application/json"},
		"no content type":          {headed(get, "Content-Type", ""), "content type"},
		"missing header":           {headed(get, "ETag", ""), "header Etag is missing"},
		"missing request id":       {headed(get, "X-Request-Id", ""), "header X-Request-Id is missing"},
		"bare entity tag":          {headed(get, "ETag", `3`), "header Etag: 3, $: "},
		"cached":                   {headed(get, "Cache-Control", "max-age=1"), "header Cache-Control: max-age=1"},
		"optional header is wrong": {headed(busy, "Retry-After", "soon"), "header Retry-After: soon"},
		"wait too long":            {headed(busy, "Retry-After", "61"), "header Retry-After: 61"},
		"header not described":     {headed(get, "X-Powered-By", "x"), "header X-Powered-By is not described"},
		"location elsewhere":       {headed(create, "Location", "/webhooks/"+webhookID), "header Location"},

		"no body":          {answering(get, nil), "the answer has no body"},
		"no JSON":          {answering(get, "{"), "cannot be decoded"},
		"body of 204":      {answering(remove, object{}), "the answer has a body"},
		"type of 204":      {headed(remove, "Content-Type", "application/json"), "the answer has a body"},
		"extra member":     {answering(get, but(shown(), object{"version": 1})), "version"},
		"missing member":   {answering(get, but(shown(), object{"prompt": removed})), "prompt"},
		"wrong type":       {answering(get, but(shown(), object{"rate_limit": "10"})), "rate_limit"},
		"null":             {answering(get, but(shown(), object{"name": nil})), "name"},
		"whole token":      {answering(get, but(shown(), object{"token": strings.Repeat("a1", 16)})), "token"},
		"masked token":     {answering(create, shown()), "token"},
		"no UUID":          {answering(get, but(shown(), object{"id": "0190"})), "id"},
		"upper case":       {answering(get, but(shown(), object{"agent_id": strings.ToUpper(agentID)})), "agent_id"},
		"milliseconds":     {answering(get, but(shown(), object{"created_at": "2026-05-04T10:00:00.000Z"})), "created_at"},
		"an offset":        {answering(get, but(shown(), object{"updated_at": "2026-05-04T10:00:00.000000+00:00"})), "updated_at"},
		"no date":          {answering(get, but(shown(), object{"updated_at": "2026-13-04T10:00:00.000000Z"})), "updated_at"},
		"no date nor null": {answering(get, but(shown(), object{"last_invoked_at": ""})), "last_invoked_at"},
		"extra in a list": {change(get, func(e *exchange) {
			e.path, e.got, e.answered = "/api/webhooks", got(), list(but(shown(), object{"x": 1}))
		}), "x"},
		"no next_token":       {change(get, func(e *exchange) { e.path, e.got, e.answered = "/api/webhooks", got(), object{"items": []int{}} }), "next_token"},
		"deduplicated at 202": {answering(post, but(started(), object{"deduplicated": true})), "deduplicated"},
		"first at 200":        {change(post, func(e *exchange) { e.status = 200 }), "deduplicated"},
		"thread UUID":         {answering(post, but(started(), object{"thread_id": webhookID})), "thread_id"},
		"run with a body":     {answering(poll, but(run(), object{"context_snapshot": object{}})), "context_snapshot"},
		"failed, no reason":   {answering(poll, but(run(), object{"status": "failed"})), "error"},
		"succeeded, no end":   {answering(poll, but(run(), object{"finished_at": nil})), "finished_at"},
		"cost as a number":    {answering(poll, but(run(), object{"cost_usd": 0.1})), "cost_usd"},
		"other status":        {answering(busy, problem(400, "Too Many Requests", "RateLimitExceeded")), "status"},
		"other errorType":     {answering(busy, problem(429, "Too Many Requests", "ValidationError")), "errorType"},
		"extra in a problem":  {answering(busy, but(problem(429, "Too Many Requests", "RateLimitExceeded"), object{"stack": "s"})), "stack"},

		"taken without credentials":       {asked(get, "Authorization", ""), "no Authorization header"},
		"taken with another scheme":       {asked(post, "Authorization", "Basic eDp5"), "must be bearer"},
		"taken with a bare token":         {asked(post, "Authorization", "x"), "must be bearer"},
		"taken with a bad key":            {asked(post, "Idempotency-Key", "a b"), "Idempotency-Key"},
		"taken with a long key":           {asked(post, "Idempotency-Key", strings.Repeat("k", 256)), "Idempotency-Key"},
		"taken with a bad id":             {change(get, func(e *exchange) { e.path = "/api/webhooks/7" }), "webhookId"},
		"taken with a bad limit":          {change(get, func(e *exchange) { e.path, e.got, e.answered = "/api/webhooks?limit=0", got(), list(shown()) }), "limit"},
		"taken without a required member": {asking(create, object{"name": "n"}), "agent_id"},
		"taken with an unknown member":    {asking(create, object{"name": "n", "agent_id": agentID, "token": "t"}), "token"},
		"taken with a wrong type":         {asking(patch, object{"enabled": "yes"}), "enabled"},
		"taken without a body":            {asking(create, nil), "request, which was taken"},
		"taken though text":               {asked(post, "Content-Type", "text/plain"), "text/plain"},
		"taken though a number":           {asking(post, 7), "request, which was taken"},
		"taken with a body for nothing":   {asking(get, object{}), "not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			found := c.breaches(t)
			require.NotEmpty(t, found)
			require.Contains(t, strings.Join(found, "\n"), c.says)
		})
	}
}

// change is an exchange with something else in it.
func change(e exchange, f func(e *exchange)) exchange {
	e.sent, e.got = e.sent.Clone(), e.got.Clone()
	f(&e)
	return e
}

// refused is an exchange that the function answered with 400.
func refused(e exchange, f func(e *exchange)) exchange {
	e.status, e.got, e.answered = 400, got("Content-Type", "application/problem+json"), problem(400, "Bad Request", "ValidationError")
	return change(e, f)
}

// reporter is a test that takes note of what it is told.
type reporter struct {
	testing.TB
	said []string
}

func (r *reporter) Helper() {}

func (r *reporter) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// The message names the exchange, each breach on a line of its own, and shows both bodies.
func TestTheMessageCanBeRead(t *testing.T) {
	r := &reporter{TB: t}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.test/webhooks/"+webhookID, http.NoBody)
	require.NoError(t, err)
	request.Header = sent()
	body := but(started(), object{"thread_id": 7, "extra": true})
	New(t).Check(r, request, []byte(`{"message":"m"}`), 202, got("X-Request-Id", ""), text(t, body))
	require.Equal(t, []string{`not what schema/openapi.yaml says: POST /webhooks/` + webhookID + `, answered with 202
  answer: the header X-Request-Id is missing
  answer, $.thread_id: got number, want string
  answer, $: additional properties 'extra' not allowed
request: {"message":"m"}
answer: {"created_at":"` + at + `","extra":true,"run_id":"` + webhookID + `","status":"started","thread_id":7}`}, r.said)
	New(t).Check(r, request, nil, 202, got(), text(t, started()))
	require.Len(t, r.said, 1, "what is as described says nothing")
}

func TestSeveralTestsAtOnce(t *testing.T) {
	var checking sync.WaitGroup
	for range 8 {
		checking.Go(func() {
			for _, e := range []exchange{get, post, create, patch, poll, remove, busy, nobody} {
				if found := e.breaches(t); len(found) > 0 {
					t.Error(found)
				}
			}
		})
	}
	checking.Wait()
}
