package turn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// spans is a sink that keeps what it is given.
type spans struct {
	mu   sync.Mutex
	all  []*span
	open int
}

type span struct {
	of         *spans
	name       string
	kind       trace.Kind
	at         time.Time
	above      *span
	attributes map[string]any
	failed     string
}

type aboveKey struct{}

func (s *spans) Start(ctx context.Context, name string, kind trace.Kind, at time.Time) (context.Context, trace.Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above, _ := ctx.Value(aboveKey{}).(*span)
	n := &span{of: s, name: name, kind: kind, at: at, above: above, attributes: map[string]any{}}
	s.all, s.open = append(s.all, n), s.open+1
	return context.WithValue(ctx, aboveKey{}, n), n
}

func (n *span) Set(key string, value any) { n.attributes[key] = value }
func (n *span) Fail(errorType string)     { n.failed = errorType }

func (n *span) End() {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.of.open--
}

// tree is the spans as lines, each deeper than the one that it is below; those of tools that ran at once by name.
func (s *spans) tree() string {
	var b strings.Builder
	var show func(above *span, indent string)
	show = func(above *span, indent string) {
		var below []*span
		for _, n := range s.all {
			if n.above == above {
				below = append(below, n)
			}
		}
		if above != nil && above.name == "action" {
			slices.SortFunc(below, func(a, b *span) int { return strings.Compare(a.name, b.name) })
		}
		for _, n := range below {
			b.WriteString(indent + n.name)
			if n.failed != "" {
				b.WriteString(" failed:" + n.failed)
			}
			b.WriteString("\n")
			show(n, indent+"  ")
		}
	}
	show(nil, "")
	return b.String()
}

func (s *spans) named(name string) (found []*span) {
	for _, n := range s.all {
		if n.name == name {
			found = append(found, n)
		}
	}
	return found
}

// observed has the turn's spans recorded.
func (w *world) observed(turnID string, to *spans) {
	w.t.Helper()
	ctx := trace.In(trace.With(w.t.Context(), to), trace.Scope{RequestID: "request-1"})
	require.NoError(w.t, w.runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: turnID}))
	require.Zero(w.t, to.open, "spans that did not end")
}

// toolbox is two tools that work, one that fails, and the model that uses them and one that nobody granted.
func (w *world) toolbox() {
	fails := tool.Tool{Name: "fails", Run: func(context.Context, tool.Call) (any, error) { return nil, errors.New("secret-cause") }}
	works := tool.Tool{Name: "works", Run: func(context.Context, tool.Call) (any, error) { return "secret-output", nil }}
	w.runner.Tools = tool.Of(works, fails, tool.Tool{Name: "pay", Run: func(context.Context, tool.Call) (any, error) { return nil, nil }}, tool.ReadThread(w.db.App))
	w.grant("works,fails", "")
	w.runner.Model = model.Traced(script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if len(r.Messages) == 1 {
			answer := uses(s, "secret-thought", "works", `{"a":"secret-input"}`, "fails", `{}`, "pay", `{}`, "secret-tool", `{}`)
			answer.StopReason, answer.Usage = model.StopToolUse, model.Usage{InputTokens: 10, OutputTokens: 5, CacheReadTokens: 3, CacheWriteTokens: 2}
			return answer, nil
		}
		return say(s, "secret-answer"), nil
	}), trace.Bedrock)
}

const wholeTurn = `invoke_agent AGENT
  perception
  planning
    chat MODEL
  action
    execute_tool _OTHER failed:denied
    execute_tool fails failed:error
    execute_tool pay failed:denied
    execute_tool works
  planning
    chat MODEL
  action
  feedback
`

func (w *world) modelID(turnID string) string {
	w.t.Helper()
	return *w.turn(turnID).Model
}

// A turn is one span, with its phases below it and their model calls and tool calls below those.
func TestTheSpansOfATurn(t *testing.T) {
	w := newWorld(t, nil)
	w.toolbox()
	th := w.open()
	asked := w.ask(th.ID, "secret-question")
	var seen spans
	w.observed(asked.TurnID, &seen)
	id := w.modelID(asked.TurnID)
	require.Equal(t, strings.NewReplacer("AGENT", w.AgentID, "MODEL", id).Replace(wholeTurn), seen.tree())

	whose := map[string]any{"gen_ai.conversation.id": th.ID, "gen_ai.agent.id": w.AgentID, "agentplatform.tenant_id": w.TenantID, "agentplatform.turn_id": asked.TurnID,
		"agentplatform.request_id": "request-1"}
	with := func(more map[string]any) map[string]any {
		maps.Copy(more, whose)
		return more
	}
	all := seen.named("invoke_agent " + w.AgentID)[0]
	require.Equal(t, trace.Internal, all.kind)
	require.NotEmpty(t, all.attributes["gen_ai.agent.name"])
	require.Contains(t, all.attributes, "agentplatform.turn.cost_usd")
	delete(all.attributes, "gen_ai.agent.name")
	delete(all.attributes, "agentplatform.turn.cost_usd")
	require.Equal(t, with(map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": id, "agentplatform.turn.attempt": 1,
		"agentplatform.turn.status": "succeeded", "gen_ai.usage.input_tokens": 25, "gen_ai.usage.output_tokens": 10}), all.attributes)
	require.Equal(t, all.at, seen.named("perception")[0].at)

	chat := seen.named("chat " + id)
	require.Equal(t, trace.Client, chat[0].kind)
	require.Positive(t, chat[0].attributes["gen_ai.response.time_to_first_chunk"])
	delete(chat[0].attributes, "gen_ai.response.time_to_first_chunk")
	require.Equal(t, with(map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "aws.bedrock", "gen_ai.request.model": id, "gen_ai.request.max_tokens": 4096,
		"gen_ai.response.finish_reasons": []string{"tool_use"}, "gen_ai.usage.input_tokens": 15, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 3,
		"gen_ai.usage.cache_creation.input_tokens": 2}), chat[0].attributes)
	require.Equal(t, []string{"end_turn"}, chat[1].attributes["gen_ai.response.finish_reasons"])

	for name, status := range map[string]string{"works": "ok", "fails": "error", "pay": "denied"} {
		call := seen.named("execute_tool " + name)[0]
		number := map[string]string{"works": "call-1", "fails": "call-2", "pay": "call-3"}[name]
		require.Equal(t, with(map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": number, "gen_ai.tool.type": "function",
			"agentplatform.tool.status": status}), call.attributes)
	}
	for _, n := range seen.all {
		require.NotContains(t, n.name+n.failed+fmt.Sprint(n.attributes), "secret")
	}
}

// A turn that goes on after a crash has the spans of what is done again, and not of what is done already.
func TestTheSpansOfATurnThatGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	w.toolbox()
	asked := w.ask(w.open().ID, "Hello")
	w.die(asked.TurnID, "tools started")
	w.expireLeases()
	var seen spans
	w.observed(asked.TurnID, &seen)
	require.Equal(t, strings.NewReplacer("AGENT", w.AgentID, "MODEL", w.modelID(asked.TurnID)).Replace(`invoke_agent AGENT
  perception
  planning
  action
    execute_tool _OTHER failed:denied
    execute_tool fails failed:error
    execute_tool pay failed:denied
    execute_tool works failed:error
  planning
    chat MODEL
  action
  feedback
`), seen.tree(), "works had begun, and must not run twice")
	require.Equal(t, 2, seen.all[0].attributes["agentplatform.turn.attempt"])
	require.Equal(t, 25, seen.all[0].attributes["gen_ai.usage.input_tokens"], "of the whole turn")
}

// A model that fails is named by its reason, on its call and on the turn; a process that stops hands the turn back.
func TestTheSpansOfTurnsThatDoNotSucceed(t *testing.T) {
	w := newWorld(t, model.Traced(script(func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{}, model.Failure(model.Denied, false, errors.New("secret"))
	}), trace.Bedrock))
	asked := w.ask(w.open().ID, "Hello")
	var seen spans
	w.observed(asked.TurnID, &seen)
	require.Equal(t, turn.Failed, w.turn(asked.TurnID).Status)
	require.Equal(t, strings.NewReplacer("AGENT", w.AgentID, "MODEL", w.modelID(asked.TurnID)).Replace(`invoke_agent AGENT failed:denied
  perception
  planning
    chat MODEL failed:denied
  feedback
`), seen.tree())

	stopping, stop := context.WithCancel(t.Context())
	w.runner.Model = script(func(ctx context.Context, _ model.Request, _ model.Stream) (model.Response, error) {
		stop()
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	})
	asked = w.ask(w.open().ID, "Hello")
	seen = spans{}
	require.NoError(t, w.runner.Run(trace.With(stopping, &seen), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}))
	require.Zero(t, seen.open)
	require.Equal(t, "running", seen.all[0].attributes["agentplatform.turn.status"])
}

// logged is what is written to the log while run runs, as functions write it.
func logged(t *testing.T, run func()) []map[string]any {
	t.Helper()
	var out lines
	was := slog.Default()
	slog.SetDefault(slog.New(trace.Logs(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}), false)))
	metric.SetDefault(metric.EMF{Namespace: "agentplatform/test"})
	defer func() {
		slog.SetDefault(was)
		metric.SetDefault(nil)
	}()
	run()
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		all = append(all, one)
	}
	return all
}

// lines is a log that many goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string { return l.b.String() }

// A turn that is over is one line of the log with its figures.
func TestTheLineOfATurn(t *testing.T) {
	w := newWorld(t, nil)
	w.toolbox()
	th := w.open()
	asked := w.ask(th.ID, "secret-question")
	var ended []map[string]any
	for _, line := range logged(t, func() { w.observed(asked.TurnID, &spans{}) }) {
		require.Equal(t, []any{w.TenantID, th.ID, asked.TurnID, "request-1"}, []any{line["tenant_id"], line["thread_id"], line["turn_id"], line["request_id"]}, line)
		require.NotContains(t, fmt.Sprint(line), "secret")
		if line["msg"] == "turn ended" {
			ended = append(ended, line)
		}
	}
	require.Len(t, ended, 1)
	line := ended[0]
	for key, want := range map[string]any{"agent_id": w.AgentID, "attempts": 1.0, "status": "succeeded", "turns": 1.0, "turn.model_calls": 2.0, "turn.tool_calls": 4.0,
		"model": w.modelID(asked.TurnID), "tokens.input": 25.0, "tokens.output": 10.0, "tokens.cached": 3.0, "denials.tool": 2.0} {
		require.Equal(t, want, line[key], key)
	}
	sum := line["turn.perception"].(float64) + line["turn.planning"].(float64) + line["turn.action"].(float64) + line["turn.feedback"].(float64)
	require.InDelta(t, sum, line["turn.duration"], 0.01)
	require.Contains(t, line, "cost")
	require.NotContains(t, line, "denials.guardrail")
	require.Contains(t, line, "_aws")
}

// What people, the model, tools and webhooks say is in no line of the log, whatever comes of the turn.
func TestNoTextIsLogged(t *testing.T) {
	w := newWorld(t, nil)
	w.toolbox()
	working := w.runner.Model
	failing := model.Traced(model.NewRetry(script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		s.Text("secret-piece")
		return model.Response{}, errors.New("ValidationException: secret-model-error")
	}), model.RetryConfig{Attempts: 2, BaseDelay: 1, Log: slog.New(forwarding{})}), trace.Bedrock)
	panics := script(func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{}, errors.New("secret-unknown-error")
	})
	all := logged(t, func() {
		for _, m := range []model.Model{working, failing, panics} {
			w.runner.Model = m
			w.run(w.ask(w.open().ID, "secret-message").TurnID)
			c, _ := w.call(`{"a":"secret-payload"}`, "secret-body")
			w.run(c.RunID)
		}
	})
	require.GreaterOrEqual(t, len(all), 6)
	said := map[string]int{}
	for _, line := range all {
		require.NotContains(t, fmt.Sprint(line), "secret")
		require.NotEmpty(t, line["turn_id"], line)
		said[line["msg"].(string)]++
	}
	require.Equal(t, 6, said["turn ended"])
	require.Equal(t, 2, said["tool failed"])
	require.Equal(t, 4, said["turn failed"])
	require.Equal(t, 2, said["model call failed, asking again"])
}

// forwarding is the default logger's handler, whichever that is by then.
type forwarding struct{}

func (forwarding) Enabled(ctx context.Context, l slog.Level) bool {
	return slog.Default().Handler().Enabled(ctx, l)
}
func (forwarding) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}
func (f forwarding) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f forwarding) WithGroup(string) slog.Handler      { return f }

// BenchmarkTurnWithThreeTools is a turn's own time: model and tools take none. With spans, each is recorded in memory.
func BenchmarkTurnWithThreeTools(b *testing.B) {
	for _, to := range []*spans{nil, {}} {
		b.Run(map[bool]string{true: "spans", false: "none"}[to != nil], func(b *testing.B) {
			w := newWorld(b, nil)
			works := tool.Tool{Name: "works", Run: func(context.Context, tool.Call) (any, error) { return "done", nil }}
			w.runner.Tools = tool.Of(works)
			w.grant("works", "")
			w.runner.Model = model.Traced(script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
				if len(r.Messages) == 1 {
					return uses(s, "", "works", `{}`, "works", `{}`, "works", `{}`), nil
				}
				return say(s, "Done."), nil
			}), trace.Bedrock)
			ctx := b.Context()
			if to != nil {
				ctx = trace.With(ctx, to)
			}
			was := slog.Default()
			slog.SetDefault(slog.New(trace.Logs(slog.NewJSONHandler(&lines{}, nil), false)))
			defer slog.SetDefault(was)
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				asked := w.ask(w.open().ID, "Hello")
				b.StartTimer()
				began := time.Now()
				if err := w.runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
