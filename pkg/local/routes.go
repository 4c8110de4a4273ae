package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	"github.com/agentplatform/agentplatform/pkg/local/web"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
)

// mount puts everything behind the two ports: the plain one plays the HTTP API, the TLS one plays AppSync.
func (p *Platform) mount(hub *realtime.Hub) error {
	verifier, err := identity.New(identity.Config{Issuer: p.pool.Issuer(), ClientID: p.pool.ClientID()})
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{SDL: schema.SDL, Prelude: schema.Prelude, Manifest: p.config.Rows.GraphQL(), Functions: p.queue.functions})
	if err != nil {
		return err
	}
	if p.sockets, err = realtime.New(realtime.Config{Hub: hub, Verifier: verifier, Executor: realtime.FromGateway(g)}); err != nil {
		return err
	}
	outputs, err := json.MarshalIndent(p.Outputs, "", "  ")
	if err != nil {
		return err
	}

	outputs = append(outputs, '\n')

	plain := http.NewServeMux()
	for _, pattern := range p.pool.Patterns() {
		plain.Handle(pattern, p.pool.Handler())
	}
	plain.Handle("/graphql", &graphQL{gateway: g, verifier: verifier, sockets: p.sockets, function: p.graphQLFunction()})
	plain.Handle("GET /graphql/realtime", p.sockets)
	rest, err := newHTTPAPI(p.callers(), p.queue.functions, verifier.Verify)
	if err != nil {
		return err
	}
	plain.Handle("/api/", rest)
	plain.Handle("/webhooks/", rest)
	plain.Handle("/integrations/", rest)
	plain.Handle("POST "+inboxPath, p.inbox().handler())
	plain.HandleFunc("GET /local/outputs.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(outputs)
	})
	plain.HandleFunc("GET /local/functions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(p.starts())
	})
	plain.HandleFunc("GET /local/verify.env", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, p.Outputs.verifyEnv())
	})
	if p.config.Metrics != nil {
		plain.Handle("GET /local/metrics", p.config.Metrics)
	}
	sent := p.sent.Handler()
	plain.Handle("GET "+outbox.Path, sent)
	plain.Handle("GET "+outbox.Path+"/{id}", sent)
	page := web.Handler()
	plain.Handle("GET /{$}", page)
	plain.Handle("GET "+web.Prefix, page)
	p.plain.serve(onlyLocal(plain), p.failed)

	appSync := http.NewServeMux()
	appSync.Handle("/graphql", &graphQL{gateway: g, verifier: verifier, sockets: p.sockets, appSync: true})
	appSync.Handle("GET /graphql/realtime", p.sockets)
	p.tls.serve(onlyLocal(appSync), p.failed)
	return nil
}

// onlyLocal refuses requests whose Host is not this machine: a page of another site that has its name resolve to 127.0.0.1 must not
// reach the platform.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this platform answers on the loopback address only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// graphQL is POST /graphql behind the gateway's authorizer, and the socket for clients that connect to the same path.
type graphQL struct {
	gateway  *gateway.Gateway
	verifier *identity.Verifier
	sockets  *realtime.Server
	appSync  bool // play AppSync: 200 whatever the errors, but for 401

	function func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) // answers in the gateway's place; nil: the gateway
}

// graphQLFunction is the HTTP GraphQL function in a process of its own, if there is one.
func (p *Platform) graphQLFunction() func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	if p.host == nil {
		return nil
	}
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return ask(ctx, p.host.Handler("graphql"), event)
	}
}

func (h *graphQL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*") // as the cloud's gateways: the token travels in a header, never in a cookie
	header.Set("Access-Control-Allow-Headers", "*, authorization, content-type, x-amz-user-agent, x-amz-date, x-api-key")
	header.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	switch {
	case realtime.Wanted(r):
		h.sockets.ServeHTTP(w, r)
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		header.Set("Allow", "POST, OPTIONS")
		answer(w, http.StatusMethodNotAllowed, refusal(fault.Invalid("GraphQL is asked with POST.")))
	default:
		h.post(w, r)
	}
}

func (h *graphQL) post(w http.ResponseWriter, r *http.Request) {
	requestID := ident.New()
	w.Header().Set("X-Amzn-Requestid", requestID)
	claims, err := h.verifier.Verify(r.Context(), r.Header.Get("Authorization"))
	if err != nil {
		f := fault.From(err)
		if f.Type == fault.InternalError {
			slog.Error("verifying a token failed", "request_id", requestID, "error", err)
		}
		answer(w, f.Status(), refusal(f))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, gateway.MaxBody+1)) // a byte too many: the gateway refuses it
	if tooLarge := new(http.MaxBytesError); err != nil && !errors.As(err, &tooLarge) {
		answer(w, http.StatusBadRequest, refusal(fault.Invalid("the body cannot be read")))
		return
	}
	if h.function != nil {
		h.invoke(w, r, requestID, claims, body)
		return
	}
	status, out := h.gateway.GraphQLHTTP(r.Context(), gateway.Post{Body: body, ContentType: r.Header.Get("Content-Type"), Claims: claims,
		RequestID: requestID, AppSync: h.appSync})
	answer(w, status, out)
}

// invoke has the function answer, as behind the HTTP API.
func (h *graphQL) invoke(w http.ResponseWriter, r *http.Request, requestID string, claims tenant.Claims, body []byte) {
	event := newEvent(r, gateway.Match{Route: gateway.Route{Key: "POST /graphql"}}, requestID)
	authorize(&event, claims)
	carry(&event, r.Header.Get("Content-Type"), body)
	got, err := h.function(r.Context(), event)
	if err == nil && (got.StatusCode < 200 || got.StatusCode > 599) {
		err = fmt.Errorf("it answered with status %d", got.StatusCode)
	}
	if err != nil {
		slog.Error("a function failed", "function", "graphql", "request_id", requestID, "error", err)
		answer(w, http.StatusInternalServerError, refusal(fault.New(fault.InternalError, "internal error (request %s)", requestID)))
		return
	}
	answer(w, got.StatusCode, []byte(got.Body))
}

// refusal is the body of a request that did not get as far as GraphQL.
func refusal(f *fault.Error) []byte {
	type graphQLError struct {
		Message   string     `json:"message"`
		ErrorType fault.Type `json:"errorType"`
		Locations []struct{} `json:"locations"`
		Path      []string   `json:"path"`
	}
	message := f.Message
	if f.Type == fault.Unauthorized {
		message = "Unauthorized"
	}
	body, _ := json.Marshal(struct { // strings only
		Message string         `json:"message"`
		Errors  []graphQLError `json:"errors"`
	}{message, []graphQLError{{f.Message, f.Type, []struct{}{}, []string{}}}})
	return body
}

func answer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone has no use for an error
}
