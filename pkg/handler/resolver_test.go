package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestResolverEnvelope(t *testing.T) {
	h := handler.Resolver(func(ctx context.Context, args struct{ Kind string }) (string, error) {
		switch args.Kind {
		case "refused":
			return "", fault.Invalid("no")
		case "broken":
			return "", errors.New("password=hunter2")
		}
		c, err := tenant.From(ctx)
		return c.TenantSlug, err
	})
	for event, want := range map[string]string{
		`{"arguments":{"kind":"ok"},"claims":{"custom:tenant_id":"t","custom:tenant_slug":"acme"}}`:        `{"data":"acme"}`,
		`{"arguments":{"kind":"ok"},"claims":{}}`:                                                          `{"errorType":"Forbidden","message":"this user belongs to no tenant"}`,
		`{"arguments":{"kind":"refused"},"claims":{}}`:                                                     `{"errorType":"ValidationError","message":"no"}`,
		`{"arguments":{"kind":"broken"},"claims":{},"requestId":"r-1"}`:                                    `{"errorType":"InternalError","message":"internal error (request r-1)"}`,
		`{"arguments":{"kind":7},"claims":{}}`:                                                             `{"errorType":"ValidationError","message":"arguments: json: cannot unmarshal number into Go struct field .Kind of type string"}`,
		`[{"arguments":{"kind":"refused"}},{"arguments":{"kind":"ok"},"claims":{"custom:tenant_id":"t"}}]`: `[{"errorType":"ValidationError","message":"no"},{"data":""}]`,
	} {
		answer, err := h.Invoke(t.Context(), []byte(event))
		require.NoError(t, err)
		require.JSONEq(t, want, string(answer), event)
	}
	_, err := h.Invoke(t.Context(), []byte(`{`))
	require.Error(t, err)
}

func TestBatchAnswersInTheOrderOfItsSources(t *testing.T) {
	calls := 0
	h := handler.Batch(func(_ context.Context, sources []struct{ ID string }, args struct{ Fail bool }) ([]*struct{ Name string }, error) {
		calls++
		if args.Fail {
			return nil, fault.Missing("thing")
		}
		ids := make([]string, len(sources))
		for i, s := range sources {
			ids[i] = s.ID
		}
		return handler.Join(ids, map[string]struct{ Name string }{"a": {"A"}, "b": {"B"}}), nil
	})
	answer, err := h.Invoke(t.Context(), []byte(`[{"source":{"ID":"b"}},{"source":{"ID":"x"}},{"source":{"ID":"a"}},{"source":{"ID":"b"}}]`))
	require.NoError(t, err)
	require.JSONEq(t, `[{"data":{"Name":"B"}},{"data":null},{"data":{"Name":"A"}},{"data":{"Name":"B"}}]`, string(answer))
	require.Equal(t, 1, calls)
	answer, err = h.Invoke(t.Context(), []byte(`[{"source":{"ID":"b"},"arguments":{"Fail":true}},{"source":{"ID":"a"},"arguments":{"Fail":true}}]`))
	require.NoError(t, err)
	require.JSONEq(t, `[{"errorType":"NotFound","message":"thing not found"},{"errorType":"NotFound","message":"thing not found"}]`, string(answer))

	// A field under two aliases, with other arguments, may be in one batch.
	answer, err = h.Invoke(t.Context(), []byte(`[{"source":{"ID":"b"},"arguments":{"Fail":true}},{"source":{"ID":"a"},"arguments":{"Fail":false}},{"source":{"ID":"b"},"arguments":{"Fail":true}}]`))
	require.NoError(t, err)
	require.JSONEq(t, `[{"errorType":"NotFound","message":"thing not found"},{"data":{"Name":"A"}},{"errorType":"NotFound","message":"thing not found"}]`, string(answer))
	require.Equal(t, 4, calls)
	answer, err = h.Invoke(t.Context(), []byte(`[]`))
	require.NoError(t, err)
	require.JSONEq(t, `[]`, string(answer))
}

func TestEnvRefusesWhatTheRowDoesNotDeclare(t *testing.T) {
	env := handler.NewEnv(manifest.Row{Name: "f", Needs: []string{"publish", "invoke:g"}}, &handler.Ports{})
	for name, use := range map[string]func(){
		"db": func() { env.DB() }, "db:reader": func() { env.Reader() }, "model": func() { env.Model() },
		"operators": func() { env.Operators() }, "page-key": func() { env.PageKey() }, "invoke:h": func() { env.Invoke("h") },
	} {
		require.PanicsWithValue(t, `function f uses "`+name+`", which its row in routes.json does not declare`, use)
	}
}

func TestTaskAndTrigger(t *testing.T) {
	var got struct{ N int }
	task := handler.Task(func(_ context.Context, p struct{ N int }) error {
		got = p
		return nil
	})
	_, err := task.Invoke(t.Context(), []byte(`{"n":3}`))
	require.NoError(t, err)
	require.Equal(t, 3, got.N)
	_, err = task.Invoke(t.Context(), []byte(`nonsense`))
	require.Error(t, err)
	failing := handler.Schedule(func(context.Context) error { return errors.New("again later") })
	_, err = failing.Invoke(t.Context(), []byte(`{"any":"thing"}`))
	require.EqualError(t, err, "again later")
	trigger := handler.Trigger(func(_ context.Context, e map[string]int) (map[string]int, error) { e["n"]++; return e, nil })
	raw, err := trigger.Invoke(t.Context(), []byte(`{"n":1}`))
	require.NoError(t, err)
	var back map[string]int
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, 2, back["n"])
}

// A caller who goes away before the answer is nobody's fault: a line for whoever looks, no alarm.
func TestACallerWhoGoesAwayIsNoError(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	h := handler.Resolver(func(ctx context.Context, _ struct{}) (string, error) {
		return "", fmt.Errorf("asking the database: %w", ctx.Err())
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	answer, err := h.Invoke(gone, []byte(`{"field":"Query.x","requestId":"req-1"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"errorType":"InternalError","message":"internal error (request req-1)"}`, string(answer))
	require.Contains(t, log.String(), `level=INFO msg="resolver failed: the caller went away" field=Query.x request_id=req-1`)
	require.NotContains(t, log.String(), "level=ERROR")
}
