package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// inProcess is a function of this process: asked without the envelope of a Lambda payload around its events and answers. The operation is
// the same; writing and reading the envelope would be the larger part of a list's cost.
type inProcess interface {
	Resolve(ctx context.Context, events []handler.Event) []handler.Answer
}

// ask asks the field's function about all parents.
func (x *execution) ask(f *field, s *slot, parents []value) ([]handler.Answer, error) {
	events := make([]handler.Event, len(parents))
	for i, p := range parents {
		events[i] = handler.Event{Field: f.fn.field, Arguments: s.args, Claims: x.claims, RequestID: x.requestID}
		if p.doc != nil {
			events[i].Source = p.doc.Raw(p.at)
		}
	}
	var answers []handler.Answer
	err := x.guard(f.fn, func(ctx context.Context) error {
		answers = f.fn.direct.Resolve(ctx, events)
		return nil
	})
	if err == nil && len(answers) != len(parents) {
		err = fmt.Errorf("%d answers to %d events", len(answers), len(parents))
	}
	return answers, err
}

// guard calls a function within its time, and turns its panic into an error.
func (x *execution) guard(fn *function, call func(ctx context.Context) error) (err error) {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	ctx := x.ctx
	if fn.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, fn.timeout)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return call(ctx)
}

// take is read for an answer without its envelope.
func (x *execution) take(fn *function, a handler.Answer) answer {
	if a.ErrorType != "" {
		return x.problem(fn, a.ErrorType, a.Message)
	}
	if len(a.Data) == 0 {
		return answer{}
	}
	doc, err := x.parse(a.Data)
	if err != nil {
		return answer{problem: x.hide(fn, err)}
	}
	return answer{value: value{doc, 0}}
}

// parse reads JSON into a document that lives as long as the request.
func (x *execution) parse(raw []byte) (*tape.Doc, error) {
	doc := docs.Get().(*tape.Doc)
	x.mu.Lock()
	x.docs = append(x.docs, doc)
	x.mu.Unlock()
	return doc, doc.Parse(raw)
}

// problem is a function's refusal, if its type is one of the API's.
func (x *execution) problem(fn *function, typ fault.Type, message string) answer {
	if !known(typ) {
		return answer{problem: x.hide(fn, errors.New("unknown error type "+string(typ)+": "+message))}
	}
	return answer{problem: &problem{typ: typ, message: message}}
}
