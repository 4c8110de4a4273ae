package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Subscription is one that its field's function has allowed. It is safe for concurrent use.
type Subscription struct {
	Field     string         // "onThreadEvent"; Gateway.Publishes names the fields that an event is for
	Arguments map[string]any // as coerced
	Filter    map[string]any // what an event must hold at its top level to be for this subscriber; never empty

	filter    map[string][]byte // Filter, each value as tape writes it
	gateway   *Gateway
	document  *document
	plan      *plan
	vars      variables
	claims    tenant.Claims
	requestID string
}

// Subscribe checks a subscription for the caller: it must have one root field, whose function answers the filter of the events
// (field → value), or says why not. Exactly one of the results is nil.
func (g *Gateway) Subscribe(ctx context.Context, request Request, claims tenant.Claims, requestID string) (*Subscription, *Response) {
	x, problems := g.prepare(ctx, request, claims, requestID)
	if problems != nil {
		return nil, failed(problems...)
	}
	defer x.release()
	root := x.plan.root
	if x.plan.op.Operation != ast.Subscription {
		return nil, failed(newError(fault.ValidationError, "The operation is not a subscription."))
	}
	if len(root.fields) != 1 || root.fields[0].meta() {
		return nil, failed(x.document.invalid("A subscription must select exactly one field.", x.plan.op.Position))
	}
	f := root.fields[0]
	refuse := func(p *problem) (*Subscription, *Response) {
		x.path = []step{{key: f.key}}
		x.raise(p)
		x.locate(f)
		return nil, failed(x.pending)
	}
	if x.denied(f) {
		return refuse(x.unauthorized(f))
	}
	if f.fn == nil { // an unfiltered subscription would hear every tenant
		return refuse(x.hide(&function{field: f.parent.Name + "." + f.name}, errors.New("no function allows this subscription")))
	}
	x.call(f, []value{{}})
	s := &x.slots[f.slot]
	if p := firstProblem(s.problem, s.answer.problem); p != nil {
		return refuse(p)
	}
	out := &Subscription{
		Field: f.name, gateway: g, document: x.document, plan: x.plan, vars: x.vars, claims: claims, requestID: requestID,
	}
	if v := s.answer.value; !v.null() && json.Unmarshal(v.doc.Raw(v.at), &out.Filter) == nil { // else no filter, refused below
		out.filter = map[string][]byte{}
		for i := v.at + 1; i < v.doc.End(v.at); i = v.doc.End(i + 1) {
			out.filter[v.doc.Text(i)] = v.doc.Append(nil, i+1)
		}
	}
	if len(out.Filter) == 0 {
		return refuse(x.hide(f.fn, errors.New("the function answered no filter")))
	}
	if err := json.Unmarshal(s.args, &out.Arguments); err != nil {
		return refuse(x.hide(f.fn, err))
	}
	return out, nil
}

// Render is the response that the subscriber gets for an event: its selection, executed on the event as the value of the root
// field. Fields below that have a function are asked with the subscriber's claims.
func (s *Subscription) Render(ctx context.Context, event json.RawMessage) json.RawMessage {
	x := s.gateway.execution(ctx, s.document, s.plan, s.vars, s.claims, s.requestID)
	defer x.release()
	f := s.plan.root.fields[0]
	doc := new(tape.Doc)
	if err := doc.Parse(event); err != nil {
		return failed(newError(fault.InternalError, x.hide(f.fn, err).message)).append(nil)
	}
	x.prepareSlot(f)
	x.slots[f.slot].answer = answer{value: value{doc, 0}}
	if f.walk {
		x.resolveBelow(f, []value{{doc, 0}})
	}
	x.buf = append(x.buf, '{')
	if x.member(0, f, value{}) == thrown {
		return x.thrown().append(nil)
	}
	x.buf = append(x.buf, '}')
	return x.response().append(nil)
}

// Wants reports whether the event passes the filter: each of its fields is at the event's top level, with the same value.
func (s *Subscription) Wants(event json.RawMessage) bool {
	var doc tape.Doc
	if doc.Parse(event) != nil {
		return false
	}
	for name, raw := range s.filter {
		at, ok := doc.Get(0, name)
		if !ok || !bytes.Equal(doc.Append(nil, at), raw) {
			return false
		}
	}
	return true
}

func firstProblem(problems ...*problem) *problem {
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}
