package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

func TestGraphQLHTTP(t *testing.T) {
	g := platform(t, Config{}, map[string]handlerFunc{
		"Query.getThread": answers(`{"data":{"id":"CHAT-1"}}`),
		"Query.getAgent":  answers(`{"errorType":"NotFound","message":"agent not found"}`),
	})
	post := func(contentType, body string) (int, string) {
		status, answer := g.GraphQLHTTP(t.Context(), Post{Body: []byte(body), ContentType: contentType, Claims: alice, RequestID: "r"})
		return status, string(answer)
	}
	for _, contentType := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON;charset=utf-8", "application/graphql"} {
		status, body := post(contentType, `{"query":"query A { getThread(id: 1) { id } } query B { __typename }","operationName":"A","variables":null,"extensions":{}}`)
		require.Equal(t, 200, status, contentType)
		require.Equal(t, `{"data":{"getThread":{"id":"CHAT-1"}}}`, body)
	}
	status, body := post("application/json", `{"query":"query($x: ID!) { getAgent(id: $x) { id } }","variables":{"x":1}}`)
	require.Equal(t, 404, status)
	require.Equal(t, `{"data":{"getAgent":null},"errors":[{"message":"agent not found","errorType":"NotFound","locations":[{"line":1,"column":18}],"path":["getAgent"]}]}`, body)

	for _, c := range []struct {
		contentType, body string
		status            int
		message           string
	}{
		{"", `{"query":"{ __typename }"}`, 415, "The Content-Type must be application/json."},
		{"text/plain", `{"query":"{ __typename }"}`, 415, "Content-Type"},
		{"application/json; charset=latin1", `{"query":"{ __typename }"}`, 415, "Content-Type"},
		{"application/json", ``, 400, "The request body is not valid JSON: unexpected end of JSON text."},
		{"application/json", `{"query":"{ __typename }"`, 400, "not valid JSON"},
		{"application/json", `{"query":"{ __typename }"} x`, 400, `unexpected 'x' at byte 27`},
		{"application/json", "{\"query\":\"{ \xff }\"}", 400, "invalid UTF-8"},
		{"application/json", `{"query":"{ \ud800 }"}`, 400, "lone surrogate"},
		{"application/json", `[{"query":"{ __typename }"}]`, 400, "must be a JSON object"},
		{"application/json", `null`, 400, "must be a JSON object"},
		{"application/json", `{}`, 400, `needs a "query"`},
		{"application/json", `{"query":null}`, 400, `needs a "query"`},
		{"application/json", `{"query":{}}`, 400, `needs a "query"`},
		{"application/json", `{"query":""}`, 400, "Must provide an operation."},
		{"application/json", `{"query":"{ __typename }","variables":[]}`, 400, `"variables" must be a JSON object`},
		{"application/json", `{"query":"{ __typename }","variables":"{}"}`, 400, `"variables" must be a JSON object`},
		{"application/json", `{"query":"{ __typename }","operationName":1}`, 400, `"operationName" must be a string`},
		{"application/json", `{"query":"{ __typename }","operationName":"Other"}`, 400, `Unknown operation named \"Other\".`},
		{"application/json", `{"query":"{ a \u0000 }"}`, 400, "Syntax Error"},
		{"application/json", `{"query":"{ nonsense }"}`, 400, `Cannot query field \"nonsense\" on type \"Query\".`},
		{"application/json", `{"query":"query($f: AgentFilter) { listAgents(filter: $f) { nextToken } }","variables":{"f":{"status":"ACTIVE"}}}`, 400, `Value \"ACTIVE\" does not exist in \"AgentStatus\" enum.`},
		{"application/json", `{"query":"` + strings.Repeat(" ", MaxBody) + `"}`, 413, "The request is larger than 1048576 bytes."},
		{"application/json", strings.Repeat("[", 100_000), 400, "nested deeper than 512"},
	} {
		status, body := post(c.contentType, c.body)
		require.Equal(t, c.status, status, c.body[:min(len(c.body), 100)])
		var response struct {
			Data   *json.RawMessage
			Errors []map[string]json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(body), &response))
		require.Nil(t, response.Data)
		require.Contains(t, strings.ReplaceAll(body, `\"`, `"`), strings.ReplaceAll(c.message, `\"`, `"`))
		require.Len(t, response.Errors[0], 4)
		require.Equal(t, `"ValidationError"`, string(response.Errors[0]["errorType"]))
		require.NotEqual(t, "null", string(response.Errors[0]["locations"]))
		require.Equal(t, "[]", string(response.Errors[0]["path"]))

		inAppSync, _ := g.GraphQLHTTP(t.Context(), Post{Body: []byte(c.body), ContentType: c.contentType, Claims: alice, AppSync: true})
		require.Equal(t, 200, inAppSync)
	}
}

func TestRoutes(t *testing.T) {
	row := func(name string, on ...string) manifest.Row { return manifest.Row{Name: name, On: on} }
	routes, err := NewRoutes(manifest.Manifest{Rows: []manifest.Row{
		row("invoke", "http POST /webhooks/{webhookId}"), row("get", "http GET /api/webhooks/{webhookId}", "graphql Query.x"), row("list", "http GET /api/webhooks"),
		row("patch", "http PATCH /api/webhooks/{webhookId}"), row("integration", "http POST /integrations/{id}/webhook"), row("linear", "http POST /integrations/linear/webhook"),
	}})
	require.NoError(t, err)
	match, err := routes.Match("GET", "/api/webhooks/a%2Fb%20c")
	require.NoError(t, err)
	require.Equal(t, "get", match.Row.Name)
	require.Equal(t, "GET /api/webhooks/{webhookId}", match.Key)
	require.Equal(t, map[string]string{"webhookId": "a/b c"}, match.Params)
	match, err = routes.Match("POST", "/integrations/linear/webhook")
	require.NoError(t, err)
	require.Equal(t, "linear", match.Row.Name)
	match, err = routes.Match("POST", "/integrations/jira/webhook")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "jira"}, match.Params)
	for path, want := range map[string]int{
		"/api/webhooks/1": 405, "/api/webhooks": 405, "/api/webhooks/": 404, "/api": 404, "/": 404, "": 404, "/api/webhooks/1/2": 404, "/api/webhooks/%zz": 404,
	} {
		_, err := routes.Match("DELETE", path)
		require.Equal(t, want, fault.From(err).Status(), path)
	}
	require.Equal(t, []string{"GET", "PATCH"}, routes.Allowed("/api/webhooks/1"))

	for _, on := range [][]string{{"http GET"}, {"http GET api"}, {"http GET /a/{x}", "http GET /a/{y}"}} {
		_, err := NewRoutes(manifest.Manifest{Rows: []manifest.Row{row("a", on...)}})
		require.Error(t, err)
	}
}

func TestScalars(t *testing.T) {
	for name, c := range map[string]struct{ good, bad []string }{
		"AWSDate":      {[]string{`"2024-02-29"`, `"2024-02-29Z"`, `"1970-01-01-07:00"`}, []string{`"2023-02-29"`, `"24-02-29"`, `1`, `""`}},
		"AWSTime":      {[]string{`"12:34"`, `"23:59:60.999Z"`, `"00:00:00+01:00"`}, []string{`"24:00"`, `"12:60"`, `"noon"`}},
		"AWSDateTime":  {[]string{`"2024-02-29T23:59:59.123456Z"`, `"2024-02-29T23:59+01:00"`}, []string{`"2024-02-29T23:59:59"`, `"2024-02-30T23:59:59Z"`, `"2024-02-29T25:00Z"`, `17`}},
		"AWSTimestamp": {[]string{`0`, `-1`, `1700000000`}, []string{`1.5`, `"1"`, `null`}},
		"AWSEmail":     {[]string{`"a@acme.test"`, `"a.b+c@acme.test"`}, []string{`"a"`, `"A <a@acme.test>"`, `"a@"`, `""`}},
		"AWSJSON":      {[]string{`"{}"`, `"null"`, `"[1,{\"a\":2}]"`}, []string{`"{"`, `""`, `{}`, `1`}},
		"AWSURL":       {[]string{`"https://acme.test/a?b#c"`, `"http://[::1]:80"`}, []string{`"acme.test"`, `"/a"`, `""`, `"mailto:a"`}},
		"AWSPhone":     {[]string{`"+49 30 123456"`, `"5550100"`}, []string{`"call me"`, `"+"`, `""`}},
		"AWSIPAddress": {[]string{`"127.0.0.1"`, `"10.0.0.0/8"`, `"::1"`, `"2001:db8::/32"`}, []string{`"127.0.0"`, `"10.0.0.0/33"`, `"localhost"`}},
		"Anything":     {[]string{`1`, `{}`, `null`}, nil},
	} {
		for _, v := range c.good {
			require.Empty(t, checkScalar(name, []byte(v)), "%s %s", name, v)
		}
		for _, v := range c.bad {
			require.NotEmpty(t, checkScalar(name, []byte(v)), "%s %s", name, v)
		}
	}
}

func TestNew(t *testing.T) {
	zoo := Config{SDL: zooSDL, Prelude: zooPrelude}
	zoo.Manifest.Rows = []manifest.Row{{Name: "echo", On: []string{"graphql Query.echo"}}}
	_, err := New(zoo)
	require.ErrorContains(t, err, "no such function")
	zoo.Functions = map[string]lambda.Handler{"echo": answers("")}
	_, err = New(zoo)
	require.NoError(t, err)
	zoo.Manifest.Rows[0].On[0] = "graphql Query.nothing"
	_, err = New(zoo)
	require.ErrorContains(t, err, "no such field")
	zoo.SDL += " type Cat { id: ID }"
	_, err = New(zoo)
	require.ErrorContains(t, err, "Cat")
}
