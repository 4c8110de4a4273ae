package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Request is what a client asks.
type Request struct {
	Query         string
	OperationName string          // empty: the query's only operation
	Variables     json.RawMessage // a JSON object; nil or null: none
}

// Execute runs a query or a mutation for the caller whose verified token has these claims. It returns when every function it called
// has returned; a cancelled ctx is passed on to them and keeps further ones from being called.
func (g *Gateway) Execute(ctx context.Context, request Request, claims tenant.Claims, requestID string) *Response {
	x, problems := g.prepare(ctx, request, claims, requestID)
	if problems != nil {
		return failed(problems...)
	}
	defer x.release()
	switch x.plan.op.Operation {
	case ast.Subscription:
		return failed(newError(fault.ValidationError, "A subscription needs the WebSocket."))
	case ast.Mutation:
		return x.mutation()
	default:
		return x.query()
	}
}

// execution is the state of one request.
type execution struct {
	*Gateway
	ctx       context.Context
	document  *document
	plan      *plan
	vars      variables
	claims    tenant.Claims
	ending    sync.Once
	tail      []byte // see end
	requestID string

	slots  []slot        // by field.slot
	tokens chan struct{} // one for each function call that may run
	events atomic.Int64

	mu   sync.Mutex
	docs []*tape.Doc // to be given back

	writer
}

// slot is a field's arguments and its function's answers. One goroutine fills it; the writer reads it afterwards.
type slot struct {
	ready   bool
	args    []byte
	problem *problem          // of the arguments, or of the whole call
	parent  value             // the parent of answer
	answer  answer            // of the first parent
	others  map[value]*answer // of further parents
}

// value is a node of a document; its zero value is null.
type value struct {
	doc *tape.Doc
	at  uint32
}

func (v value) null() bool { return v.doc == nil || v.doc.Kind(v.at) == tape.Null }

func (v value) member(name string) value {
	if v.doc != nil {
		if at, ok := v.doc.Get(v.at, name); ok {
			return value{v.doc, at}
		}
	}
	return value{}
}

// answer is what a function said about one parent.
type answer struct {
	value   value
	problem *problem
}

// prepare does what comes before execution: parse, validate, choose the operation, coerce the variables, plan.
func (g *Gateway) prepare(ctx context.Context, request Request, claims tenant.Claims, requestID string) (*execution, []Error) {
	d, problems := g.document(request.Query)
	if problems != nil {
		return nil, problems
	}
	op, message := operation(d.ast, request.OperationName)
	if message != "" {
		return nil, []Error{newError(fault.ValidationError, message)}
	}
	var doc *tape.Doc
	if raw := request.Variables; len(raw) > 0 && string(raw) != "null" {
		doc = new(tape.Doc)
		if err := doc.Parse(raw); err != nil {
			return nil, []Error{newError(fault.ValidationError, "variables: "+err.Error())}
		}
		if doc.Kind(0) != tape.Object {
			return nil, []Error{newError(fault.ValidationError, "variables must be a JSON object")}
		}
	}
	vars, problems := g.schema.coerceVariables(d, op, doc, 0)
	if problems != nil {
		return nil, problems
	}
	plan, err := d.plan(g, op, vars)
	if err != nil {
		return nil, []Error{newError(fault.ValidationError, err.Error())}
	}
	return g.execution(ctx, d, plan, vars, claims, requestID), nil
}

func (g *Gateway) execution(ctx context.Context, d *document, p *plan, vars variables, claims tenant.Claims, requestID string) *execution {
	x := &execution{Gateway: g, ctx: ctx, document: d, plan: p, vars: vars, requestID: requestID, slots: make([]slot, p.slots)}
	x.buf = make([]byte, 0, min(64+int(p.size.Load())*9/8, g.config.MaxAnswer))
	x.tokens = make(chan struct{}, g.config.MaxParallel)
	if claims == nil {
		claims = tenant.Claims{}
	}
	x.claims = claims
	x.groups = claims["cognito:groups"]
	return x
}

// end is what every event's text ends with: claims and request id.
func (x *execution) end() []byte {
	x.ending.Do(func() {
		raw, err := json.Marshal(x.claims)
		if err != nil { // claims come from a JSON token
			raw = []byte("{}")
			x.config.Log.Error("graphql: claims cannot be encoded", "request_id", x.requestID, "error", err)
		}
		x.tail = append(append(x.tail, `,"claims":`...), raw...)
		x.tail = append(tape.AppendText(append(x.tail, `,"requestId":`...), x.requestID), '}')
	})
	return x.tail
}

func operation(doc *ast.QueryDocument, name string) (op *ast.OperationDefinition, message string) {
	for _, o := range doc.Operations {
		if name == "" && op != nil {
			return nil, "Must provide operation name if query contains multiple operations."
		}
		if name == "" || o.Name == name {
			op = o
		}
	}
	switch {
	case op != nil:
		return op, ""
	case name != "":
		return nil, fmt.Sprintf("Unknown operation named \"%s\".", short(name))
	default:
		return nil, "Must provide an operation."
	}
}

// query calls the functions of all root fields in parallel, then writes the answer.
func (x *execution) query() *Response {
	root := x.plan.root
	if root.walk {
		x.resolve(root, []value{{}})
	}
	x.buf = append(x.buf, '{')
	for i, f := range root.fields {
		if x.member(i, f, value{}) == thrown {
			return x.thrown()
		}
	}
	x.buf = append(x.buf, '}')
	return x.response()
}

// mutation finishes each root field before it begins the next; a field that must not be null and is ends it.
func (x *execution) mutation() *Response {
	x.buf = append(x.buf, '{')
	for i, f := range x.plan.root.fields {
		if f.fn != nil || f.walk {
			x.resolve(&object{def: x.plan.root.def, fields: []*field{f}, walk: true}, []value{{}})
		}
		if x.member(i, f, value{}) == thrown {
			return x.thrown()
		}
	}
	x.buf = append(x.buf, '}')
	return x.response()
}

func (x *execution) response() *Response {
	x.plan.size.Store(int64(len(x.buf)))
	return &Response{Data: x.buf, Errors: x.errors, answered: x.answered}
}

// thrown is the response when an error reached the root.
func (x *execution) thrown() *Response {
	if x.tooLarge {
		message := fmt.Sprintf("The answer is larger than %d bytes: ask for less at a time.", x.config.MaxAnswer)
		return failed(newError(fault.ValidationError, message))
	}
	return &Response{Data: json.RawMessage("null"), Errors: append(x.errors, x.pending)}
}
