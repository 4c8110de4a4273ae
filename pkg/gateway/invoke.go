package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// The payload of a call is a handler.Event, or a list of them; the answer is a handler.Answer, or a list. Both are written and read
// as text here: an event's source is the parent's own bytes.

func (x *execution) appendEvent(dst []byte, f *field, s *slot, parent value) []byte {
	dst = append(append(dst, f.fn.head...), s.args...)
	if parent.doc != nil {
		dst = append(append(dst, `,"source":`...), parent.doc.Raw(parent.at)...)
	}
	return append(dst, x.end()...)
}

// invoke asks the field's function about one parent.
func (x *execution) invoke(f *field, s *slot, parent value) answer {
	if f.fn.direct != nil {
		answers, err := x.ask(f, s, []value{parent})
		if err != nil {
			return answer{problem: x.hide(f.fn, err)}
		}
		return x.take(f.fn, answers[0])
	}
	doc, err := x.run(f.fn, x.appendEvent(nil, f, s, parent))
	if err != nil {
		return answer{problem: x.hide(f.fn, err)}
	}
	return x.read(f.fn, doc, 0)
}

// invokeBatch asks the field's function about all parents in one call.
func (x *execution) invokeBatch(f *field, s *slot, parents []value) {
	if f.fn.direct != nil {
		x.tokens <- struct{}{}
		answers, err := x.ask(f, s, parents)
		<-x.tokens
		if err != nil {
			s.problem = x.hide(f.fn, err)
			return
		}
		for i, p := range parents {
			*s.of(p) = x.take(f.fn, answers[i])
		}
		return
	}
	size := 2
	for _, p := range parents {
		size += len(f.fn.head) + len(s.args) + len(`,"source":`) + len(p.doc.Raw(p.at)) + len(x.end()) + 1
	}
	payload := append(make([]byte, 0, size), '[')
	for i, p := range parents {
		if i > 0 {
			payload = append(payload, ',')
		}
		payload = x.appendEvent(payload, f, s, p)
	}
	x.tokens <- struct{}{}
	doc, err := x.run(f.fn, append(payload, ']'))
	<-x.tokens
	if err == nil && doc.Kind(0) != tape.Array {
		err = errors.New("the answer to a batch is not a list")
	}
	if err != nil {
		s.problem = x.hide(f.fn, err)
		return
	}
	at, end := uint32(1), doc.End(0)
	for _, p := range parents {
		if at >= end {
			s.problem = x.hide(f.fn, fmt.Errorf("the answer to a batch of %d is shorter", len(parents)))
			return
		}
		*s.of(p) = x.read(f.fn, doc, at)
		at = doc.End(at)
	}
	if at != end {
		s.problem = x.hide(f.fn, fmt.Errorf("the answer to a batch of %d is longer", len(parents)))
	}
}

// run calls a function and reads its answer as JSON.
func (x *execution) run(fn *function, payload []byte) (doc *tape.Doc, err error) {
	err = x.guard(fn, func(ctx context.Context) error {
		raw, err := fn.handler.Invoke(ctx, payload)
		if err == nil {
			doc, err = x.parse(raw)
		}
		return err
	})
	return doc, err
}

// read takes the answer at a node apart.
func (x *execution) read(fn *function, doc *tape.Doc, at uint32) answer {
	v := value{doc, at}
	if doc.Kind(at) != tape.Object {
		return answer{problem: x.hide(fn, errors.New("the answer is not an object"))}
	}
	typ := v.member("errorType")
	if typ.null() {
		return answer{value: v.member("data")}
	}
	message := v.member("message")
	if doc.Kind(typ.at) != tape.String || message.null() || doc.Kind(message.at) != tape.String {
		return answer{problem: x.hide(fn, errors.New("errorType and message are not strings"))}
	}
	return x.problem(fn, fault.Type(doc.Text(typ.at)), doc.Text(message.at))
}

func known(t fault.Type) bool {
	return t == fault.InternalError || t.Status() != fault.InternalError.Status()
}

// hide is what a caller learns of an error that is not theirs; the log has the rest.
func (x *execution) hide(fn *function, err error) *problem {
	x.config.Log.Error("graphql: function failed", "field", fn.field, "function", fn.name, "request_id", x.requestID, "error", err)
	return &problem{typ: fault.InternalError, message: internal(x.requestID)}
}

func internal(requestID string) string { return "internal error (request " + requestID + ")" }

// docs keeps the memory of parsed answers from one request to the next.
var docs = sync.Pool{New: func() any { return new(tape.Doc) }}

// release gives the parsed answers back; nothing refers to them once the response is written.
func (x *execution) release() {
	const most = 1 << 16 // nodes; a larger answer is left to the collector
	for _, d := range x.docs {
		if d.Src = nil; cap(d.Nodes) <= most {
			docs.Put(d)
		}
	}
	x.docs = nil
}
