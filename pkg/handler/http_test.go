package handler_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// captured is an event of an HTTP API as AWS documents it, with a token checked by its JWT authorizer.
const captured = `{
  "version": "2.0", "routeKey": "PATCH /api/webhooks/{webhookId}", "rawPath": "/api/webhooks/a%2Fb", "rawQueryString": "limit=5&x=1&x=2",
  "cookies": ["c=1"], "headers": {"content-type": "application/json", "if-match": "\"3\"", "authorization": "Bearer abc"},
  "queryStringParameters": {"limit": "5", "x": "1,2"}, "pathParameters": {"webhookId": "a/b"},
  "requestContext": {"accountId": "123456789012", "apiId": "api", "domainName": "id.execute-api.us-east-1.amazonaws.com", "domainPrefix": "id",
    "authorizer": {"jwt": {"claims": {"custom:tenant_id": "t-1", "custom:role": "admin", "email": "a@acme.test", "email_verified": "true"}, "scopes": null}},
    "http": {"method": "PATCH", "path": "/api/webhooks/a%2Fb", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "curl/8"},
    "requestId": "JKJaXmPLvHcESHA=", "routeKey": "PATCH /api/webhooks/{webhookId}", "stage": "$default", "time": "12/Mar/2026:19:03:58 +0000", "timeEpoch": 1583348638390},
  "body": "{\"a\": \"<é>\"}", "isBase64Encoded": false}`

// ask invokes a REST operation with the captured event, changed.
func ask(t *testing.T, change func(e *events.APIGatewayV2HTTPRequest), run func(ctx context.Context, r *handler.Request) (handler.Reply, error)) events.APIGatewayV2HTTPResponse {
	t.Helper()
	var e events.APIGatewayV2HTTPRequest
	require.NoError(t, json.Unmarshal([]byte(captured), &e))
	if change != nil {
		change(&e)
	}
	payload, err := json.Marshal(e)
	require.NoError(t, err)
	raw, err := handler.REST(run).Invoke(t.Context(), payload)
	require.NoError(t, err)
	var answer events.APIGatewayV2HTTPResponse
	require.NoError(t, json.Unmarshal(raw, &answer))
	require.Equal(t, "JKJaXmPLvHcESHA=", answer.Headers["x-request-id"])
	return answer
}

func TestRESTHandsTheRequestOn(t *testing.T) {
	answer := ask(t, nil, func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		require.Equal(t, "PATCH /api/webhooks/a%2Fb 192.0.2.1 curl/8", r.Method+" "+r.Path+" "+r.SourceIP+" "+r.UserAgent)
		require.Equal(t, map[string]string{"webhookId": "a/b"}, r.Params)
		require.Equal(t, []string{"1", "2"}, r.Query["x"])
		require.Equal(t, `"3"`, r.Header("If-Match"))
		require.Equal(t, "abc", r.Bearer())
		c, err := tenant.OwnerOrAdmin(ctx)
		require.NoError(t, err)
		require.Equal(t, tenant.Caller{TenantID: "t-1", Role: tenant.Admin, Email: "a@acme.test", EmailVerified: true, RequestID: "JKJaXmPLvHcESHA="}, c)
		body, err := r.JSON()
		return handler.Reply{Status: 201, Headers: map[string]string{"ETag": `"4"`}, Body: json.RawMessage(body)}, err
	})
	require.Equal(t, 201, answer.StatusCode)
	require.Equal(t, `{"a":"<é>"}`, answer.Body)
	require.Equal(t, map[string]string{"etag": `"4"`, "content-type": "application/json", "cache-control": "no-store", "x-request-id": "JKJaXmPLvHcESHA="}, answer.Headers)

	answer = ask(t, func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = nil
		delete(e.Headers, "authorization")
	},
		func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
			_, err := tenant.From(ctx)
			require.Equal(t, fault.Unauthorized, fault.From(err).Type, "a route without an authorizer has no caller")
			require.Empty(t, r.Bearer())
			return handler.Reply{}, nil
		})
	require.Equal(t, 204, answer.StatusCode)
	require.Empty(t, answer.Body)
	require.NotContains(t, answer.Headers, "content-type")
}

func TestRESTReadsBodiesWhenAsked(t *testing.T) {
	big := strings.Repeat("x", handler.MaxBody)
	for name, c := range map[string]struct {
		change func(e *events.APIGatewayV2HTTPRequest)
		status int
		detail string
	}{
		"text": {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "Application/JSON; charset=UTF-8" }, 200, ""},
		"base64": {func(e *events.APIGatewayV2HTTPRequest) {
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(big)), true
		}, 200, ""},
		"as large":  {func(e *events.APIGatewayV2HTTPRequest) { e.Body = big }, 200, ""},
		"identity":  {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-encoding"] = "identity" }, 200, ""},
		"too large": {func(e *events.APIGatewayV2HTTPRequest) { e.Body = big + "x" }, 413, "larger than 1048576 bytes"},
		"and base64": {func(e *events.APIGatewayV2HTTPRequest) {
			e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(big+"x")), true
		}, 413, "larger"},
		"not base64": {func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded = true }, 400, "cannot be read"},
		"no type":    {func(e *events.APIGatewayV2HTTPRequest) { delete(e.Headers, "content-type") }, 415, "Content-Type"},
		"other type": {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "text/plain" }, 415, "Content-Type"},
		"other text": {func(e *events.APIGatewayV2HTTPRequest) {
			e.Headers["content-type"] = "application/json; charset=latin1"
		}, 415, "Content-Type"},
		"gzip":         {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-encoding"] = "gzip" }, 415, "must not be encoded"},
		"broken type":  {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "application/json; charset" }, 415, "Content-Type"},
		"of two types": {func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "application/json,text/plain" }, 415, "Content-Type"},
	} {
		answer := ask(t, c.change, func(_ context.Context, r *handler.Request) (handler.Reply, error) {
			body, err := r.JSON()
			return handler.Reply{Body: len(body)}, err
		})
		require.Equal(t, c.status, answer.StatusCode, name)
		require.Contains(t, answer.Body, c.detail, name)
	}
}

func TestRESTAnswersProblems(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	for _, c := range []struct {
		err  error
		body string
	}{
		{fault.Missing("webhook"), `{"type":"about:blank","title":"Not Found","status":404,"detail":"webhook not found","instance":"/api/webhooks/a%2Fb","errorType":"NotFound"}`},
		{fault.Invalid("no <b>").WithStatus(409), `{"type":"about:blank","title":"Conflict","status":409,"detail":"no <b>","instance":"/api/webhooks/a%2Fb","errorType":"ValidationError"}`},
		{errors.New("password=hunter2"), `{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"internal error (request JKJaXmPLvHcESHA=)","instance":"/api/webhooks/a%2Fb","errorType":"InternalError"}`},
	} {
		answer := ask(t, nil, func(context.Context, *handler.Request) (handler.Reply, error) {
			return handler.Reply{Status: 201, Headers: map[string]string{"Retry-After": "7"}, Body: "not seen"}, c.err
		})
		require.Equal(t, c.body, answer.Body)
		require.Equal(t, fault.From(c.err).Status(), answer.StatusCode)
		require.Equal(t, "application/problem+json", answer.Headers["content-type"])
		require.Equal(t, "7", answer.Headers["retry-after"])
		require.NotContains(t, answer.Headers, "www-authenticate")
	}
	require.Contains(t, log.String(), `route="PATCH /api/webhooks/{webhookId}"`)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "faults are the caller's business, causes the log's")

	answer := ask(t, nil, func(context.Context, *handler.Request) (handler.Reply, error) {
		return handler.Reply{}, fault.New(fault.Unauthorized, "no")
	})
	require.Equal(t, "Bearer", answer.Headers["www-authenticate"])
	answer = ask(t, nil, func(context.Context, *handler.Request) (handler.Reply, error) {
		return handler.Reply{Body: func() {}}, nil
	})
	require.Equal(t, 500, answer.StatusCode)
	_, err := handler.REST(nil).Invoke(t.Context(), []byte(`{`))
	require.Error(t, err)
}

func TestDecode(t *testing.T) {
	type body struct {
		Name  string         `json:"name"`
		Limit *int           `json:"limit,omitempty"`
		Any   map[string]any `json:"any"`
		Inner struct {
			A []string `json:"a"`
		} `json:"inner"`
		Hidden string `json:"-"`
	}
	var b body
	require.NoError(t, handler.Decode([]byte(` {"name":"é", "limit":null, "any":{"n":12345678901234567890,"m":{"x":1}}, "inner":{"a":["x","x"]}} `), &b))
	require.Equal(t, "é", b.Name)
	require.Equal(t, json.Number("12345678901234567890"), b.Any["n"])
	require.Equal(t, []string{"x", "x"}, b.Inner.A)
	require.NoError(t, handler.Decode([]byte(`{}`), &b))

	for text, detail := range map[string]string{
		``:                                       "not valid JSON",
		`{`:                                      "not valid JSON",
		`{"name":}`:                              "not valid JSON",
		`{"name":"a",}`:                          "not valid JSON",
		`null`:                                   "must be a JSON object",
		`"name"`:                                 "must be a JSON object",
		`["name"]`:                               "must be a JSON object",
		`{} {}`:                                  "something follows",
		`{}x`:                                    "not valid JSON",
		"{\"name\":\"\xff\"}":                    "not valid UTF-8",
		`{"name":"a","name":"b"}`:                `the member "name" twice`,
		`{"any":{"x":[{"y":1,"y":2}]}}`:          `the member "y" twice`,
		`{"other":1}`:                            `not known: "other"`,
		`{"Name":"a"}`:                           `not known: "Name"`,
		`{"Hidden":"a"}`:                         `not known: "Hidden"`,
		`{"-":"a"}`:                              `not known: "-"`,
		`{"inner":{"b":1}}`:                      `unknown field "b"`,
		`{"name":7}`:                             "name must not be a JSON number",
		`{"inner":{"a":"x"}}`:                    "inner.a must not be a JSON string",
		`{"limit":1.5}`:                          "limit must not be a JSON number 1.5",
		`{"` + strings.Repeat("x", 1e6) + `":1}`: "not known",
		strings.Repeat(`{"a":`, 20000):           "not valid JSON",
	} {
		err := handler.Decode([]byte(text), &b)
		require.Error(t, err, text)
		f := fault.From(err)
		require.Equal(t, fault.ValidationError, f.Type, text[:min(len(text), 50)])
		require.Contains(t, f.Message, detail)
		require.Less(t, len(f.Message), 300)
	}
}
