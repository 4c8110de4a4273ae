package appsync_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/npm"
)

// engine plays AppSync in a process of its own. It is safe for concurrent use.
type engine struct {
	t         testing.TB
	functions map[string]lambda.Handler

	mu      sync.Mutex // of writing, last and waiting
	in      *json.Encoder
	last    int
	waiting map[int]chan reply
}

// reply is one of the engine's lines.
type reply struct {
	ID       int             `json:"id"`
	Answer   json.RawMessage `json:"answer"`
	Failure  string          `json:"failure"`
	Call     int             `json:"call"`
	Function string          `json:"function"`
	Payload  json.RawMessage `json:"payload"`
}

type values = map[string]any

// publishing are the mutations with the publish resolver.
var publishing = []string{"publishThreadEvent", "publishAgentActivity"}

// start begins an API with the real SDL and resolvers, over these functions.
func start(t testing.TB, functions map[string]lambda.Handler) *engine {
	t.Helper()
	npm.Install(t, here)
	cmd := exec.Command("node", "--experimental-vm-modules", "--no-warnings", filepath.Join("engine", "main.mjs"))
	cmd.Dir = here
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	require.NoError(t, cmd.Start())
	e := &engine{t: t, functions: functions, in: json.NewEncoder(in), waiting: map[int]chan reply{}}
	var reader sync.WaitGroup
	reader.Go(func() { e.read(out) })
	t.Cleanup(func() {
		_ = in.Close()
		reader.Wait()
		require.NoError(t, cmd.Wait(), problems.String())
	})
	fields := map[string]string{}
	for field, row := range rows(t).ByGraphQL() {
		fields[field] = row.Name
	}
	e.do("start", values{"config": values{"sdl": schema.SDL, "prelude": schema.Prelude, "resolver": deployed(t), "publish": read(t, "publish.js"),
		"rows": fields, "publishing": publishing, "env": values{}}})
	return e
}

// read takes the engine's lines until it ends; a function is called beside that.
func (e *engine) read(out io.Reader) {
	lines := bufio.NewReader(out)
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, c := range e.waiting {
				close(c)
			}
			return
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			e.t.Errorf("the engine wrote %s", line)
			continue
		}
		if r.Call > 0 {
			calls.Go(func() { e.call(r) })
			continue
		}
		e.mu.Lock()
		c := e.waiting[r.ID]
		delete(e.waiting, r.ID)
		e.mu.Unlock()
		c <- r
	}
}

// call runs a function as Lambda does: JSON in, JSON or a failure out.
func (e *engine) call(r reply) {
	line := values{"returned": r.Call}
	f, ok := e.functions[r.Function]
	if !ok {
		line["failure"] = "there is no function " + r.Function
	} else if raw, err := f.Invoke(context.Background(), r.Payload); err != nil {
		line["failure"] = err.Error()
	} else {
		line["result"] = json.RawMessage(raw)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.in.Encode(line); err != nil {
		e.t.Error(err)
	}
}

func (e *engine) ask(do string, what values) (json.RawMessage, error) {
	message := maps.Clone(what)
	c := make(chan reply, 1)
	e.mu.Lock()
	e.last++
	message["id"], message["do"] = e.last, do
	e.waiting[e.last] = c
	err := e.in.Encode(message)
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r, ok := <-c
	if !ok {
		return nil, errors.New("the engine ended")
	}
	if r.Failure != "" {
		return nil, errors.New(r.Failure)
	}
	return r.Answer, nil
}

func (e *engine) do(do string, what values) json.RawMessage {
	e.t.Helper()
	answer, err := e.ask(do, what)
	require.NoError(e.t, err)
	return answer
}

// graphqlRequest is what a client asks, and as whom: without claims it is an IAM principal.
type graphqlRequest struct {
	query     string
	variables json.RawMessage
	claims    tenant.Claims
	id        string
}

func (r graphqlRequest) message() values {
	request := values{"query": r.query}
	if r.variables != nil {
		request["variables"] = r.variables
	}
	return values{"request": request, "caller": values{"claims": r.claims, "requestId": r.id}}
}

// response is a GraphQL answer.
type response struct {
	Data   any            `json:"data"`
	Errors []graphqlError `json:"errors"`
}

type graphqlError struct {
	Message   string `json:"message"`
	ErrorType string `json:"errorType"`
	Path      []any  `json:"path"`
	Locations []any  `json:"locations"`
}

// types are the errors' types, each once, in order.
func (r response) types() []string {
	found := map[string]bool{}
	for _, e := range r.Errors {
		found[e.ErrorType] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// delivery is what one subscription receives.
type delivery struct {
	Subscription string   `json:"subscription"`
	Response     response `json:"response"`
}

func (e *engine) execute(r graphqlRequest) (response, []delivery) {
	e.t.Helper()
	var answer struct {
		Response  response
		Delivered []delivery
	}
	require.NoError(e.t, json.Unmarshal(e.do("execute", r.message()), &answer))
	return answer.Response, answer.Delivered
}

// subscribe registers a subscription under a name; filter is the one that its resolver set.
func (e *engine) subscribe(name string, r graphqlRequest) (answer response, filter json.RawMessage) {
	e.t.Helper()
	var out struct {
		Response response
		Filter   json.RawMessage
	}
	m := r.message()
	m["name"] = name
	require.NoError(e.t, json.Unmarshal(e.do("subscribe", m), &out))
	return out.Response, out.Filter
}

// ran is what one handler did.
type ran struct {
	Value  any
	Error  *raised
	Errors []raised
	Filter any
}

type raised struct {
	Message   string
	ErrorType string
	Data      any
	ErrorInfo any
}

// run calls one handler of a resolver's text.
func (e *engine) run(text, step string, ctx values) ran {
	e.t.Helper()
	var out ran
	require.NoError(e.t, json.Unmarshal(e.do("run", values{"text": text, "step": step, "ctx": ctx}), &out))
	return out
}
