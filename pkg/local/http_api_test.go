package local

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// function answers with run, as a function behind an HTTP API does.
type function func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

func (f function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	answer, err := f(ctx, e)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// serveHTTP is the HTTP API over one function behind several routes, each with its kind of caller.
func serveHTTP(t *testing.T, f lambda.Handler) string {
	rows := manifest.Manifest{}
	functions := map[string]lambda.Handler{}
	for name, on := range map[string]string{
		"get": "http GET /api/webhooks/{webhookId}", "create": "http POST /api/webhooks", "operate": "http POST /api/operate",
		"emit": "http POST /api/compliance/events", "elsewhere": "http POST /graphql",
	} {
		auth := map[string]manifest.Auth{"get": manifest.AuthUser, "create": manifest.AuthUser, "operate": manifest.AuthOperator, "emit": manifest.AuthSecret}[name]
		rows.Rows = append(rows.Rows, manifest.Row{Name: name, On: []string{on}, Auth: auth, Timeout: 10})
		if name != "elsewhere" {
			functions[name] = f
		}
	}
	api, err := newHTTPAPI(rows, functions, func(_ context.Context, authorization string) (tenant.Claims, error) {
		switch authorization {
		case "Bearer good":
			return tenant.Claims{"custom:tenant_id": "t-1", "email_verified": true, "exp": 1.7e9, "cognito:groups": []any{"a", "b"}}, nil
		case "Bearer unlucky":
			return nil, errors.New("the keys cannot be had")
		}
		return nil, fault.New(fault.Unauthorized, "no valid token")
	})
	require.NoError(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server.URL
}

func send(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.True(t, ident.Valid(answer.Header.Get("Apigw-Requestid")))
	return answer, string(text)
}

func TestTheHTTPAPIBuildsEventsOfFormat2(t *testing.T) {
	var got events.APIGatewayV2HTTPRequest
	url := serveHTTP(t, function(func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		got = e
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Headers: map[string]string{"content-type": "text/plain", "etag": `"1"`}, Cookies: []string{"a=1", "b=2"},
			Body: base64.StdEncoding.EncodeToString([]byte("made")), IsBase64Encoded: true}, nil
	}))
	answer, text := send(t, "GET", url+"/api/webhooks/a%2Fb?limit=5&x=1&x=2", "", "Authorization", "Bearer good", "Cookie", "c=1; d=2", "X-Two", "1", "X-Two", "2",
		"User-Agent", "test", "X-Forwarded-For", "192.0.2.7")
	require.Equal(t, 201, answer.StatusCode)
	require.Equal(t, "made", text)
	require.Equal(t, `"1"`, answer.Header.Get("ETag"))
	require.Equal(t, []string{"a=1", "b=2"}, answer.Header.Values("Set-Cookie"))
	require.Equal(t, answer.Header.Get("Apigw-Requestid"), got.RequestContext.RequestID)

	require.Equal(t, "2.0 GET /api/webhooks/{webhookId} /api/webhooks/a%2Fb limit=5&x=1&x=2", got.Version+" "+got.RouteKey+" "+got.RawPath+" "+got.RawQueryString)
	require.Equal(t, map[string]string{"webhookId": "a/b"}, got.PathParameters)
	require.Equal(t, map[string]string{"limit": "5", "x": "1,2"}, got.QueryStringParameters)
	require.Equal(t, []string{"c=1", "d=2"}, got.Cookies)
	require.Equal(t, "1,2", got.Headers["x-two"])
	require.Equal(t, "192.0.2.7, 127.0.0.1", got.Headers["x-forwarded-for"])
	require.Equal(t, strings.TrimPrefix(url, "http://"), got.Headers["host"])
	require.NotContains(t, got.Headers, "cookie")
	c := got.RequestContext
	require.Equal(t, "GET /api/webhooks/a%2Fb HTTP/1.1 127.0.0.1 test", c.HTTP.Method+" "+c.HTTP.Path+" "+c.HTTP.Protocol+" "+c.HTTP.SourceIP+" "+c.HTTP.UserAgent)
	require.Equal(t, "GET /api/webhooks/{webhookId} $default", c.RouteKey+" "+c.Stage)
	require.Equal(t, map[string]string{"custom:tenant_id": "t-1", "email_verified": "true", "exp": "1700000000", "cognito:groups": "[a b]"}, c.Authorizer.JWT.Claims)

	for contentType, encoded := range map[string]bool{"application/json": false, "application/json; charset=utf-8": false, "text/csv": false, "application/xml": false, "": true,
		"application/x-www-form-urlencoded": true, "application/vnd.api+json": true, "image/png": true} {
		send(t, "POST", url+"/api/compliance/events", `{"é":1}`, "Content-Type", contentType)
		require.Equal(t, encoded, got.IsBase64Encoded, contentType)
		if body := got.Body; encoded {
			plain, err := base64.StdEncoding.DecodeString(body)
			require.NoError(t, err)
			require.Equal(t, `{"é":1}`, string(plain))
		} else {
			require.Equal(t, `{"é":1}`, body)
		}
		require.Nil(t, got.RequestContext.Authorizer, "a bearer that the function checks")
	}
	send(t, "POST", url+"/api/compliance/events", "\xff", "Content-Type", "application/json")
	require.True(t, got.IsBase64Encoded, "no JSON could carry it")
}

func TestWhatTheHTTPAPIAnswersItself(t *testing.T) {
	url := serveHTTP(t, function(func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		switch e.Body {
		case "fails":
			return events.APIGatewayV2HTTPResponse{}, errors.New("hunter2")
		case "panics":
			panic("hunter2")
		case "nothing":
			return events.APIGatewayV2HTTPResponse{}, nil
		case "not base64":
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "!", IsBase64Encoded: true}, nil
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "{}"}, nil
	}))
	for _, c := range []struct {
		method, path, body, token string
		status                    int
		answer                    string
	}{
		{"POST", "/api/webhooks", "", "good", 200, `{}`},
		{"POST", "/api/operate", "", "good", 200, `{}`},
		{"POST", "/api/compliance/events", "", "", 200, `{}`},
		{"POST", "/api/webhooks", "", "", 401, `{"message":"Unauthorized"}`},
		{"POST", "/api/webhooks", "", "bad", 401, `{"message":"Unauthorized"}`},
		{"POST", "/api/operate", "", "bad", 401, `{"message":"Unauthorized"}`},
		{"POST", "/api/webhooks", "", "unlucky", 500, `{"message":"Internal Server Error"}`},
		{"GET", "/", "", "good", 404, `{"message":"Not Found"}`},
		{"POST", "/api/webhooks/", "", "good", 404, `{"message":"Not Found"}`},
		{"POST", "/graphql", "", "good", 404, `{"message":"Not Found"}`},
		{"DELETE", "/api/webhooks", "", "good", 405, `{"message":"Method Not Allowed"}`},
		{"POST", "/api/webhooks", strings.Repeat("x", maxPayload+1), "good", 413, `{"message":"Request Entity Too Large"}`},
		{"POST", "/api/webhooks", "fails", "good", 500, `{"message":"Internal Server Error"}`},
		{"POST", "/api/webhooks", "panics", "good", 500, `{"message":"Internal Server Error"}`},
		{"POST", "/api/webhooks", "nothing", "good", 500, `{"message":"Internal Server Error"}`},
		{"POST", "/api/webhooks", "not base64", "good", 500, `{"message":"Internal Server Error"}`},
	} {
		answer, text := send(t, c.method, url+c.path, c.body, "Authorization", "Bearer "+c.token, "Content-Type", "text/plain")
		require.Equal(t, c.status, answer.StatusCode, c)
		require.Equal(t, c.answer, text)
		if c.status == 401 {
			require.Equal(t, "Bearer", answer.Header.Get("Www-Authenticate"))
		}
		if c.status == 405 {
			require.Equal(t, "POST", answer.Header.Get("Allow"))
		}
	}
	answer, _ := send(t, "OPTIONS", url+"/api/webhooks/1", "")
	require.Equal(t, 204, answer.StatusCode)
	require.Equal(t, "GET, OPTIONS", answer.Header.Get("Access-Control-Allow-Methods"))
}

// A path that a provider's events are sent to is not an integration's, whichever row comes first, and neither asks for a token of the identity pool.
func TestTheHTTPAPIPrefersTheStaticPath(t *testing.T) {
	rows := []manifest.Row{
		{Name: "receive-delivery", On: []string{"http POST /integrations/{integrationId}/webhook"}, Auth: manifest.AuthSignature, Timeout: 10},
		{Name: "receive-task-event", On: []string{"http POST /integrations/linear/webhook", "http POST /integrations/jira/webhook"}, Auth: manifest.AuthWebhook, Timeout: 10},
	}
	answers := func(name string) lambda.Handler {
		return function(func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			if e.RequestContext.Authorizer != nil {
				return events.APIGatewayV2HTTPResponse{}, errors.New("nobody was asked for a token")
			}
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: name + " " + e.RouteKey + " " + e.PathParameters["integrationId"]}, nil
		})
	}
	functions := map[string]lambda.Handler{"receive-delivery": answers("receive-delivery"), "receive-task-event": answers("receive-task-event")}
	for _, order := range [][]manifest.Row{{rows[0], rows[1]}, {rows[1], rows[0]}} {
		api, err := newHTTPAPI(manifest.Manifest{Rows: order}, functions, func(context.Context, string) (tenant.Claims, error) { return nil, errors.New("nobody is asked") })
		require.NoError(t, err)
		server := httptest.NewServer(api)
		t.Cleanup(server.Close)
		for path, says := range map[string]string{
			"linear": "receive-task-event POST /integrations/linear/webhook ", "jira": "receive-task-event POST /integrations/jira/webhook ",
			"Linear": "receive-delivery POST /integrations/{integrationId}/webhook Linear", "asana": "receive-delivery POST /integrations/{integrationId}/webhook asana",
			"01900000-0000-7000-8000-00000000a003": "receive-delivery POST /integrations/{integrationId}/webhook 01900000-0000-7000-8000-00000000a003",
		} {
			answer, text := send(t, "POST", server.URL+"/integrations/"+path+"/webhook?token=t", "{}", "Content-Type", "application/json")
			require.Equal(t, 200, answer.StatusCode)
			require.Equal(t, says, text)
		}
		answer, _ := send(t, "GET", server.URL+"/integrations/linear/webhook", "")
		require.Equal(t, 405, answer.StatusCode)
	}
}

// With the adapter that functions use, the two fit together.
func TestTheHTTPAPIAndRESTFitTogether(t *testing.T) {
	url := serveHTTP(t, handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		c, err := tenant.From(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		var body struct {
			Name string `json:"name"`
		}
		raw, err := r.JSON()
		if err == nil {
			err = handler.Decode(raw, &body)
		}
		return handler.Reply{Body: map[string]string{"tenant": c.TenantID, "name": body.Name, "request": c.RequestID}}, err
	}))
	answer, text := send(t, "POST", url+"/api/webhooks", `{"name":"é"}`, "Authorization", "Bearer good", "Content-Type", "application/json")
	require.Equal(t, 200, answer.StatusCode)
	requestID := answer.Header.Get("X-Request-Id")
	require.Equal(t, answer.Header.Get("Apigw-Requestid"), requestID)
	require.JSONEq(t, `{"tenant":"t-1","name":"é","request":"`+requestID+`"}`, text)
	answer, text = send(t, "POST", url+"/api/webhooks", strings.Repeat("x", handler.MaxBody+1), "Authorization", "Bearer good", "Content-Type", "application/json")
	require.Equal(t, 413, answer.StatusCode)
	require.Contains(t, text, `"errorType":"ValidationError"`)
	answer, text = send(t, "POST", url+"/api/compliance/events", "{}", "Content-Type", "application/json")
	require.Equal(t, 401, answer.StatusCode)
	require.Contains(t, text, `"errorType":"Unauthorized"`)
}
