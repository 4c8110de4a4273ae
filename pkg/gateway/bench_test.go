package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	contracts "github.com/agentplatform/agentplatform/schema"
)

// handlerFunc is a lambda.Handler of a Go function.
type handlerFunc func(ctx context.Context, payload []byte) ([]byte, error)

func (f handlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// platform is a gateway of the real schema with the given functions, by field; a name that ends in * answers batches.
func platform(t testing.TB, config Config, functions map[string]handlerFunc) *Gateway {
	config.SDL, config.Prelude, config.Functions = contracts.SDL, contracts.Prelude, map[string]lambda.Handler{}
	if config.Log == nil {
		config.Log = quiet()
	}
	for field, f := range functions {
		name, batch := field, field[len(field)-1] == '*'
		if batch {
			name = field[:len(field)-1]
		}
		config.Functions[name] = f
		config.Manifest.Rows = append(config.Manifest.Rows, manifest.Row{Name: name, On: []string{"graphql " + name}, Batch: batch})
	}
	g, err := New(config)
	require.NoError(t, err)
	return g
}

var alice = tenant.Claims{
	"sub": "5b0a7c0e", "email": "alice@acme.test", "email_verified": true, "custom:tenant_id": "0197a0c0-0000-7000-8000-000000000001",
	"custom:tenant_slug": "acme", "custom:role": "owner", "custom:user_id": "0197a0c0-0000-7000-8000-000000000002",
}

// fifty is a page of 50 threads as a function answers it: every property of the type, 15 KB.
func fifty() []byte {
	var items [][]byte
	for i := range 50 {
		items = append(items, fmt.Appendf(nil, `{"id":"CHAT-%d","threadUUID":"0197a0c0-0000-7000-8000-0000000000%02d","prefix":"CHAT","channel":"CHAT",`+
			`"status":"open","title":"Where is my order no. %d?","agentId":"0197a0c0-0000-7000-8000-0000000001%02d","metadata":"{\"n\":%d}",`+
			`"tokenCount":%d,"createdAt":"2026-01-02T03:04:05.%06dZ","updatedAt":"2026-01-02T03:04:05.%06dZ"}`, i, i, i, i, i, 1000+i, i, i))
	}
	return append(append([]byte(`{"data":{"items":[`), bytes.Join(items, []byte(","))...), `],"nextToken":null}}`...)
}

const eightFields = `query Threads($limit: Int) { listThreads(limit: $limit) {
  items { id title status channel agentId tokenCount createdAt updatedAt } nextToken } }`

// BenchmarkExecuteList is a hot query: 50 objects of 8 fields, from the raw bytes of a function's answer to those of the response.
func BenchmarkExecuteList(b *testing.B) {
	page := fifty()
	g := platform(b, Config{}, map[string]handlerFunc{
		"Query.listThreads": func(context.Context, []byte) ([]byte, error) { return page, nil },
	})
	request := Request{Query: eightFields, Variables: json.RawMessage(`{"limit":50}`)}
	response := g.Execute(b.Context(), request, alice, "r")
	require.Empty(b, response.Errors)
	b.SetBytes(int64(len(response.Data)))
	b.ReportAllocs()
	for b.Loop() {
		g.Execute(b.Context(), request, alice, "r")
	}
}

// BenchmarkExecuteNested is 20 threads with their agent and last 5 messages, each nested field answered by a batch function.
func BenchmarkExecuteNested(b *testing.B) {
	var threads, agents, pages [][]byte
	for i := range 20 {
		threads = append(threads, fmt.Appendf(nil, `{"id":"CHAT-%d","threadUUID":"u","agentId":"a","status":"open"}`, i))
		agents = append(agents, fmt.Appendf(nil, `{"data":{"id":"a%d","name":"Agent"}}`, i))
		message := `{"id":"m","role":"user","body":"Where is my order? It was to be here yesterday.","createdAt":"2026-01-02T03:04:05.000000Z"}`
		pages = append(pages, fmt.Appendf(nil, `{"data":{"items":[%s,%[1]s,%[1]s,%[1]s,%[1]s]}}`, message))
	}
	list := append(append([]byte(`{"data":{"items":[`), bytes.Join(threads, []byte(","))...), `]}}`...)
	answer := func(parts [][]byte) handlerFunc {
		all := append(append([]byte(`[`), bytes.Join(parts, []byte(","))...), ']')
		return func(context.Context, []byte) ([]byte, error) { return all, nil }
	}
	g := platform(b, Config{}, map[string]handlerFunc{
		"Query.listThreads": func(context.Context, []byte) ([]byte, error) { return list, nil },
		"Thread.agent*":     answer(agents), "Thread.messages*": answer(pages),
	})
	request := Request{Query: `{ listThreads(limit: 20) { items { id status agent { id name }
		messages(limit: 5, order: NEWEST_FIRST) { items { id role body createdAt } } } } }`}
	require.Empty(b, g.Execute(b.Context(), request, alice, "r").Errors)
	b.ReportAllocs()
	for b.Loop() {
		g.Execute(b.Context(), request, alice, "r")
	}
}

// BenchmarkPrepare is what a query costs that is not in the cache: parse, limits, validation, plan.
func BenchmarkPrepare(b *testing.B) {
	g := platform(b, Config{CacheBytes: 1}, nil)
	for b.Loop() {
		_, problems := g.prepare(b.Context(), Request{Query: eightFields}, alice, "r")
		require.Empty(b, problems)
	}
}
