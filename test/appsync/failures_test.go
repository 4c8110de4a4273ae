package appsync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// answering is a function that answers every event, or each event of a batch, what of says.
type answering func(e handler.Event) string

func (of answering) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	if payload[0] != '[' {
		var e handler.Event
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, err
		}
		return []byte(of(e)), nil
	}
	var events []handler.Event
	if err := json.Unmarshal(payload, &events); err != nil {
		return nil, err
	}
	answers := make([]string, len(events))
	for i, e := range events {
		answers[i] = of(e)
	}
	return []byte("[" + strings.Join(answers, ",") + "]"), nil
}

// broken is a function that fails, as one that panics or runs out of time does.
type broken struct{}

func (broken) Invoke(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("Task timed out after 10.00 seconds")
}

// TestFailures: what a function answers that its own adapter never would, or when it does not answer at all, becomes the error that the gateway makes of it.
func TestFailures(t *testing.T) {
	e, both := sides(t, nowhere())
	for range 3 {
		for _, s := range both {
			s.do(step{query: `mutation { createThread(input: {}) { id } }`})
		}
	}
	replaced := func(name string, f lambda.Handler) func() {
		before := [2]lambda.Handler{both[0].functions[name], both[1].functions[name]}
		for _, s := range both {
			s.functions[name] = f
		}
		own := both[1].gateway()
		both[1].execute = func(r graphqlRequest) response { return viaGateway(t, own, r) }
		return func() {
			for i, s := range both {
				s.functions[name] = before[i]
			}
		}
	}
	fixed := func(answer string) lambda.Handler { return answering(func(handler.Event) string { return answer }) }
	agent := `{ a: getAgent(id: "{agent}") { name } }`
	agents := `{ listThreads { items { id agent { id name } } } }`
	var counted int
	everySecond := answering(func(handler.Event) string {
		if counted++; counted%2 == 0 {
			return `{"errorType":"Forbidden","message":"not this one"}`
		}
		return `{"data":{"id":"x","name":"Ada","status":"active"}}`
	})
	for name, c := range map[string]struct {
		function string
		lambda   lambda.Handler
		query    string
		want     fault.Type // "": no error
	}{
		"it fails":                   {"get-agent", broken{}, agent, fault.InternalError},
		"it fails for a batch":       {"thread-agent", broken{}, agents, fault.InternalError},
		"it answers null":            {"get-agent", fixed(`null`), agent, fault.InternalError},
		"null for each":              {"thread-agent", fixed(`null`), agents, fault.InternalError},
		"null data":                  {"get-agent", fixed(`{"data":null}`), agent, ""},
		"null data for each":         {"thread-agent", fixed(`{"data":null}`), agents, ""},
		"an error for every second":  {"thread-agent", everySecond, agents, fault.Forbidden},
		"a budget that is exhausted": {"send-message", fixed(`{"errorType":"BudgetExceeded","message":"the agent's budget is used up"}`), `mutation { sendMessage(input: {threadId: "CHAT-1", body: "x"}) { id } }`, fault.BudgetExceeded},
		"a message with quotes":      {"get-agent", fixed(`{"errorType":"ValidationError","message":"\"a\" $util ${ctx} \u2028\n"}`), agent, fault.ValidationError},
		"an error beside data":       {"get-agent", fixed(`{"data":{"name":"x"},"errorType":"NotFound","message":"agent not found"}`), agent, fault.NotFound},
		"an error in a list":         {"list-agents", fixed(`{"errorType":"Forbidden","message":"no"}`), `{ getAgent(id: "{agent}") { id } listAgents { items { id } } }`, fault.Forbidden},
	} {
		back := replaced(c.function, c.lambda)
		_, appsync := both[0].do(step{query: c.query})
		counted = 0
		_, own := both[1].do(step{query: c.query})
		counted = 0
		require.Equal(t, own, appsync, name)
		if c.want == "" {
			require.Empty(t, appsync.Errors, name)
		} else {
			require.Equal(t, []string{string(c.want)}, appsync.types(), name)
		}
		back()
	}

	for name, answer := range map[string]string{"shorter": `[{"data":null}]`, "longer": `[{"data":null},{"data":null},{"data":null},{"data":null}]`, "no list": `{"data":null}`} {
		back := replaced("thread-agent", raw(answer))
		_, appsync := both[0].do(step{query: agents})
		_, own := both[1].do(step{query: agents})
		require.Equal(t, own, appsync, name)
		require.Len(t, appsync.Errors, 3, name)
		require.Equal(t, []string{"InternalError"}, appsync.types(), name)
		back()
	}

	// A subscription without a filter would hear every tenant.
	for _, answer := range []string{`null`, `{"data":null}`, `{"data":{}}`, `{}`} {
		back := replaced("on-thread-event", fixed(answer))
		refusal, filter := e.subscribe("s", graphqlRequest{query: `subscription { onThreadEvent(threadId: "CHAT-1") { __typename } }`, claims: both[0].claims("owner"), id: "r"})
		require.Equal(t, []graphqlError{{"internal error (request r)", "InternalError", []any{"onThreadEvent"}, refusal.Errors[0].Locations}}, refusal.Errors, answer)
		require.Equal(t, "null", string(orNull(filter)))
		back()
	}
}

type raw string

func (r raw) Invoke(context.Context, []byte) ([]byte, error) { return []byte(r), nil }

func orNull(m json.RawMessage) json.RawMessage {
	if m == nil {
		return json.RawMessage("null")
	}
	return m
}

// TestBatches: a list's nested fields come in one call of at most a hundred events, each a handler.Event with nothing unknown in it.
func TestBatches(t *testing.T) {
	var sizes []int
	var calls = make(chan int, 100)
	page := make([]string, 250)
	for i := range page {
		page[i] = fmt.Sprintf(`{"id":"CHAT-%d","agentId":"a%d"}`, i, i)
	}
	e := start(t, map[string]lambda.Handler{
		"list-threads": raw(`{"data":{"items":[` + strings.Join(page, ",") + `],"nextToken":null}}`),
		"thread-agent": counting{calls, answering(func(e handler.Event) string {
			var source struct{ AgentID string }
			_ = json.Unmarshal(e.Source, &source)
			return `{"data":{"id":"` + source.AgentID + `"}}`
		})},
	})
	answer, _ := e.execute(graphqlRequest{query: `{ listThreads { items { id agent { id } } } }`, claims: map[string]any{}, id: "r"})
	require.Empty(t, answer.Errors)
	for i := range page {
		require.Equal(t, fmt.Sprintf("a%d", i), member(t, answer.Data, fmt.Sprintf("listThreads.items.%d.agent.id", i)))
	}
	close(calls)
	for n := range calls {
		sizes = append(sizes, n)
	}
	require.Equal(t, []int{100, 100, 50}, sizes)
}

// counting tells how many events each call has, and is strict about their form.
type counting struct {
	calls chan int
	answering
}

func (c counting) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var events []handler.Event
	d := json.NewDecoder(strings.NewReader(string(payload)))
	d.DisallowUnknownFields()
	if err := d.Decode(&events); err != nil {
		return nil, err
	}
	c.calls <- len(events)
	return c.answering.Invoke(ctx, payload)
}

// TestVariable: with the API's variable, resolver.js asks for the same as with its text in place.
func TestVariable(t *testing.T) {
	e := start(t, nil)
	in, out := read(t, "resolver.js"), deployed(t)
	for field, row := range rows(t).ByGraphQL() {
		parent, name, _ := strings.Cut(field, ".")
		ctx := values{"info": info(parent, name), "args": values{"id": "x"}, "source": values{"id": "CHAT-1"}, "identity": values{"claims": values{"custom:tenant_id": "t"}},
			"request": values{"headers": values{"x-amzn-requestid": "r"}}}
		asked := e.run(out, "request", ctx)
		operation := map[bool]string{false: "Invoke", true: "BatchInvoke"}[row.Batch]
		require.Equal(t, map[string]any{"operation": operation, "payload": map[string]any{"field": field, "arguments": map[string]any{"id": "x"}, "source": map[string]any{"id": "CHAT-1"},
			"claims": map[string]any{"custom:tenant_id": "t"}, "requestId": "r"}}, asked.Value)
		ctx["env"] = values{"BATCH_FIELDS": batched(t)}
		require.Equal(t, asked, e.run(in, "request", ctx), field)
	}
}
