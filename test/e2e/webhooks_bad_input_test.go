package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// badCall is a call of a webhook that must be refused.
type badCall struct {
	name    string
	body    string
	headers []string
	status  int
	detail  string // part of it; of what the gateway refuses itself, part of the message
}

const goodCall = `{"message":"/say ok"}`

func badCalls() []badCall {
	bad := func(name, body, detail string) badCall {
		return badCall{name: name, body: body, status: http.StatusBadRequest, detail: detail}
	}
	unsupported := func(name, header, detail string) badCall {
		return badCall{name, goodCall, []string{header}, http.StatusUnsupportedMediaType, detail}
	}
	key := func(name, value, detail string) badCall {
		return badCall{name, goodCall, []string{"Idempotency-Key: " + value}, http.StatusBadRequest, detail}
	}
	const notJSON, notObject, noMessage, wrongType = "not valid JSON", "must be a JSON object or array", "no string message", "Content-Type must be application/json"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(goodCall))
	_ = z.Close()
	large := func(bytes int) string {
		return goodCall[:len(goodCall)-1] + `,"x":"` + strings.Repeat("x", bytes-len(goodCall)-len(`,"x":""`)) + `"}`
	}
	return []badCall{
		bad("an object that does not end", `{"message":"x"`, notJSON),
		bad("text", `nonsense`, notJSON),
		bad("spaces", `  `, notJSON),
		bad("two objects", goodCall+goodCall, notJSON),
		bad("a byte order mark", "\ufeff"+goodCall, notJSON),
		bad("a comment", goodCall+"// x", notJSON),
		bad("a trailing comma", `{"message":"x",}`, notJSON),
		bad("NaN", `{"message":"x","y":NaN}`, notJSON),
		bad("a NUL byte", "{\"message\":\"a\x00b\"}", notJSON),
		bad("bytes that are not UTF-8", "{\"message\":\"\xff\"}", notJSON),
		bad("UTF-16", "{\x00\"\x00m\x00\"\x00:\x001\x00}\x00", notJSON),
		bad("a form", "message=x", notJSON),
		bad("a string", `"message"`, notObject),
		bad("a number", `7`, notObject),
		bad("true", `true`, notObject),
		bad("null", `null`, notObject),
		bad("101 levels", strings.Repeat("[", 101)+strings.Repeat("]", 101), "more than 100 levels"),
		bad("100,000 levels", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), notJSON),
		bad("100,000 levels that do not end", strings.Repeat(`{"a":`, 100_000), notJSON),
		bad("no message", `{}`, noMessage),
		bad("an array", `["message"]`, noMessage),
		bad("a message of null", `{"message":null}`, noMessage),
		bad("a message of a number", `{"message":7}`, noMessage),
		bad("a message in other letters", `{"Message":"x"}`, noMessage),
		{name: "nothing", status: http.StatusBadRequest, detail: noMessage},
		bad("an empty message", `{"message":""}`, "the message must not be empty"),
		bad("a NUL in the message", `{"message":"a\u0000b"}`, "the message"),
		bad("a message of more than 128 KiB", `{"message":"`+strings.Repeat("x", 128<<10+1)+`"}`, "the message is longer than"),
		{"a byte more than 1 MiB", large(1<<20 + 1), nil, http.StatusRequestEntityTooLarge, "larger than 1048576 bytes"},
		{"a byte more than 1 MiB, not JSON", strings.Repeat("[", 1<<20+1), nil, http.StatusRequestEntityTooLarge, "larger than 1048576 bytes"},
		{"7 MiB", large(7 << 20), nil, http.StatusRequestEntityTooLarge, "Request Entity Too Large"},
		unsupported("no type", "Content-Type:", wrongType),
		unsupported("text", "Content-Type: text/plain", wrongType),
		unsupported("XML", "Content-Type: application/xml", wrongType),
		unsupported("a form's type", "Content-Type: application/x-www-form-urlencoded", wrongType),
		unsupported("many parts", "Content-Type: multipart/form-data; boundary=x", wrongType),
		unsupported("almost JSON", "Content-Type: application/jsonx", wrongType),
		unsupported("a merge patch", "Content-Type: application/merge-patch+json", wrongType),
		unsupported("two types", "Content-Type: application/json, text/plain", wrongType),
		unsupported("another charset", "Content-Type: application/json; charset=utf-16", wrongType),
		unsupported("no media type", "Content-Type: ;;", wrongType),
		unsupported("an encoding that it is not", "Content-Encoding: br", "must not be encoded"),
		{"gzip", zipped.String(), []string{"Content-Encoding: gzip"}, http.StatusUnsupportedMediaType, "must not be encoded"},
		bad("gzip that does not say so", zipped.String(), notJSON),
		key("a key of spaces in between", "a b", "visible ASCII"),
		key("a key beyond ASCII", "ключ", "visible ASCII"),
		key("a key of 256 characters", strings.Repeat("k", 256), "longer than 255"),
	}
}

// TestWebhookBadInput: every bad call is refused with the right status and words; nothing is written, no internal error is logged, nothing of
// it stays behind in the platform, and good calls are taken all the while.
func TestWebhookBadInput(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, "GOTRACEBACK=all")
	alice := p.as(t, "alice")
	w := alice.webhook(t, vars{"rate_limit": 100_000})
	alice.webhook(t, vars{"name": "another"})
	good := 0 // how many calls were taken
	expect := func(t *testing.T, before string) {
		t.Helper()
		for _, r := range w.runs(t) {
			require.Equal(t, "succeeded", w.finished(t, r.ID).Status)
		}
		require.Equal(t, before, p.webhookRows(t, good), "rows")
	}
	none := p.webhookRows(t, 0)

	for _, c := range badCalls() {
		t.Run(c.name, func(t *testing.T) {
			a, err := w.call(t, c.body, c.headers...)
			require.NoError(t, err)
			require.Equal(t, c.status, a.status, "%s", a.body)
			if a.header.Get("Content-Type") == "application/problem+json" {
				require.Equal(t, "ValidationError", a.get("errorType"))
				require.Contains(t, a.get("detail"), c.detail)
				require.Equal(t, "/webhooks/"+w.id, a.get("instance"))
			} else {
				require.JSONEq(t, `{"message":"`+c.detail+`"}`, string(a.body))
			}
			requireNoLeak(t, string(a.body))
			wrong, err := w.rest(t, http.MethodPost, "/webhooks/"+w.id, "wrong", c.body, c.headers...)
			require.NoError(t, err)
			if a.header.Get("Content-Type") == "application/problem+json" {
				require.Equal(t, http.StatusUnauthorized, wrong.status, "the token comes first")
			}
		})
	}
	t.Run("just allowed", func(t *testing.T) {
		expect(t, none)
		for _, body := range []string{goodCall[:len(goodCall)-1] + `,"x":"` + strings.Repeat("x", 1<<20-len(goodCall)-len(`,"x":""`)) + `"}`, " \r\n\t" + goodCall + "\n",
			`{"message":"/say ok","x":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, `{"message":"/say ok","x":["\u0000","\ud800",-0.0]}`,
			`{"message":"/say once","message":"/say twice"}`} {
			w.started(t, body, "Content-Type: application/json; charset=UTF-8", "Content-Encoding: identity")
			good++
		}
	})
	t.Run("raw bytes", func(t *testing.T) { good += rawCalls(t, w) })
	t.Run("slow bodies", func(t *testing.T) { good += slowCalls(t, w) })
	t.Run("wrong tokens", func(t *testing.T) { good += wrongTokens(t, w) })
	expect(t, none)
	require.NotContains(t, p.output.String(), " ERR ", "an internal error was logged")
	require.Equal(t, "succeeded", alice.ended(t, alice.send(t, alice.open(t), "still there?")).Status)

	for _, goroutine := range p.goroutines(t) {
		for _, inner := range []string{"pkg/local.(*httpAPI)", "functions/webhook.", "pkg/webhook."} {
			require.NotContains(t, goroutine, inner, "a goroutine has stayed behind")
		}
	}
}

// webhookRows are how many rows there are of calls, less those of so many good ones. Good ones have no key.
func (p *platform) webhookRows(t testing.TB, good int) string {
	t.Helper()
	conn := p.database(t)
	defer conn.Close(context.Background())
	var rows string
	require.NoError(t, conn.QueryRow(t.Context(), `select format('turns %s, threads %s, keys %s, invocations %s, questions %s', (select count(*) - $1 from thread_turns),
		(select count(*) - $1 from threads), (select count(*) from webhook_keys), (select sum(invocation_count) - $1 from webhooks),
		(select count(*) - $1 from messages where role = 'user'))`, good).Scan(&rows))
	return rows
}
