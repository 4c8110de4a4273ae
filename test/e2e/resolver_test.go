package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// The AppSync resolver and the functions' adapter must speak the same language: what the one sends the other decodes, and back.
func TestAppSyncResolverSpeaksToFunctions(t *testing.T) {
	double := handler.Resolver(func(_ context.Context, args struct{ N int }) (int, error) {
		if args.N < 0 {
			return 0, fault.Missing("number")
		}
		return 2 * args.N, nil
	})
	names := handler.Batch(func(_ context.Context, sources []struct{ Name string }, _ struct{}) ([]string, error) {
		out := make([]string, len(sources))
		for i, s := range sources {
			out[i] = "<" + s.Name + ">"
		}
		return out, nil
	})
	ctx := func(parent, field string, more map[string]any) map[string]any {
		c := map[string]any{
			"info": map[string]string{"parentTypeName": parent, "fieldName": field}, "args": map[string]any{"n": 21}, "source": nil,
			"identity": map[string]any{"claims": map[string]any{"custom:tenant_id": "t"}}, "env": map[string]string{"BATCH_FIELDS": "Thread.agent,Agent.template"},
			"request": map[string]any{"headers": map[string]string{"x-amzn-requestid": "r"}},
		}
		for k, v := range more {
			c[k] = v
		}
		return c
	}
	r := startResolver(t)

	sent := r.run("request", ctx("Query", "double", nil))
	require.Equal(t, "Invoke", sent.Value["operation"])
	answer := invoke(t, double, sent.Value["payload"])
	require.JSONEq(t, `{"data":42}`, string(answer))
	require.JSONEq(t, `42`, string(r.run("response", ctx("Query", "double", map[string]any{"result": json.RawMessage(answer)})).raw))

	sent = r.run("request", ctx("Query", "double", map[string]any{"args": map[string]any{"n": -1}}))
	answer = invoke(t, double, sent.Value["payload"])
	require.Equal(t, &resolverError{"number not found", "NotFound"}, r.run("response", ctx("Query", "double", map[string]any{"result": json.RawMessage(answer)})).Error)
	require.Equal(t, &resolverError{"internal error", "InternalError"},
		r.run("response", ctx("Query", "double", map[string]any{"error": map[string]string{"message": "Task timed out", "type": "Lambda:Unhandled"}})).Error)

	sent = r.run("request", ctx("Thread", "agent", map[string]any{"source": map[string]string{"name": "a"}}))
	require.Equal(t, "BatchInvoke", sent.Value["operation"])
	require.JSONEq(t, `[{"data":"<a>"},{"data":"<a>"}]`, string(invoke(t, names, []any{sent.Value["payload"], sent.Value["payload"]})))

	out := r.run("response", ctx("Subscription", "onThreadEvent", map[string]any{"result": map[string]any{"data": map[string]string{"tenantId": "t", "threadId": "CHAT-1"}}}))
	require.JSONEq(t, `{"tenantId":{"eq":"t"},"threadId":{"eq":"CHAT-1"}}`, out.Filter)
	require.JSONEq(t, `null`, string(out.raw))
}

func invoke(t *testing.T, h interface {
	Invoke(context.Context, []byte) ([]byte, error)
}, payload any) []byte {
	t.Helper()
	body, err := json.Marshal(payload)
	require.NoError(t, err)
	var strict any = new(handler.Event)
	if body[0] == '[' {
		strict = new([]handler.Event)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(strict))
	answer, err := h.Invoke(t.Context(), body)
	require.NoError(t, err)
	return answer
}

type resolver struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Scanner
}

type resolved struct {
	Value  map[string]any
	Error  *resolverError
	Filter string
	raw    json.RawMessage
}

type resolverError struct{ Message, ErrorType string }

func startResolver(t *testing.T) *resolver {
	t.Helper()
	cmd := exec.Command("node", "resolver.mjs", filepath.Join("..", "..", "schema", "graphql", "resolver.js"))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait())
	})
	return &resolver{t, json.NewEncoder(in), bufio.NewScanner(out)}
}

func (r *resolver) run(step string, ctx map[string]any) resolved {
	r.t.Helper()
	require.NoError(r.t, r.in.Encode(map[string]any{"step": step, "ctx": ctx}))
	require.True(r.t, r.out.Scan(), "the resolver ended")
	var out resolved
	var raw struct {
		Value  json.RawMessage
		Error  *resolverError
		Filter string
	}
	require.NoError(r.t, json.Unmarshal(r.out.Bytes(), &raw))
	out.Error, out.Filter, out.raw = raw.Error, raw.Filter, raw.Value
	_ = json.Unmarshal(raw.Value, &out.Value) // an object only for requests
	return out
}
