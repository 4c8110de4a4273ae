package codeinterpreter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/codeinterpreter"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// service answers in the service's wire form: each operation with what it is told, or with an error's name.
type service struct {
	t      *testing.T
	mu     sync.Mutex
	asked  []string
	bodies []map[string]any
	fails  map[string]string                       // operation: error
	answer func(mark string) []string              // the stream's events: a result as JSON, or an exception's name
	holds  func(operation string, r *http.Request) // before it answers
}

var statuses = map[string]int{"ThrottlingException": 429, "ServiceQuotaExceededException": 402, "AccessDeniedException": 403, "ResourceNotFoundException": 404}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	operation := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	s.asked, s.bodies = append(s.asked, strings.TrimSuffix(r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+r.Header.Get("X-Amzn-Code-Interpreter-Session-Id"), " ")), append(s.bodies, body)
	s.mu.Unlock()
	if s.holds != nil {
		s.holds(operation, r)
	}
	if kind := s.fails[operation]; kind != "" {
		w.Header().Set("X-Amzn-Errortype", kind)
		w.WriteHeader(statuses[kind])
		_, _ = io.WriteString(w, `{"message":"told"}`)
		return
	}
	if operation != "invoke" {
		_, _ = io.WriteString(w, `{"codeInterpreterIdentifier":"id","sessionId":"the-session","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"}`)
		return
	}
	code := body["arguments"].(map[string]any)["code"].(string)
	mark := code[strings.Index(code, `"outcome:`)+1:]
	mark = mark[:strings.IndexByte(mark, '"')]
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for _, event := range s.answer(mark) {
		kind, header, name := "event", ":event-type", "result"
		if !strings.HasPrefix(event, "{") {
			kind, header, name, event = "exception", ":exception-type", event, `{"message":"told"}`
		}
		_ = eventstream.NewEncoder().Encode(w, eventstream.Message{Payload: []byte(event), Headers: eventstream.Headers{
			{Name: ":message-type", Value: eventstream.StringValue(kind)}, {Name: header, Value: eventstream.StringValue(name)}, {Name: ":content-type", Value: eventstream.StringValue("application/json")}}})
	}
}

// says is a result with that on its standard output.
func says(stdout string) string {
	text, _ := json.Marshal(map[string]any{"content": []any{}, "structuredContent": map[string]any{"stdout": stdout, "stderr": "", "exitCode": 0}, "isError": false})
	return string(text)
}

func start(t *testing.T, l sandbox.Limits, s *service) *codeinterpreter.Interpreter {
	s.t = t
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return codeinterpreter.New(codeinterpreter.Config{ID: "id", Limits: l, Client: bedrockagentcore.New(bedrockagentcore.Options{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), Retryer: aws.NopRetryer{}})})
}

var script = sandbox.Script{Language: sandbox.JavaScript, Code: "return 1"}

var operations = []string{"PUT /code-interpreters/id/sessions/start", "POST /code-interpreters/id/tools/invoke the-session", "PUT /code-interpreters/id/sessions/stop sessionId=the-session"}

func TestWhatIsAsked(t *testing.T) {
	s := &service{answer: func(mark string) []string {
		return []string{says("hi\n" + mark), says(`{"status":"ok","value":"[1]"}` + "\nmore")} // in pieces, and with what a console adds
	}}
	r, err := start(t, sandbox.Limits{}, s).Run(t.Context(), script)
	require.NoError(t, err)
	require.Equal(t, sandbox.StatusOK, r.Status)
	require.Equal(t, "hi\n", r.Stdout)
	require.Equal(t, "[1]", string(r.Value))
	require.Equal(t, operations, s.asked)
	delete(s.bodies[0], "clientToken")
	require.Equal(t, map[string]any{"name": "run_code", "sessionTimeoutSeconds": 60.0}, s.bodies[0])
	arguments := s.bodies[1]["arguments"].(map[string]any)
	require.Equal(t, "executeCode", s.bodies[1]["name"])
	require.Equal(t, "javascript", arguments["language"])
	require.Equal(t, "nodejs", arguments["runtime"])
	require.Contains(t, arguments["code"], `{milliseconds: 10000, mebibytes: 128, bytes: 65536}`)
}

// What a session can answer, and what it is to the caller.
func TestAnswers(t *testing.T) {
	result := func(stdout, stderr string, exit int) string {
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"stdout":%q,"stderr":%q,"exitCode":%d},"isError":%t}`, stdout+stderr, stdout, stderr, exit, exit != 0)
	}
	for name, c := range map[string]struct {
		answer func(mark string) []string
		status sandbox.Status
		err    string
	}{
		"only text": {func(m string) []string {
			return []string{`{"content":[{"type":"text","text":"` + m + `{\"status\":\"ok\"}"}]}`}
		}, sandbox.StatusOK, ""},
		"killed":                {func(string) []string { return []string{result("so far\n", "", 137)} }, sandbox.StatusMemory, "128 MiB"},
		"killed after its mark": {func(m string) []string { return []string{result(m+`{"status":"error","error":"threw null"}`, "", 137)} }, sandbox.StatusMemory, "128 MiB"},
		"out of memory":         {func(string) []string { return []string{result("", "FATAL ERROR: JavaScript heap out of memory", 134)} }, sandbox.StatusMemory, "128 MiB"},
		"timeout":               {func(string) []string { return []string{result("", "", 124)} }, sandbox.StatusTimeout, "10s"},
		"broken":                {func(string) []string { return []string{result("", "node: not found", 127)} }, sandbox.StatusError, "node: not found"},
		"to no end":             {func(string) []string { return []string{result("hi\n", "", 0)} }, sandbox.StatusError, "nothing settles"},
		"nothing":               {func(string) []string { return nil }, sandbox.StatusError, "nothing settles"},
		"no outcome":            {func(m string) []string { return []string{says(m + "{")} }, sandbox.StatusError, "nothing settles"},
		"another status":        {func(m string) []string { return []string{says(m + `{"status":"great"}`)} }, sandbox.StatusError, "without an outcome"},
		"a value that is none":  {func(m string) []string { return []string{says(m + `{"status":"ok","value":"{"}`)} }, sandbox.StatusOK, ""},
		"for ever": {func(string) []string {
			var many []string
			for range 100 {
				many = append(many, says(strings.Repeat("x", 64<<10)))
			}
			return many
		}, sandbox.StatusOutput, "64 KiB"},
	} {
		s := &service{answer: c.answer}
		r, err := start(t, sandbox.Limits{}, s).Run(t.Context(), script)
		require.NoError(t, err, name)
		require.Equal(t, c.status, r.Status, name)
		require.Contains(t, r.Error, c.err, name)
		require.LessOrEqual(t, len(r.Stdout)+len(r.Value), sandbox.Default.Output, name)
		require.Equal(t, operations, s.asked, name)
	}
}

// A session that was started is stopped, whatever comes between.
func TestAlwaysStopped(t *testing.T) {
	for _, kind := range []string{"ThrottlingException", "ServiceQuotaExceededException"} {
		s := &service{fails: map[string]string{"invoke": kind}}
		_, err := start(t, sandbox.Limits{}, s).Run(t.Context(), script)
		require.ErrorIs(t, err, sandbox.ErrBusy)
		require.Equal(t, operations, s.asked)
		s = &service{fails: map[string]string{"start": kind}}
		_, err = start(t, sandbox.Limits{}, s).Run(t.Context(), script)
		require.ErrorIs(t, err, sandbox.ErrBusy)
		require.Equal(t, operations[:1], s.asked, "there is no session to stop")
	}
	s := &service{answer: func(string) []string { return []string{"internalServerException"} }}
	_, err := start(t, sandbox.Limits{}, s).Run(t.Context(), script)
	require.ErrorContains(t, err, "code interpreter: ")
	require.Equal(t, operations, s.asked)

	s = &service{fails: map[string]string{"stop": "ResourceNotFoundException"}, answer: func(m string) []string { return []string{says(m + `{"status":"ok"}`)} }}
	_, err = start(t, sandbox.Limits{}, s).Run(t.Context(), script)
	require.NoError(t, err, "a session that cannot be stopped ends by itself")

	ctx, cancel := context.WithCancel(t.Context())
	s = &service{holds: func(operation string, r *http.Request) {
		if operation == "invoke" {
			cancel()
			<-r.Context().Done()
		}
	}, answer: func(string) []string { return nil }}
	_, err = start(t, sandbox.Limits{}, s).Run(ctx, script)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, operations, s.asked)
}

// A session that does not answer is a script that took too long.
func TestASessionThatHangs(t *testing.T) {
	limits := sandbox.Default
	limits.Wall = 50 * time.Millisecond
	s := &service{holds: func(operation string, r *http.Request) {
		if operation == "invoke" {
			<-r.Context().Done()
		}
	}, answer: func(string) []string { return nil }}
	r, err := start(t, limits, s).Run(t.Context(), script)
	require.NoError(t, err)
	require.Equal(t, sandbox.StatusTimeout, r.Status)
	require.Equal(t, operations, s.asked)
}
