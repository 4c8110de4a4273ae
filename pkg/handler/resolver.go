package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Event is what a GraphQL gateway sends a resolver function; schema/graphql/resolver.js builds it in AppSync.
type Event struct {
	Field     string          `json:"field"`            // "Mutation.sendMessage"
	Arguments json.RawMessage `json:"arguments"`        // variables and defaults applied
	Source    json.RawMessage `json:"source,omitempty"` // the parent object, as its own resolver answered it
	Claims    tenant.Claims   `json:"claims"`           // of the verified token
	RequestID string          `json:"requestId"`
}

func (e Event) caller() tenant.Caller {
	c := e.Claims.Caller()
	c.RequestID = e.RequestID
	return c
}

// Answer is what a resolver function returns: data, or an error the caller may read.
type Answer struct {
	Data      json.RawMessage `json:"data,omitempty"`
	ErrorType fault.Type      `json:"errorType,omitempty"`
	Message   string          `json:"message,omitempty"`
}

// Resolver adapts an operation to a function: decode the arguments into A, run, encode the result.
func Resolver[A, R any](run func(ctx context.Context, args A) (R, error)) lambda.Handler {
	return resolver(func(ctx context.Context, events []Event) []Answer {
		answers := make([]Answer, len(events))
		for i, e := range events {
			answers[i] = answer(e, func() (any, error) {
				args, err := decode[A](e.Arguments)
				if err != nil {
					return nil, err
				}
				return run(tenant.With(ctx, e.caller()), args)
			})
		}
		return answers
	})
}

// Batch adapts a nested field's operation: one call answers the field for a list of parent objects, so that a list costs one query.
//
// The events of a batch are one field of one request: same caller, same arguments. run answers in the order of sources; a missing
// result is the zero R.
func Batch[S, A, R any](run func(ctx context.Context, sources []S, args A) ([]R, error)) lambda.Handler {
	return resolver(func(ctx context.Context, events []Event) []Answer {
		answers := make([]Answer, len(events))
		for _, alike := range sameArguments(events) {
			for i, a := range batch(ctx, events, alike, run) {
				answers[alike[i]] = a
			}
		}
		return answers
	})
}

// sameArguments are the events' places, those with the same arguments together: AppSync may put a field that a query asks for twice, under two
// aliases, into one batch.
func sameArguments(events []Event) [][]int {
	var groups [][]int
	of := map[string]int{}
	for i, e := range events {
		key := string(e.Arguments)
		g, ok := of[key]
		if !ok {
			g = len(groups)
			of[key], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// batch answers the events at these places, which have the same arguments.
func batch[S, A, R any](ctx context.Context, events []Event, places []int, run func(context.Context, []S, A) ([]R, error)) []Answer {
	answers := make([]Answer, len(places))
	results, err := results(ctx, events, places, run)
	encoded := map[any]Answer{} // parents that share a result, as the threads of one agent do, share its encoding
	pointers := reflect.TypeFor[R]().Kind() == reflect.Pointer
	for i, place := range places {
		if err == nil && pointers {
			if a, ok := encoded[results[i]]; ok {
				answers[i] = a
				continue
			}
		}
		answers[i] = answer(events[place], func() (any, error) {
			if err != nil {
				return nil, err
			}
			return results[i], nil
		})
		if err == nil && pointers {
			encoded[results[i]] = answers[i]
		}
	}
	return answers
}

func results[S, A, R any](ctx context.Context, events []Event, places []int, run func(context.Context, []S, A) ([]R, error)) ([]R, error) {
	first := events[places[0]]
	args, err := decode[A](first.Arguments)
	if err != nil {
		return nil, err
	}
	sources := make([]S, len(places))
	for i, place := range places {
		if err := json.Unmarshal(events[place].Source, &sources[i]); err != nil {
			return nil, err
		}
	}
	return run(tenant.With(ctx, first.caller()), sources, args)
}

// resolver takes one event or a list of them (BatchInvoke) and answers in kind.
type resolver func(ctx context.Context, events []Event) []Answer

func (r resolver) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	payload = bytes.TrimSpace(payload)
	if len(payload) > 0 && payload[0] == '[' {
		var events []Event
		if err := json.Unmarshal(payload, &events); err != nil {
			return nil, err
		}
		return json.Marshal(r(ctx, events))
	}
	var event [1]Event
	if err := json.Unmarshal(payload, &event[0]); err != nil {
		return nil, err
	}
	return json.Marshal(r(ctx, event[:])[0])
}

// Resolve is Invoke for a gateway in the same process: events and answers as they are, without a payload's text around them.
func (r resolver) Resolve(ctx context.Context, events []Event) []Answer { return r(ctx, events) }

// answer runs one operation and renders its result; a cause that the caller may not read goes to the log with the request id.
func answer(e Event, run func() (any, error)) Answer {
	result, err := run()
	if err == nil {
		var data []byte
		if data, err = json.Marshal(result); err == nil {
			return Answer{Data: data}
		}
	}
	f := fault.From(err)
	if f.Type == fault.InternalError {
		failed("resolver failed", err, "field", e.Field, "request_id", e.RequestID)
		return Answer{ErrorType: f.Type, Message: f.Message + " (request " + e.RequestID + ")"}
	}
	denied(context.Background(), f, slog.String("field", e.Field), slog.String("request_id", e.RequestID))
	return Answer{ErrorType: f.Type, Message: f.Message}
}

// failed tells the log of a cause that the caller may not read. A caller who went away before the answer is nobody's fault.
func failed(what string, err error, about ...any) {
	level := slog.LevelError
	if errors.Is(err, context.Canceled) {
		level, what = slog.LevelInfo, what+": the caller went away"
	}
	slog.Log(context.Background(), level, what, append(about, "error", err)...)
}

func decode[A any](raw json.RawMessage) (A, error) {
	var args A
	if len(raw) == 0 {
		return args, nil
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return args, fault.Invalid("arguments: %v", err)
	}
	return args, nil
}

// Join puts what a batch read by id into the order of ids; what is not there is nil, and the same id is the same pointer.
func Join[V any](ids []string, byID map[string]V) []*V {
	pointers := make(map[string]*V, len(byID))
	for id, v := range byID {
		pointers[id] = &v
	}
	out := make([]*V, len(ids))
	for i, id := range ids {
		out[i] = pointers[id]
	}
	return out
}
