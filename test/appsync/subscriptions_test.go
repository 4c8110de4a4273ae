package appsync_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/schema"
)

const follow = `subscription ($id: ID!) { onThreadEvent(threadId: $id) { __typename
	... on NewMessageEvent { tenantId threadId sequence message { ` + message + ` } }
	... on AgentStatusEvent { tenantId threadId sequence agentId status activity }
	... on ThreadUpdateEvent { tenantId threadId sequence thread { id status title metadata updatedAt } }
	... on StreamChunkEvent { tenantId threadId sequence messageId chunk done } } }`

const watch = `subscription ($id: ID!) { onAgentActivity(agentId: $id) { __typename tenantId agentId threadId status activity timestamp } }`

// published sends events through the platform's own AppSync adapter to the engine, as an IAM principal; what it delivers comes back.
func published(t *testing.T, e *engine, events ...publish.Event) (all []delivery) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var asked struct {
			Query     string
			Variables json.RawMessage
		}
		if err != nil || json.Unmarshal(body, &asked) != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
			t.Error("not a signed GraphQL request", string(body), err)
		}
		answer, delivered := e.execute(graphqlRequest{query: asked.Query, variables: asked.Variables, id: "published"})
		all = append(all, delivered...)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	to, err := appsync.New(appsync.Config{URL: server.URL, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")})
	require.NoError(t, err)
	require.NoError(t, to.Publish(t.Context(), events...))
	return all
}

// TestSubscriptions: who follows a thread or an agent of their tenant receives its events, whole and alone, as through the gateway; all others are refused.
func TestSubscriptions(t *testing.T) {
	e, both := sides(t, nowhere())
	s := both[0] // its own gateway is the measure here: both must see the same events
	own := s.gateway()
	s.do(step{query: `mutation { createThread(input: {}) { id } }`, save: map[string]string{"one": "createThread.id"}})
	s.do(step{query: `mutation { createThread(input: {}) { id } }`, save: map[string]string{"two": "createThread.id"}})
	s.do(step{query: `mutation { createThread(input: {}) { id } }`, as: "globex", save: map[string]string{"theirs": "createThread.id"}})
	require.Equal(t, s.known["one"], s.known["theirs"], "tenants count threads on their own: the tenant must be in the filter")

	followers := map[string]*gateway.Subscription{}
	for name, f := range map[string]struct{ as, query, id string }{
		"one":    {"member", follow, s.known["one"]},
		"two":    {"owner", follow, s.known["two"]},
		"theirs": {"globex", follow, s.known["theirs"]},
		"ada":    {"member", watch, s.acme.AgentID},
		"eve":    {"globex", watch, s.globex.AgentID},
	} {
		variables, err := json.Marshal(values{"id": f.id})
		require.NoError(t, err)
		r := graphqlRequest{query: f.query, variables: variables, claims: s.claims(f.as), id: "follow"}
		refusal, filter := e.subscribe(name, r)
		require.Empty(t, refusal.Errors, name)
		subscription, refused := own.Subscribe(t.Context(), gateway.Request{Query: r.query, Variables: r.variables}, r.claims, r.id)
		require.Nil(t, refused)
		followers[name] = subscription
		requireFilter(t, filter, subscription)
	}
	for name, f := range map[string]struct{ as, query, id, want string }{
		"foreign thread": {"globex", follow, s.known["two"], "NotFound"},
		"foreign agent":  {"member", watch, s.globex.AgentID, "NotFound"},
		"no tenant":      {"stranger", follow, s.known["one"], "Forbidden"},
		"no id":          {"owner", watch, "x", "NotFound"},
	} {
		variables, err := json.Marshal(values{"id": f.id})
		require.NoError(t, err)
		r := graphqlRequest{query: f.query, variables: variables, claims: s.claims(f.as), id: "follow"}
		refusal, filter := e.subscribe(name, r)
		require.Nil(t, filter, name)
		require.Equal(t, []string{f.want}, refusal.types(), name)
		_, refused := own.Subscribe(t.Context(), gateway.Request{Query: r.query, Variables: r.variables}, r.claims, r.id)
		raw, err := json.Marshal(refused)
		require.NoError(t, err)
		var same response
		require.NoError(t, json.Unmarshal(raw, &same))
		require.Equal(t, same.Errors, refusal.Errors, name)
	}

	// What the functions publish, and what a turn does.
	s.do(step{query: `mutation { updateThread(id: "{one}", input: {status: waiting, metadata: "{\"a\": \"\\\"\"}"}) { id } }`})
	s.do(step{query: `mutation { sendMessage(input: {threadId: "{two}", body: "Hello"}) { id } }`})
	s.do(step{query: `mutation { sendMessage(input: {threadId: "{theirs}", body: "Hi"}) { id } }`, as: "globex"})
	events := s.Published()
	require.GreaterOrEqual(t, len(events), 3)
	tenants := map[string]string{"one": s.acme.TenantID, "theirs": s.globex.TenantID}
	for name, tenantID := range tenants {
		said, input := "calls a tool", `{"q": ["\"", null]}`
		events = append(events,
			publish.AgentStatus{TenantID: tenantID, ThreadID: s.known[name], AgentID: s.acme.AgentID, Status: publish.CallingTool, Activity: &said},
			publish.StreamChunk{TenantID: tenantID, ThreadID: s.known[name], MessageID: ident.New(), Chunk: "\n\u2028\"😀", Done: true},
			publish.AgentActivity{TenantID: tenantID, AgentID: s.acme.AgentID, ThreadID: s.known[name], Status: publish.Failed, Timestamp: ident.Now()},
			publish.NewMessage{TenantID: tenantID, ThreadID: s.known[name], Message: publish.Message{ID: ident.New(), ThreadID: s.known[name], Role: "assistant", Body: "…", CreatedAt: ident.Now(),
				ToolCalls:   []publish.ToolCall{{ID: "c", Name: "read_thread", Input: input}},
				ToolResults: []publish.ToolResult{{ToolCallID: "c", Name: "read_thread", Status: "ok", Output: &input, DurationMs: 3}}}})
	}

	received := map[string]int{}
	for _, event := range events {
		raw, err := event.MarshalJSON()
		require.NoError(t, err)
		var want, got []string
		delivered := published(t, e, event)
		for name, f := range followers {
			if slices.Contains(own.Publishes(string(event.Address().Topic)), f.Field) && f.Wants(raw) {
				want = append(want, name)
				i := slices.IndexFunc(delivered, func(d delivery) bool { return d.Subscription == name })
				require.GreaterOrEqual(t, i, 0, "%s misses %s", name, raw)
				var rendered response
				require.NoError(t, json.Unmarshal(f.Render(t.Context(), raw), &rendered))
				require.Empty(t, rendered.Errors)
				require.Equal(t, rendered, delivered[i].Response, "%s of %s", raw, name)
				received[name]++
			}
		}
		for _, d := range delivered {
			got = append(got, d.Subscription)
		}
		require.ElementsMatch(t, want, got, "%s", raw)
	}
	require.Equal(t, map[string]int{"one": 4, "two": 1, "theirs": 4, "ada": 1}, received)
}

// requireFilter fails unless the AppSync filter asks of an event exactly what the gateway's does, of fields that every event of the topic has.
func requireFilter(t *testing.T, filter json.RawMessage, subscription *gateway.Subscription) {
	t.Helper()
	var f struct {
		FilterGroup []struct {
			Filters []struct {
				FieldName, Operator string
				Value               any
			}
		}
	}
	require.NoError(t, json.Unmarshal(filter, &f))
	require.Len(t, f.FilterGroup, 1)
	asked := map[string]any{}
	for _, one := range f.FilterGroup[0].Filters {
		require.Equal(t, "eq", one.Operator)
		asked[one.FieldName] = one.Value
	}
	require.Equal(t, subscription.Filter, asked)
	require.Contains(t, asked, "tenantId")
	sdl, err := gqlparser.LoadSchema(&ast.Source{Input: schema.Prelude}, &ast.Source{Input: schema.SDL})
	require.NoError(t, err)
	for _, event := range sdl.GetPossibleTypes(sdl.Types[sdl.Subscription.Fields.ForName(subscription.Field).Type.Name()]) {
		for name := range asked {
			field := event.Fields.ForName(name)
			require.NotNil(t, field, "%s.%s", event.Name, name)
			require.Equal(t, "ID!", field.Type.String(), "%s.%s: a filter compares a scalar that is always there", event.Name, name)
		}
	}
}

// TestPublishing: only the platform publishes; an event comes out as it went in, also as a text in a text; what is no event is not handed out.
func TestPublishing(t *testing.T) {
	e := start(t, nil)
	query := `mutation ($event: AWSJSON!) { publishThreadEvent(event: $event) { __typename ... on StreamChunkEvent { tenantId threadId sequence messageId chunk done } } }`
	event := `{"__typename":"StreamChunkEvent","tenantId":"t","threadId":"CHAT-1","sequence":7,"messageId":"m","chunk":"x","done":false}`
	ask := func(text string, claims map[string]any) response {
		variables, err := json.Marshal(values{"event": text})
		require.NoError(t, err)
		answer, delivered := e.execute(graphqlRequest{query: query, variables: variables, claims: claims, id: "r"})
		require.Empty(t, delivered)
		return answer
	}
	twice, err := json.Marshal(event)
	require.NoError(t, err)
	for _, text := range []string{event, string(twice)} {
		answer := ask(text, nil)
		require.Empty(t, answer.Errors)
		got, err := json.Marshal(answer.Data)
		require.NoError(t, err)
		require.JSONEq(t, `{"publishThreadEvent":`+event+`}`, string(got))
	}
	refused := ask(event, map[string]any{"custom:tenant_id": "t"})
	require.Equal(t, []string{"Unauthorized"}, refused.types())
	own := newSide(t, "alone", nowhere()).gateway()
	variables, err := json.Marshal(values{"event": event})
	require.NoError(t, err)
	require.Equal(t, viaGateway(t, own, graphqlRequest{query: query, variables: variables, claims: map[string]any{"custom:tenant_id": "t"}, id: "r"}), refused)
	for _, text := range []string{`null`, `{}`, `[]`, `{"__typename":"Agent"}`, `{"__typename":"StreamChunkEvent","tenantId":"t"}`} {
		answer := ask(text, nil)
		if text != `null` {
			require.NotEmpty(t, answer.Errors, text)
		}
		require.Nil(t, answer.Data.(map[string]any)["publishThreadEvent"], text)
	}

	listed, refusedType := e.execute(graphqlRequest{query: `{ listAgents { nextToken } }`, id: "r"})
	require.Empty(t, refusedType)
	require.Equal(t, []string{"Unauthorized"}, listed.types(), "the platform's principal is no user")
}

// TestArguments: what of arguments is AWSJSON is what resolver.js writes as a text; publishing is what the schema gives to IAM alone.
func TestArguments(t *testing.T) {
	sdl, err := gqlparser.LoadSchema(&ast.Source{Input: schema.Prelude}, &ast.Source{Input: schema.SDL})
	require.NoError(t, err)
	var iam []string
	found := map[string]bool{} // the ways to an AWSJSON from an argument
	var look func(way string, of *ast.Type)
	look = func(way string, of *ast.Type) {
		require.Less(t, strings.Count(way, "."), 10, "an input holds itself: %s", way)
		if of.Name() == "AWSJSON" {
			found[way] = true
		}
		if definition := sdl.Types[of.Name()]; definition.Kind == ast.InputObject {
			for _, f := range definition.Fields {
				look(way+"."+f.Name, f.Type)
			}
		}
	}
	for _, root := range []*ast.Definition{sdl.Query, sdl.Mutation, sdl.Subscription} {
		for _, f := range root.Fields {
			if f.Directives.ForName("aws_iam") != nil {
				iam = append(iam, f.Name)
				continue
			}
			for _, a := range f.Arguments {
				look(a.Name, a.Type)
			}
		}
	}
	require.ElementsMatch(t, publishing, iam)
	require.Equal(t, []string{"input", "input.cases.metadata", "input.config", "input.definition", "input.evaluators.schema", "input.input", "input.loop.goal.schema", "input.metadata"}, slices.Sorted(maps.Keys(found)))

	e := start(t, nil)
	written := func(field string, input values) any {
		ran := e.run(deployed(t), "request", values{"info": info("Mutation", field), "args": values{"id": "x", "input": input}, "source": nil,
			"identity": values{"claims": values{}}, "request": values{"headers": values{"x-amzn-requestid": "r"}}})
		require.Nil(t, ran.Error)
		return ran.Value.(map[string]any)["payload"].(map[string]any)["arguments"].(map[string]any)["input"]
	}
	require.Equal(t, values{"metadata": `{"a":[1,null]}`, "name": "n", "cases": []any{values{"input": "a", "metadata": `{"b":"ü"}`}, values{"input": "b"}, values{"metadata": nil}},
		"evaluators": []any{values{"type": "json_schema", "schema": `{"type":"object"}`}, values{"schema": "false"}, values{"type": "exact"}}},
		written("createEvaluation", values{"metadata": values{"a": []any{1, nil}}, "name": "n", "cases": []any{values{"input": "a", "metadata": values{"b": "ü"}}, values{"input": "b"}, values{"metadata": nil}},
			"evaluators": []any{values{"type": "json_schema", "schema": values{"type": "object"}}, values{"schema": false}, values{"type": "exact"}}}))
	require.Equal(t, values{"metadata": nil, "cases": nil, "evaluators": []any{}}, written("createEvaluation", values{"metadata": nil, "cases": nil, "evaluators": []any{}}))
	require.Equal(t, values{"definition": `{"StartAt":"A"}`, "name": "n"}, written("createRoutine", values{"definition": values{"StartAt": "A"}, "name": "n"}))
	require.Equal(t, values{"input": `{"n":1}`, "loop": values{"maxIterations": 2.0, "goal": []any{values{"schema": `{"type":"object"}`}}}},
		written("createSchedule", values{"input": values{"n": 1}, "loop": values{"maxIterations": 2, "goal": []any{values{"schema": values{"type": "object"}}}}}))
	require.Equal(t, values{"config": `{"mention":"ada"}`}, written("updateIntegration", values{"config": values{"mention": "ada"}}))
	require.Equal(t, values{"loop": nil}, written("updateSchedule", values{"loop": nil}))
	require.Equal(t, `{"metadata":{"a":1}}`, written("startRoutine", values{"metadata": values{"a": 1}}), "it is JSON as a whole")
}
