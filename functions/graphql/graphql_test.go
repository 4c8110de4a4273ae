package graphql_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/functions/graphql"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// platform is a function over the functions of the table, with changes.
func platform(t *testing.T, changed map[string]handler.Constructor) (post func(request, claims map[string]any) (int, map[string]any), admin map[string]any) {
	t.Helper()
	table := map[string]handler.Constructor{}
	for name, constructor := range functions.Table {
		table[name] = constructor
	}
	for name, constructor := range changed {
		table[name] = constructor
	}
	p := handlertest.New(t).WithFunctions(t, table)
	w := p.DB.World(t, "acme")
	function := graphql.Graphql(p.Env(t, "graphql"))
	return func(request, claims map[string]any) (int, map[string]any) {
		t.Helper()
		body, err := json.Marshal(request)
		require.NoError(t, err)
		texts := map[string]string{}
		for name, value := range claims {
			text, ok := value.(string)
			if !ok {
				text = "true" // the authorizer gives text only
			}
			texts[name] = text
		}
		event := events.APIGatewayV2HTTPRequest{Headers: map[string]string{"content-type": "application/json"}, Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
			RequestContext: events.APIGatewayV2HTTPRequestContext{RequestID: "request-1",
				Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: texts}}}}
		payload, err := json.Marshal(event)
		require.NoError(t, err)
		raw, err := function.Invoke(t.Context(), payload)
		require.NoError(t, err)
		var answer events.APIGatewayV2HTTPResponse
		require.NoError(t, json.Unmarshal(raw, &answer))
		require.Equal(t, "application/json", answer.Headers["content-type"])
		var document map[string]any
		require.NoError(t, json.Unmarshal([]byte(answer.Body), &document))
		return answer.StatusCode, document
	}, handlertest.Claims(w, tenant.Admin)
}

// Every field is answered by its own function, for the caller that the authorizer has let in.
func TestFieldsAreAnsweredByTheirFunctions(t *testing.T) {
	post, admin := platform(t, nil)
	status, got := post(map[string]any{"query": `mutation($t: String) { createThread(input: {title: $t}) { id title } }`, "variables": map[string]any{"t": "Grüße"}}, admin)
	require.Equal(t, 200, status, got)
	created := got["data"].(map[string]any)["createThread"].(map[string]any)
	require.Equal(t, "Grüße", created["title"])

	status, got = post(map[string]any{"query": `{ listThreads(limit: 5) { items { id agent { id } } } me: listAgents { items { id } } }`}, admin)
	require.Equal(t, 200, status, got)
	data := got["data"].(map[string]any)
	require.NotContains(t, got, "errors")
	threads, agents := data["listThreads"].(map[string]any)["items"].([]any), data["me"].(map[string]any)["items"].([]any)
	require.Len(t, threads, 1)
	require.Len(t, agents, 1)
	require.Equal(t, map[string]any{"id": created["id"], "agent": agents[0]}, threads[0], "a field of a list is asked for once, for all of it")

	status, got = post(map[string]any{"query": `{ getThread(id: "CHAT-999999") { id } }`}, admin)
	require.Equal(t, 404, status, got)
	require.Equal(t, "NotFound", got["errors"].([]any)[0].(map[string]any)["errorType"])
}

// What a function fails with stays in the log; the fields beside it are answered.
func TestAFunctionThatFails(t *testing.T) {
	post, admin := platform(t, map[string]handler.Constructor{"get-thread": func(*handler.Env) lambda.Handler { return failing{} }})
	status, got := post(map[string]any{"query": `{ getThread(id: "CHAT-1") { id } listThreads { items { id } } }`}, admin)
	require.Equal(t, 200, status, got)
	require.Equal(t, map[string]any{"getThread": nil, "listThreads": map[string]any{"items": []any{}}}, got["data"])
	failed := got["errors"].([]any)[0].(map[string]any)
	require.Equal(t, "InternalError", failed["errorType"])
	require.Equal(t, "internal error (request request-1)", failed["message"])
}

type failing struct{}

func (failing) Invoke(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("hunter2")
}
