package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// MaxBody is the largest body of a REST request, in bytes.
const MaxBody = 1 << 20

// Request is a call of a REST operation. Its body is read when the operation asks for it, after whatever it checks before.
type Request struct {
	ID        string            // in the log, and in X-Request-Id of the answer
	Method    string            // "POST"
	Path      string            // as it was asked for, percent-encoded
	Params    map[string]string // of the route's pattern, decoded
	Query     url.Values
	SourceIP  string
	UserAgent string

	headers map[string]string // names in lower case
	body    string
	base64  bool
}

// Reply is what a REST operation answers. With an error only its Headers count.
type Reply struct {
	Status  int               // default 200, without a body 204
	Headers map[string]string // besides the adapter's own: Content-Type, Cache-Control, X-Request-Id, WWW-Authenticate
	Body    any               // encoded as JSON; nil: none
}

// REST adapts an operation to a function behind an HTTP API (payload format 2.0). Where the gateway has checked a token, its claims are the
// caller of the context; other routes have none and check what they get themselves. An error is answered as RFC 9457 problem+json, once, here.
func REST(run func(ctx context.Context, r *Request) (Reply, error)) lambda.Handler {
	return HTTP(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		r := newRequest(e)
		if a := e.RequestContext.Authorizer; a != nil && a.JWT != nil {
			ctx = tenant.With(ctx, caller(a.JWT.Claims, r.ID))
		}
		reply, err := run(ctx, r)
		var body []byte
		if err == nil {
			body, err = encode(reply.Body)
		}
		answer := events.APIGatewayV2HTTPResponse{StatusCode: reply.Status, Headers: map[string]string{"x-request-id": r.ID, "cache-control": "no-store"}}
		switch {
		case err != nil:
			if f := fault.From(err); f.Type == fault.InternalError {
				failed("request failed", err, "route", e.RouteKey, "request_id", r.ID)
			} else if f.Type == fault.Unauthorized {
				answer.Headers["www-authenticate"] = "Bearer"
			}
			denied(ctx, fault.From(err), slog.String("route", e.RouteKey), slog.String("request_id", r.ID))
			answer.Headers["content-type"] = "application/problem+json"
			answer.StatusCode, body = Problem(err, r.Path, r.ID)
		case body == nil:
			answer.StatusCode = cmp.Or(reply.Status, http.StatusNoContent)
		default:
			answer.StatusCode = cmp.Or(reply.Status, http.StatusOK)
			answer.Headers["content-type"] = "application/json"
		}
		for name, value := range reply.Headers {
			answer.Headers[strings.ToLower(name)] = value
		}
		answer.Body = string(body)
		return answer, nil
	})
}

func newRequest(e events.APIGatewayV2HTTPRequest) *Request {
	query, _ := url.ParseQuery(e.RawQueryString) // what cannot be read is not there
	return &Request{ID: e.RequestContext.RequestID, Method: e.RequestContext.HTTP.Method, Path: e.RawPath, Params: e.PathParameters, Query: query,
		SourceIP: e.RequestContext.HTTP.SourceIP, UserAgent: e.RequestContext.HTTP.UserAgent, headers: e.Headers, body: e.Body, base64: e.IsBase64Encoded}
}

// caller is who the authorizer's claims name; an HTTP API makes each claim a string.
func caller(claims map[string]string, requestID string) tenant.Caller {
	any := make(tenant.Claims, len(claims))
	for name, value := range claims {
		any[name] = value
	}
	c := any.Caller()
	c.RequestID = requestID
	return c
}

// Header is the value of a header, "" without it; several of a name are joined by commas.
func (r *Request) Header(name string) string { return r.headers[strings.ToLower(name)] }

// Bearer is the token of the Authorization header, "" without one.
func (r *Request) Bearer() string {
	scheme, token, _ := strings.Cut(r.Header("authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Body is the request's body. More than MaxBody bytes are refused with 413.
func (r *Request) Body() ([]byte, error) {
	body := []byte(r.body)
	if r.base64 {
		var err error
		if body, err = base64.StdEncoding.DecodeString(r.body); err != nil {
			return nil, fault.Invalid("the body cannot be read")
		}
	}
	if len(body) > MaxBody {
		return nil, fault.Invalid("the body is larger than %d bytes", MaxBody).WithStatus(http.StatusRequestEntityTooLarge)
	}
	return body, nil
}

// JSON is Body for operations that take JSON only; what says that it is something else is refused with 415. Decode reads it. also are other
// types of JSON that the operation takes.
func (r *Request) JSON(also ...string) ([]byte, error) {
	typ, params, err := mime.ParseMediaType(r.Header("content-type"))
	charset, encoding := params["charset"], r.Header("content-encoding")
	types := append([]string{"application/json"}, also...)
	if err != nil || !slices.Contains(types, typ) || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, fault.Invalid("the Content-Type must be %s", strings.Join(types, " or ")).WithStatus(http.StatusUnsupportedMediaType)
	}
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, fault.Invalid("the body must not be encoded").WithStatus(http.StatusUnsupportedMediaType)
	}
	return r.Body()
}

// Page is the paging arguments of the query: limit and next_token.
func (r *Request) Page() (page.Request, error) {
	var asked page.Request
	if r.Query.Has("limit") {
		limit, err := strconv.Atoi(r.Query.Get("limit"))
		if err != nil {
			return asked, fault.Invalid("limit must be a number")
		}
		asked.Limit = &limit
	}
	if r.Query.Has("next_token") {
		asked.NextToken = new(r.Query.Get("next_token"))
	}
	return asked, nil
}

// List is a page as REST operations answer it.
type List[T any] struct {
	Items     []T     `json:"items"`
	NextToken *string `json:"next_token"` // null on the last page
}

// CheckMatch refuses, with 412, what If-Match means for another version of a resource than the one with this entity tag (RFC 9110 §13.1.1).
func (r *Request) CheckMatch(tag string) error {
	given := r.Header("if-match")
	for one := range strings.SplitSeq(given, ",") {
		if one = strings.TrimSpace(one); given == "" || one == "*" || one == tag {
			return nil
		}
	}
	return fault.Invalid("If-Match does not name the current version, %s", tag).WithStatus(http.StatusPreconditionFailed)
}

// Problem renders an error of a REST operation as RFC 9457 application/problem+json with the member errorType. instance is the path that was
// asked for. Of an internal error it says the request id only; the caller logs the cause.
func Problem(err error, instance, requestID string) (status int, body []byte) {
	f := fault.From(err)
	detail := f.Message
	if f.Type == fault.InternalError {
		detail += " (request " + requestID + ")"
	}
	body, _ = encode(struct { // texts and a number: they can be encoded
		Type      string     `json:"type"`
		Title     string     `json:"title"`
		Status    int        `json:"status"`
		Detail    string     `json:"detail"`
		Instance  string     `json:"instance"`
		ErrorType fault.Type `json:"errorType"`
	}{"about:blank", http.StatusText(f.Status()), f.Status(), detail, instance, f.Type})
	return f.Status(), body
}

// encode is v as JSON without the escapes that are for HTML; nothing for nil.
func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
