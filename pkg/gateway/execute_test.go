package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// answers is a function that always says the same.
func answers(text string) handlerFunc {
	return func(context.Context, []byte) ([]byte, error) { return []byte(text), nil }
}

// zooGateway is testdata/zoo.graphql with canned functions.
func zooGateway(t testing.TB, config Config) *Gateway {
	s, err := newSchema(zooPrelude, zooSDL)
	require.NoError(t, err)
	if config.Log == nil {
		config.Log = quiet()
	}
	g, err := newWorld(s, zooSDL, zooPrelude, 0, zooFields, zooBatch...).gateway(config)
	require.NoError(t, err)
	return g
}

func rendered(r *Response) string { return string(r.append(nil)) }

func TestEventOfARootField(t *testing.T) {
	var got handler.Event
	g := platform(t, Config{}, map[string]handlerFunc{
		"Mutation.sendMessage": func(_ context.Context, payload []byte) ([]byte, error) {
			return []byte(`{"data":{"id":"m1","role":"user"}}`), json.Unmarshal(payload, &got)
		},
	})
	r := g.Execute(t.Context(), Request{
		Query:     `mutation Send($input: SendMessageInput!) { sendMessage(input: $input) { id role body: model } }`,
		Variables: json.RawMessage(`{"input": {"body": "hello \u003c", "threadId": 12}}`),
	}, alice, "req-1")
	require.Equal(t, `{"data":{"sendMessage":{"id":"m1","role":"user","body":null}}}`, rendered(r))
	require.Equal(t, "Mutation.sendMessage", got.Field)
	require.Equal(t, `{"input":{"threadId":"12","body":"hello <","onBusy":"ENQUEUE"}}`, string(got.Arguments))
	require.Empty(t, got.Source)
	require.Equal(t, "req-1", got.RequestID)
	require.Equal(t, alice.Caller(), got.Claims.Caller())
}

func TestBatchIsOneCall(t *testing.T) {
	var calls atomic.Int32
	g := platform(t, Config{}, map[string]handlerFunc{
		"Query.listThreads": answers(string(fifty())),
		"Query.getThread":   answers(`{"data":{"id":"CHAT-1","agentId":"x"}}`),
		"Thread.agent*": func(_ context.Context, payload []byte) ([]byte, error) {
			calls.Add(1)
			var events []handler.Event
			if err := json.Unmarshal(payload, &events); err != nil {
				return nil, err
			}
			out := []string{}
			for _, e := range events {
				var source struct{ AgentID string }
				if err := json.Unmarshal(e.Source, &source); err != nil {
					return nil, err
				}
				out = append(out, fmt.Sprintf(`{"data":{"id":%q}}`, source.AgentID))
			}
			out[len(out)-1] = `{"errorType":"NotFound","message":"agent not found"}`
			return []byte("[" + strings.Join(out, ",") + "]"), nil
		},
	})
	r := g.Execute(t.Context(), Request{Query: "{ listThreads { items { id agent { id } } } }"}, alice, "r")
	require.EqualValues(t, 1, calls.Load())
	require.Len(t, r.Errors, 1)
	require.Equal(t, []any{"listThreads", "items", 49, "agent"}, r.Errors[0].Path)
	require.Contains(t, string(r.Data), `{"id":"CHAT-7","agent":{"id":"0197a0c0-0000-7000-8000-000000000107"}}`)
	require.Equal(t, 200, r.Status())

	r = g.Execute(t.Context(), Request{Query: "{ getThread(id: 1) { agent { id } } }"}, alice, "r")
	require.Equal(t, `{"data":{"getThread":{"agent":null}},"errors":[{"message":"agent not found","errorType":"NotFound",`+
		`"locations":[{"line":1,"column":22}],"path":["getThread","agent"]}]}`, rendered(r))
}

// TestRootFieldsOfAQueryRunTogether: each waits for the other.
func TestRootFieldsOfAQueryRunTogether(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(context.Context, []byte) ([]byte, error) {
		both.Done()
		both.Wait()
		return []byte(`{"data":{"id":"x"}}`), nil
	}
	g := platform(t, Config{}, map[string]handlerFunc{"Query.getAgent": meet, "Query.turn": meet})
	r := g.Execute(t.Context(), Request{Query: "{ turn(id: 1) { id } getAgent(id: 1) { id } }"}, alice, "r")
	require.Equal(t, `{"data":{"turn":{"id":"x"},"getAgent":{"id":"x"}}}`, rendered(r))
}

func TestRootFieldsOfAMutationRunInOrder(t *testing.T) {
	var order []string // no lock: the race detector sees calls that overlap
	note := func(answer string) handlerFunc {
		return func(_ context.Context, payload []byte) ([]byte, error) {
			var e handler.Event
			if err := json.Unmarshal(payload, &e); err != nil {
				return nil, err
			}
			order = append(order, e.Field)
			return []byte(answer), nil
		}
	}
	g := platform(t, Config{}, map[string]handlerFunc{
		"Mutation.updateThread": note(`{"data":{"id":"CHAT-1","agentId":"a"}}`),
		"Mutation.updateAgent":  note(`{"data":{"id":"a"}}`),
		"Thread.agent":          note(`{"data":{"id":"a"}}`),
	})
	r := g.Execute(t.Context(), Request{Query: `mutation { updateThread(id: 1, input: {}) { agent { id } } updateAgent(id: 1, input: {}) { id }
		b: updateThread(id: 1, input: {}) { id } }`}, alice, "r")
	require.Empty(t, r.Errors)
	require.Equal(t, []string{"Mutation.updateThread", "Thread.agent", "Mutation.updateAgent", "Mutation.updateThread"}, order)
}

// TestInternalErrors: what goes wrong inside is hidden from the caller and in the log under the request id.
func TestInternalErrors(t *testing.T) {
	for name, f := range map[string]handlerFunc{
		"error":     func(context.Context, []byte) ([]byte, error) { return nil, errors.New("secret: dial tcp 10.0.0.1") },
		"panic":     func(context.Context, []byte) ([]byte, error) { panic("secret") },
		"nil":       func(context.Context, []byte) ([]byte, error) { return nil, nil },
		"not JSON":  answers(`{"data": secret}`),
		"bad UTF-8": answers("{\"data\": {\"id\": \"secret \xff\"}}"),
		"a list":    answers(`[{"data":"secret"}]`),
		"a type":    answers(`{"errorType":"SecretError","message":"secret"}`),
		"no string": answers(`{"errorType":"NotFound","message":{"secret":1}}`),
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			g := platform(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, map[string]handlerFunc{"Query.getAgent": f})
			r := g.Execute(t.Context(), Request{Query: "{ getAgent(id: 1) { id } }"}, alice, "req-9")
			require.Equal(t, `{"data":{"getAgent":null},"errors":[{"message":"internal error (request req-9)","errorType":"InternalError",`+
				`"locations":[{"line":1,"column":3}],"path":["getAgent"]}]}`, rendered(r))
			require.Equal(t, 500, r.Status())
			require.Contains(t, log.String(), "request_id=req-9")
		})
	}
	for name, answer := range map[string]string{"short": `[{"data":null}]`, "long": `[` + strings.Repeat(`{"data":null},`, 50) + `{"data":null}]`, "one": `{"data":null}`} {
		t.Run("batch "+name, func(t *testing.T) {
			g := platform(t, Config{}, map[string]handlerFunc{"Query.listThreads": answers(string(fifty())), "Thread.agent*": answers(answer)})
			r := g.Execute(t.Context(), Request{Query: "{ listThreads { items { agent { id } } } }"}, alice, "r")
			require.Len(t, r.Errors, 50)
			require.Equal(t, fault.InternalError, r.Errors[49].ErrorType)
		})
	}
}

func TestStatus(t *testing.T) {
	g := platform(t, Config{}, map[string]handlerFunc{
		"Query.getAgent":    answers(`{"errorType":"NotFound","message":"agent not found"}`),
		"Query.getThread":   answers(`{"data":{"id":"CHAT-1"}}`),
		"Query.listThreads": answers(`{"errorType":"Forbidden","message":"no"}`),
		"Query.turn":        answers(`{"data":null}`),
	})
	for query, want := range map[string]int{
		"{ getAgent(id: 1) { id } }":                                   404,
		"{ getAgent(id: 1) { id } getThread(id: 1) { id } }":           200,
		"{ getAgent(id: 1) { id } listThreads { nextToken } }":         404,
		"{ listThreads { nextToken } getAgent(id: 1) { id } }":         403,
		"{ getThread(id: 1) { id } listThreads { nextToken } }":        403, // a root field that may not be null takes all data with it
		"{ turn(id: 1) { id } }":                                       200,
		"{ nonsense }":                                                 400,
		"mutation { publishThreadEvent(event: \"1\") { __typename } }": 401,
	} {
		require.Equal(t, want, g.Execute(t.Context(), Request{Query: query}, alice, "r").Status(), query)
	}
}

func TestWhoMayAsk(t *testing.T) {
	called := handlerFunc(func(context.Context, []byte) ([]byte, error) { panic("called") })
	g := platform(t, Config{}, map[string]handlerFunc{"Mutation.publishThreadEvent": called})
	r := g.Execute(t.Context(), Request{Query: `mutation { publishThreadEvent(event: "{}") { __typename } }`}, alice, "r")
	require.Equal(t, `{"data":{"publishThreadEvent":null},"errors":[{"message":"Not Authorized to access publishThreadEvent on type Mutation",`+
		`"errorType":"Unauthorized","locations":[{"line":1,"column":12}],"path":["publishThreadEvent"]}]}`, rendered(r))

	zoo := zooGateway(t, Config{})
	for _, claims := range []tenant.Claims{nil, {}, {"cognito:groups": []any{"visitors"}}, {"cognito:groups": "keepers"}} {
		r = zoo.Execute(t.Context(), Request{Query: `mutation { grouped }`}, claims, "r")
		require.Equal(t, fault.Unauthorized, r.Errors[0].ErrorType)
	}
	require.Empty(t, zoo.Execute(t.Context(), Request{Query: `mutation { grouped }`}, keeper, "r").Errors)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	g := platform(t, Config{}, map[string]handlerFunc{
		"Query.listThreads": answers(string(fifty())),
		"Thread.agent": func(ctx context.Context, _ []byte) ([]byte, error) {
			if calls.Add(1) == 3 {
				cancel()
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	r := g.Execute(ctx, Request{Query: "{ listThreads { items { agent { id } } } }"}, alice, "r")
	require.Len(t, r.Errors, 50)
	require.Equal(t, fault.InternalError, r.Errors[0].ErrorType)
	require.LessOrEqual(t, int(calls.Load()), g.config.MaxParallel)
}

func TestAtMostMaxParallelCalls(t *testing.T) {
	var now, most atomic.Int32
	g := platform(t, Config{MaxParallel: 3}, map[string]handlerFunc{
		"Query.listThreads": answers(string(fifty())),
		"Thread.agent": func(context.Context, []byte) ([]byte, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return []byte(`{"data":null}`), nil
		},
	})
	r := g.Execute(t.Context(), Request{Query: "{ a: listThreads { items { agent { id } x: agent { id } } } b: listThreads { items { agent { id } } } }"}, alice, "r")
	require.Empty(t, r.Errors)
	require.LessOrEqual(t, int(most.Load()), 3)
}

// TestConcurrentRequests share the gateway, its cache and its plans, and do not disturb each other.
func TestConcurrentRequests(t *testing.T) {
	g := zooGateway(t, Config{CacheBytes: 20_000})
	var requests []Request
	var want []string
	for seed := range uint64(60) {
		r := generate(g.schema, seed)
		requests = append(requests, Request{Query: r.Query, OperationName: r.OperationName, Variables: r.Variables})
		want = append(want, rendered(g.Execute(t.Context(), requests[seed], keeper, "r")))
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				n := (i*7 + worker*13) % len(requests)
				if got := rendered(g.Execute(t.Context(), requests[n], keeper, "r")); got != want[n] {
					t.Errorf("request %d: %s, alone: %s", n, got, want[n])
					return
				}
			}
		})
	}
	group.Wait()
}

// FuzzExecute: no request brings the gateway down, and every answer is JSON with the right members.
func FuzzExecute(f *testing.F) {
	g := zooGateway(f, Config{})
	for seed := range uint64(40) {
		r := generate(g.schema, seed)
		f.Add(r.Query, []byte(r.Variables))
	}
	f.Add(introspectionQuery, []byte(`null`))
	f.Add("{ echo(free: {a: $x}) }", []byte(`{"x":"\ud800"}`))
	f.Add("query($x: Boolean = true) { gone @skip(if: $x) }", []byte(`{"x":null}`))
	f.Add("{ \x00", []byte("{"))
	f.Fuzz(func(t *testing.T, query string, variables []byte) {
		body := rendered(g.Execute(t.Context(), Request{Query: query, Variables: variables}, keeper, "r"))
		require.True(t, json.Valid([]byte(body)), body)
		var response struct {
			Data   json.RawMessage
			Errors []struct {
				Message   *string
				ErrorType fault.Type
				Locations []Location
				Path      []any
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &response))
		require.True(t, response.Data != nil || len(response.Errors) > 0)
		for _, e := range response.Errors {
			require.NotNil(t, e.Message)
			require.True(t, known(e.ErrorType))
		}
	})
}
