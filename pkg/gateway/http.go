package gateway

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// MaxBody is the largest GraphQL request body, in bytes. A server reads one byte more and hands it over, so that it is refused here.
const MaxBody = 1 << 20

// Post is a GraphQL request as it arrives over HTTP, after its token was verified.
type Post struct {
	Body        []byte
	ContentType string // application/json; application/graphql too, which AppSync's clients send with the same JSON body
	Claims      tenant.Claims
	RequestID   string
	AppSync     bool // answer 200 whatever the errors, as AppSync does
}

// GraphQLHTTP answers a POST: status and JSON body. The body of a request that cannot be read is {"errors": […]} like any other.
func (g *Gateway) GraphQLHTTP(ctx context.Context, post Post) (status int, body []byte) {
	var response *Response
	if request, err := decode(post); err != nil {
		e := newError(err.Type, err.Message)
		e.status = err.Status()
		response = failed(e)
	} else {
		response = g.Execute(ctx, request, post.Claims, post.RequestID)
	}
	if status = response.Status(); post.AppSync {
		status = http.StatusOK
	}
	return status, response.append(nil)
}

func decode(post Post) (request Request, refused *fault.Error) {
	if err := checkContentType(post.ContentType); err != nil {
		return request, err
	}
	if len(post.Body) > MaxBody {
		return request, fault.Invalid("The request is larger than %d bytes.", MaxBody).WithStatus(http.StatusRequestEntityTooLarge)
	}
	return ParseRequest(post.Body)
}

// ParseRequest reads {"query": …, "operationName": …, "variables": …}, the body of a POST and the data of a WebSocket's start message.
// Members with other names are left alone.
func ParseRequest(body []byte) (request Request, refused *fault.Error) {
	var doc tape.Doc
	if err := doc.Parse(body); err != nil {
		return request, fault.Invalid("The request body is not valid JSON: %v.", err)
	}
	if doc.Kind(0) != tape.Object {
		return request, fault.Invalid("The request body must be a JSON object.")
	}
	root := value{&doc, 0}
	query := root.member("query")
	if query.null() || doc.Kind(query.at) != tape.String {
		return request, fault.Invalid(`The request body needs a "query", which is a string.`)
	}
	request.Query = doc.Text(query.at)
	if name := root.member("operationName"); !name.null() {
		if doc.Kind(name.at) != tape.String {
			return request, fault.Invalid(`"operationName" must be a string.`)
		}
		request.OperationName = doc.Text(name.at)
	}
	if vars := root.member("variables"); !vars.null() {
		if doc.Kind(vars.at) != tape.Object {
			return request, fault.Invalid(`"variables" must be a JSON object.`)
		}
		request.Variables = json.RawMessage(doc.Raw(vars.at))
	}
	return request, nil
}

func checkContentType(header string) *fault.Error {
	typ, params, err := mime.ParseMediaType(header)
	charset := params["charset"]
	if err == nil && (typ == "application/json" || typ == "application/graphql") && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return fault.Invalid("The Content-Type must be application/json.").WithStatus(http.StatusUnsupportedMediaType)
}
