package local

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// maxPayload is the largest body that a Lambda function behind an HTTP API can be given. Functions refuse less, in their own words.
const maxPayload = 6 << 20

// httpAPI plays the HTTP API in front of the functions that have an `http` trigger: routes, the JWT authorizer, events of payload format 2.0.
// What it answers itself has the body {"message": …}, as in the cloud; but a path that exists with other methods is a 405, where the cloud
// says 404 to that too.
type httpAPI struct {
	routes    *gateway.Routes
	functions map[string]lambda.Handler
	verify    func(ctx context.Context, authorization string) (tenant.Claims, error)
}

// newHTTPAPI takes the rows that have a function.
func newHTTPAPI(rows manifest.Manifest, functions map[string]lambda.Handler, verify func(context.Context, string) (tenant.Claims, error)) (*httpAPI, error) {
	var served manifest.Manifest
	for _, row := range rows.Rows {
		if functions[row.Name] != nil {
			served.Rows = append(served.Rows, row)
		}
	}
	routes, err := gateway.NewRoutes(served)
	return &httpAPI{routes, functions, verify}, err
}

func (a *httpAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := ident.New()
	header := w.Header()
	header.Set("Apigw-Requestid", requestID)
	header.Set("Access-Control-Allow-Origin", "*") // as /graphql: the token travels in a header, never in a cookie
	header.Set("Access-Control-Expose-Headers", "etag, location, retry-after, x-request-id")
	path := r.URL.EscapedPath()
	match, err := a.routes.Match(r.Method, path)
	if err != nil {
		allowed := a.routes.Allowed(path)
		switch {
		case allowed == nil:
			refuse(w, http.StatusNotFound)
		case r.Method == http.MethodOptions:
			header.Set("Access-Control-Allow-Headers", "*, authorization, content-type, if-match, idempotency-key")
			header.Set("Access-Control-Allow-Methods", strings.Join(append(allowed, http.MethodOptions), ", "))
			w.WriteHeader(http.StatusNoContent)
		default:
			header.Set("Allow", strings.Join(allowed, ", "))
			refuse(w, http.StatusMethodNotAllowed)
		}
		return
	}
	event := newEvent(r, match, requestID)
	if auth := match.Row.Auth; auth == manifest.AuthUser || auth == manifest.AuthOperator {
		claims, err := a.verify(r.Context(), r.Header.Get("Authorization"))
		if err != nil {
			status := fault.From(err).Status()
			if status == http.StatusInternalServerError {
				slog.Error("verifying a token failed", "request_id", requestID, "error", err)
			}
			header.Set("Www-Authenticate", "Bearer")
			refuse(w, status)
			return
		}
		authorize(&event, claims)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge)
		return
	} else if err != nil { // cut short, too slow, or not what its headers say: a success it is not
		refuse(w, http.StatusBadRequest)
		return
	}
	carry(&event, r.Header.Get("Content-Type"), body)
	a.call(w, r, match.Row, event)
}

// call runs the function for as long as its row allows.
func (a *httpAPI) call(w http.ResponseWriter, r *http.Request, row manifest.Row, event events.APIGatewayV2HTTPRequest) {
	ctx, cancel := context.WithTimeout(r.Context(), row.Timeout.Duration())
	defer cancel()
	answer, err := ask(ctx, a.functions[row.Name], event)
	var body []byte
	if err == nil {
		if body = []byte(answer.Body); answer.IsBase64Encoded {
			body, err = base64.StdEncoding.DecodeString(answer.Body)
		}
	}
	if err != nil || answer.StatusCode < 200 || answer.StatusCode > 599 {
		slog.Error("a function failed", "function", row.Name, "request_id", event.RequestContext.RequestID, "error", err)
		refuse(w, http.StatusInternalServerError)
		return
	}
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	for _, cookie := range answer.Cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body) // a client that is gone has no use for an error
}

// ask invokes a function; a panic is an error: the function's instance would be gone, the gateway would not.
func ask(ctx context.Context, h lambda.Handler, event events.APIGatewayV2HTTPRequest) (answer events.APIGatewayV2HTTPResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	raw, err := json.Marshal(event)
	if err != nil {
		return answer, err
	}
	if raw, err = h.Invoke(ctx, raw); err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(raw, &answer)
}

// refuse is the gateway's own answer.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":%q}`, http.StatusText(status))
}

// newEvent is the request as a function sees it, but for its body and its caller.
func newEvent(r *http.Request, match gateway.Match, requestID string) events.APIGatewayV2HTTPRequest {
	now := time.Now().UTC()
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = r.Host, "80"
	}
	source, _, _ := net.SplitHostPort(r.RemoteAddr)
	headers := make(map[string]string, len(r.Header)+4)
	for name, values := range r.Header {
		if name != "Cookie" {
			headers[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	headers["host"], headers["x-forwarded-proto"], headers["x-forwarded-port"] = r.Host, "http", port
	headers["x-forwarded-for"] = strings.TrimPrefix(headers["x-forwarded-for"]+", "+source, ", ")
	headers["content-length"] = strconv.FormatInt(max(r.ContentLength, 0), 10)
	prefix, _, _ := strings.Cut(host, ".")
	var cookies []string
	for _, line := range r.Header["Cookie"] {
		for c := range strings.SplitSeq(line, ";") {
			cookies = append(cookies, strings.TrimSpace(c))
		}
	}
	return events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: match.Key, RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery, Cookies: cookies, Headers: headers,
		QueryStringParameters: joined(r.URL.Query()), PathParameters: match.Params,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: match.Key, AccountID: "000000000000", Stage: "$default", RequestID: requestID, APIID: "local", DomainName: host, DomainPrefix: prefix,
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: r.Method, Path: r.URL.EscapedPath(), Protocol: r.Proto, SourceIP: source, UserAgent: r.UserAgent()},
		},
	}
}

func joined(query url.Values) map[string]string {
	out := make(map[string]string, len(query))
	for name, values := range query {
		out[name] = strings.Join(values, ",")
	}
	return out
}

// authorize tells the function who the caller is.
func authorize(event *events.APIGatewayV2HTTPRequest, claims tenant.Claims) {
	event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claimTexts(claims)}}
}

// carry puts the body into the event.
func carry(event *events.APIGatewayV2HTTPRequest, contentType string, body []byte) {
	if event.IsBase64Encoded = !isText(contentType, body); event.IsBase64Encoded {
		event.Body = base64.StdEncoding.EncodeToString(body)
	} else {
		event.Body = string(body)
	}
}

// isText reports whether a body travels as it is. API Gateway takes these types for text and everything else for binary, also a body without a type.
func isText(contentType string, body []byte) bool {
	typ, _, err := mime.ParseMediaType(contentType)
	if err != nil || !utf8.Valid(body) { // JSON could not carry other text
		return len(body) == 0
	}
	switch typ {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return len(body) == 0 || strings.HasPrefix(typ, "text/")
}

// claimTexts are a token's claims as the authorizer of an HTTP API hands them on: each a string.
func claimTexts(claims tenant.Claims) map[string]string {
	out := make(map[string]string, len(claims))
	for name, value := range claims {
		switch v := value.(type) {
		case string:
			out[name] = v
		case float64:
			out[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			out[name] = fmt.Sprint(v) // true; [a b]
		}
	}
	return out
}
