package offline

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// ModelID is the model id that local mode gives its agents; every other id is answered too.
const ModelID = "offline.echo-1"

// Config of the offline model; the zero value is ready to use.
type Config struct {
	MaxBody int64 // bytes of a request; larger = ValidationException; default 8 MiB

	// BeforeDelta is a signal for tests: called before the n-th text delta (from 0) is written, everything earlier being flushed.
	BeforeDelta func(ctx context.Context, n int)
}

// Handler serves POST /model/{id}/converse, /model/{id}/converse-stream and /guardrail/{id}/version/{version}/apply. It asks for no authentication.
type Handler struct {
	config   Config
	failures *failures
}

// New makes the handler.
func New(c Config) *Handler {
	if c.MaxBody <= 0 {
		c.MaxBody = 8 << 20
	}
	return &Handler{config: c, failures: newFailures(1024)}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-Requestid", ident.New())
	id, streaming, ok := route(r)
	guardrail, version, guards := guardrailRoute(r)
	if !ok && !guards {
		refusal{http.StatusNotFound, "UnknownOperationException", "no such operation"}.write(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		invalid("the request is larger than %d bytes", large.Limit).write(w)
		return
	}
	if err != nil {
		return // the client is gone
	}
	if guards {
		apply(w, guardrail, version, body)
		return
	}
	req, bad := decode(body)
	if bad != nil {
		bad.write(w)
		return
	}
	out := compose(req, id, body)
	if out.fail.kind != "" && !h.failures.next(id, body, out.fail.times) {
		out.fail = fail{}
	}
	if refused := out.refusal(streaming); refused != nil {
		refused.write(w)
		return
	}
	if streaming {
		h.stream(w, r, out)
		return
	}
	h.answer(w, r, out)
}

// route takes /model/{id}/converse[-stream] apart; the id may be escaped (an ARN holds a slash).
func route(r *http.Request) (id string, streaming, ok bool) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/model/")
	if !ok || r.Method != http.MethodPost {
		return "", false, false
	}
	path, streaming = strings.CutSuffix(path, "/converse-stream")
	if !streaming {
		if path, ok = strings.CutSuffix(path, "/converse"); !ok {
			return "", false, false
		}
	}
	id, err := url.PathUnescape(path)
	if err != nil || id == "" || len(id) > 2048 { // Bedrock's own bound
		return "", false, false
	}
	return id, streaming, true
}

// answer writes the whole answer at once, as Converse does.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, out reply) {
	for range out.tokens {
		if !pause(r.Context(), out.slow) {
			return
		}
	}
	if out.fail.kind == failCut {
		panic(http.ErrAbortHandler)
	}
	content := []any{}
	if len(out.tokens) > 0 {
		content = append(content, map[string]any{"text": strings.Join(out.tokens, "")})
	}
	for _, use := range out.tools {
		content = append(content, map[string]any{"toolUse": use})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"output":     map[string]any{"message": map[string]any{"role": "assistant", "content": content}},
		"stopReason": out.stop,
		"usage":      out.usage,
		"metrics":    map[string]any{"latencyMs": 0},
	})
}
