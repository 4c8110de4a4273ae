package handlertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/openapitest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// RESTCall is a request to the REST API.
type RESTCall struct {
	Method string
	Path   string            // percent-encoded, with its query: "/api/webhooks?limit=2"
	Claims tenant.Claims     // of the token that the authorizer checked; nil: it checked none
	Bearer string            // what the Authorization header carries, "" for none
	Header map[string]string // Content-Type is application/json when there is a body and this says nothing else; "" leaves it out
	Body   any               // nil: none; string and []byte as they are, everything else as JSON
}

// Answer is what the REST API answers. A header is there in its canonical spelling.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Into reads the body's JSON.
func (a Answer) Into(t testing.TB, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body, v), "%d: %s", a.Status, a.Body)
}

// REST is the HTTP API in front of functions. It may be called from several goroutines.
type REST struct {
	functions map[string]lambda.Handler
	routes    *gateway.Routes
	contract  *openapitest.Contract
}

// REST makes those functions of the table that the HTTP API calls, each once, as one instance of a deployment has them.
func (p *Platform) REST(t testing.TB, table map[string]handler.Constructor) *REST {
	t.Helper()
	p.WithFunctions(t, table)
	routes, err := gateway.NewRoutes(p.rows)
	require.NoError(t, err)
	r := &REST{map[string]lambda.Handler{}, routes, openapitest.New(t)}
	for name, constructor := range table {
		row, ok := p.rows.Row(name)
		require.True(t, ok, "%s is not in the manifest", name)
		if len(row.Triggers("http")) > 0 {
			r.functions[name] = constructor(p.Env(t, name))
		}
	}
	return r
}

// Do calls the function of the route, and fails the test when the exchange is not what schema/openapi.yaml says.
func (r *REST) Do(t testing.TB, c RESTCall) Answer {
	t.Helper()
	body := c.body(t)
	request := c.request(t, body)
	match, err := r.routes.Match(c.Method, request.URL.EscapedPath())
	require.NoError(t, err, "%s %s", c.Method, c.Path)
	function := r.functions[match.Row.Name]
	require.NotNil(t, function, "%s is not in the table", match.Row.Name)

	payload, err := json.Marshal(c.event(request, body, match))
	require.NoError(t, err)
	raw, err := function.Invoke(context.WithoutCancel(t.Context()), payload)
	require.NoError(t, err)
	var said events.APIGatewayV2HTTPResponse
	require.NoError(t, json.Unmarshal(raw, &said))
	answer := Answer{said.StatusCode, http.Header{}, []byte(said.Body)}
	for name, value := range said.Headers {
		answer.Header.Set(name, value)
	}
	r.contract.Check(t, request, body, answer.Status, answer.Header, answer.Body)
	return answer
}

func (c RESTCall) body(t testing.TB) []byte {
	t.Helper()
	switch b := c.Body.(type) {
	case nil:
		return nil
	case string:
		return []byte(b)
	case []byte:
		return b
	}
	raw, err := json.Marshal(c.Body)
	require.NoError(t, err)
	return raw
}

// request is the call as it goes over the wire, but for its body.
func (c RESTCall) request(t testing.TB, body []byte) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.Method, "https://api.agentplatform.test"+c.Path, http.NoBody)
	require.NoError(t, err)
	switch {
	case c.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+c.Bearer)
	case c.Claims != nil:
		request.Header.Set("Authorization", "Bearer of.these.claims")
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.Header {
		if request.Header.Set(name, value); value == "" {
			request.Header.Del(name)
		}
	}
	return request
}

// event is the request as an HTTP API hands it to the function (payload format 2.0).
func (c RESTCall) event(request *http.Request, body []byte, match gateway.Match) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: match.Key, RawPath: request.URL.EscapedPath(), RawQueryString: request.URL.RawQuery,
		Headers: map[string]string{}, PathParameters: match.Params, Body: string(body)}
	for name, values := range request.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if !isText(request.Header.Get("Content-Type"), body) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	e.RequestContext.RouteKey, e.RequestContext.RequestID, e.RequestContext.Stage = match.Key, "req-"+ident.New(), "$default"
	e.RequestContext.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: c.Method, Path: e.RawPath, Protocol: "HTTP/1.1",
		SourceIP: "192.0.2.1", UserAgent: "handlertest"}
	if c.Claims != nil {
		texts := map[string]string{}
		for name, value := range c.Claims {
			texts[name] = fmt.Sprint(value) // an HTTP API makes each claim a string
		}
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: texts}}
	}
	return e
}

// isText reports whether an HTTP API takes a body for text, which travels as it is; everything else travels in base64.
func isText(contentType string, body []byte) bool {
	typ, _, _ := mime.ParseMediaType(contentType)
	return len(body) == 0 || utf8.Valid(body) && (typ == "application/json" || strings.HasPrefix(typ, "text/"))
}
