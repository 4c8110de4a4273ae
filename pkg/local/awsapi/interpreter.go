package awsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// interpreter is AgentCore's code interpreter with that one id. A session is a name only: nothing is kept between two calls of it.
type interpreter struct {
	id      string
	sandbox sandbox.Sandbox

	mu       sync.Mutex
	sessions map[string]time.Time // and when they end
}

const mostSessions = 1000

// InterpreterLimits are those of the sandbox behind the interpreter, which runs whole programs of its clients: a script's, and room for what is around it.
func InterpreterLimits() sandbox.Limits {
	l := sandbox.Default
	l.Input, l.Output = 2<<20, 8*l.Output
	return l
}

func (i *interpreter) routes(mux *http.ServeMux) {
	mux.HandleFunc("PUT /code-interpreters/{id}/sessions/start", i.start)
	mux.HandleFunc("PUT /code-interpreters/{id}/sessions/stop", i.stop)
	mux.HandleFunc("POST /code-interpreters/{id}/tools/invoke", i.invoke)
}

func (i *interpreter) start(w http.ResponseWriter, r *http.Request) {
	var in struct{ SessionTimeoutSeconds *int }
	if r.PathValue("id") != i.id {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "the platform has the code interpreter "+i.id+" only")
		return
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.SessionTimeoutSeconds != nil && (*in.SessionTimeoutSeconds < 1 || *in.SessionTimeoutSeconds > 28800) {
		refuse(w, http.StatusBadRequest, "ValidationException", "the request is a JSON object; sessionTimeoutSeconds is 1 to 28800")
		return
	}
	lasts := 15 * time.Minute
	if in.SessionTimeoutSeconds != nil {
		lasts = time.Duration(*in.SessionTimeoutSeconds) * time.Second
	}
	now, session := time.Now(), ident.New()
	i.mu.Lock()
	defer i.mu.Unlock()
	for s, end := range i.sessions {
		if now.After(end) {
			delete(i.sessions, s)
		}
	}
	if len(i.sessions) >= mostSessions {
		refuse(w, http.StatusPaymentRequired, "ServiceQuotaExceededException", "too many sessions")
		return
	}
	i.sessions[session] = now.Add(lasts)
	write(w, http.StatusOK, map[string]string{"codeInterpreterIdentifier": i.id, "sessionId": session, "createdAt": now.UTC().Format(time.RFC3339)})
}

// has reports whether a session is there; with end, it is no more.
func (i *interpreter) has(session string, end bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	until, ok := i.sessions[session]
	if end {
		delete(i.sessions, session)
	}
	return ok && time.Now().Before(until)
}

func (i *interpreter) stop(w http.ResponseWriter, r *http.Request) {
	session := r.URL.Query().Get("sessionId")
	if r.PathValue("id") != i.id || !i.has(session, true) {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "there is no such session")
		return
	}
	write(w, http.StatusOK, map[string]string{"codeInterpreterIdentifier": i.id, "sessionId": session, "lastUpdatedAt": time.Now().UTC().Format(time.RFC3339)})
}

// invoke runs JavaScript as the service does: to the end of what the program's value waits for, and with the exit codes of processes.
func (i *interpreter) invoke(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name      string
		Arguments struct{ Language, Runtime, Code string }
	}
	session := r.Header.Get("X-Amzn-Code-Interpreter-Session-Id")
	if r.PathValue("id") != i.id || !i.has(session, false) {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "there is no such session")
		return
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Name != "executeCode" || in.Arguments.Language != sandbox.JavaScript {
		refuse(w, http.StatusBadRequest, "ValidationException", "the platform's code interpreter has executeCode of JavaScript only")
		return
	}
	code, err := json.Marshal(in.Arguments.Code)
	if err != nil {
		refuse(w, http.StatusBadRequest, "ValidationException", "the code is no text")
		return
	}
	result, err := i.sandbox.Run(r.Context(), sandbox.Script{Language: sandbox.JavaScript, Code: "await (0, eval)(input)", Input: code})
	var told *fault.Error
	switch {
	case errors.Is(err, sandbox.ErrBusy):
		refuse(w, http.StatusTooManyRequests, "ThrottlingException", "too many calls")
		return
	case errors.As(err, &told):
		refuse(w, http.StatusBadRequest, "ValidationException", told.Message)
		return
	case r.Context().Err() != nil:
		return
	case err != nil:
		slog.Error("a function's code could not be run", "error", err)
		refuse(w, http.StatusInternalServerError, "InternalServerException", "the code could not be run")
		return
	}
	var body bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&body, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":message-type", Value: eventstream.StringValue("event")},
			{Name: ":event-type", Value: eventstream.StringValue("result")},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
		},
		Payload: executed(result),
	}); err != nil {
		refuse(w, http.StatusInternalServerError, "InternalServerException", "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	w.Header().Set("X-Amzn-Code-Interpreter-Session-Id", session)
	_, _ = w.Write(body.Bytes()) // the client has gone if this fails
}

// exits are what a process that ended so exits with; timeout(1) and the shell have them so.
var exits = map[sandbox.Status]int{sandbox.StatusOK: 0, sandbox.StatusError: 1, sandbox.StatusTimeout: 124, sandbox.StatusMemory: 137, sandbox.StatusOutput: 141}

// executed is a CodeInterpreterResult.
func executed(r sandbox.Result) []byte {
	shown := r.Stdout
	if r.Status != sandbox.StatusOK {
		shown += r.Error
	}
	text, err := json.Marshal(map[string]any{
		"content":           []any{map[string]string{"type": "text", "text": shown}},
		"structuredContent": map[string]any{"stdout": r.Stdout, "stderr": r.Error, "exitCode": exits[r.Status], "executionTime": float64(r.DurationMs)},
		"isError":           r.Status != sandbox.StatusOK,
	})
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}
