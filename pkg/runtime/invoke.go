package runtime

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// maxBody bounds an invocation, in bytes: ids only.
const maxBody = 64 << 10

// invoke answers POST /invocations: a turn.Dispatch in, server-sent events out.
func (s *Server) invoke(w http.ResponseWriter, r *http.Request) {
	d, err := decode(w, r)
	if err != nil {
		refuse(w, r, err)
		return
	}
	out := followed()
	reason, err := s.start(d, out)
	if err != nil {
		refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if reason != "" {
		answer := followed()
		answer.tell(agentcore.EventRefused, map[string]agentcore.Reason{"reason": reason})
		answer.ended = true
		answer.follow(r.Context(), w)
		return
	}
	out.follow(r.Context(), w)
}

// decode reads and checks a turn.Dispatch. Members that it does not know are a newer dispatcher's.
func decode(w http.ResponseWriter, r *http.Request) (turn.Dispatch, error) {
	var d turn.Dispatch
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		return d, fault.Invalid("the Content-Type must be application/json").WithStatus(http.StatusUnsupportedMediaType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return d, fault.Invalid("the body is larger than %d bytes", maxBody).WithStatus(http.StatusRequestEntityTooLarge)
	}
	if err != nil {
		return d, fault.Invalid("the body cannot be read")
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return d, fault.Invalid("the body is not a dispatch: {tenantId, turnId}")
	}
	if !ident.Valid(d.TenantID) || !ident.Valid(d.TurnID) {
		return d, fault.Invalid("tenantId and turnId must be UUIDs")
	}
	for threadUUID := range d.Published {
		if !ident.Valid(threadUUID) {
			return d, fault.Invalid("publishedEvents must be numbers by UUIDs")
		}
	}
	return d, nil
}

// ping answers GET /ping. time_of_last_update is when the status changed, never the time of the ping: a time that always advances would keep
// AgentCore from ending an idle session.
func (s *Server) ping(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	status, changed := "Healthy", s.changed.Unix()
	if len(s.running) > 0 {
		status = "HealthyBusy"
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // to a client that may have gone
		Status  string `json:"status"`
		Changed int64  `json:"time_of_last_update"`
	}{status, changed})
}

func notFound(w http.ResponseWriter, r *http.Request) { refuse(w, r, fault.Missing("path")) }

func notAllowed(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		refuse(w, r, fault.Invalid("the method must be %s", allowed).WithStatus(http.StatusMethodNotAllowed))
	}
}

// refuse answers as the platform's REST operations do: problem+json, an internal error with its request id only.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	id := ident.New()
	if fault.From(err).Type == fault.InternalError {
		slog.ErrorContext(r.Context(), "invocation failed", "request_id", id, "error", err)
	}
	status, body := handler.Problem(err, r.URL.Path, id)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // to a client that may have gone
}
