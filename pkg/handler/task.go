package handler

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Task adapts a function that is invoked asynchronously with a payload P. Its error makes the platform try again.
func Task[P any](run func(ctx context.Context, payload P) error) lambda.Handler {
	return task(func(ctx context.Context, raw []byte) error {
		var payload P
		if err := json.Unmarshal(raw, &payload); err != nil {
			return err
		}
		return run(ctx, payload)
	})
}

// Schedule adapts a function that a rule calls on time; what the rule sends does not matter.
func Schedule(run func(ctx context.Context) error) lambda.Handler {
	return task(func(ctx context.Context, _ []byte) error { return run(ctx) })
}

// Trigger adapts a function that is called with an event and answers with one, for example the identity pool's triggers.
func Trigger[E, A any](run func(ctx context.Context, event E) (A, error)) lambda.Handler {
	return trigger(func(ctx context.Context, raw []byte) ([]byte, error) {
		var event E
		if err := json.Unmarshal(raw, &event); err != nil {
			return nil, err
		}
		answer, err := run(ctx, event)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	})
}

// Call adapts a function that another one asks and waits for (Env.Call): a payload P, an Answer with A or the error, which invoke.Ask reads. An error that is a
// fault says that nothing was done; every other one is an InternalError, whose text goes to the log only.
func Call[P, A any](run func(ctx context.Context, payload P) (A, error)) lambda.Handler {
	return trigger(func(ctx context.Context, raw []byte) ([]byte, error) {
		var answer Answer
		payload, err := decode[P](raw)
		if err == nil {
			var result A
			if result, err = run(ctx, payload); err == nil {
				answer.Data, err = json.Marshal(result)
			}
		}
		if f := fault.From(err); f != nil {
			if f.Type == fault.InternalError {
				failed("a call failed", err)
			}
			answer = Answer{ErrorType: f.Type, Message: f.Message}
		}
		return json.Marshal(answer)
	})
}

// State adapts a function that a state machine calls: the state's input I, its answer A. An error is the state's, by name, for the machine to
// catch or retry: a StateError as it is, a fault by its type, everything else as InternalError, whose text goes to the log only.
func State[I, A any](run func(ctx context.Context, input I) (A, error)) lambda.Handler {
	return trigger(func(ctx context.Context, raw []byte) ([]byte, error) {
		var input I
		if err := json.Unmarshal(raw, &input); err != nil {
			return nil, messages.InvokeResponse_Error{Type: string(fault.ValidationError), Message: "input: " + err.Error()}
		}
		answer, err := run(ctx, input)
		if err == nil {
			return json.Marshal(answer)
		}
		if e := (*StateError)(nil); errors.As(err, &e) {
			return nil, messages.InvokeResponse_Error{Type: e.Name, Message: e.Reason}
		}
		f := fault.From(err)
		if f.Type == fault.InternalError {
			failed("a state failed", err)
		}
		denied(ctx, f)
		return nil, messages.InvokeResponse_Error{Type: string(f.Type), Message: f.Message}
	})
}

// StateError is an error that a state machine knows by a name of its own.
type StateError struct {
	Name   string // what ErrorEquals is compared with: "TurnFailed"
	Reason string // for people to read
}

func (e *StateError) Error() string { return e.Name + ": " + e.Reason }

// HTTP adapts a function behind an HTTP API (payload format 2.0).
func HTTP(run func(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)) lambda.Handler {
	return Trigger(run)
}

type task func(ctx context.Context, payload []byte) error

func (t task) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return []byte("null"), t(ctx, payload)
}

type trigger func(ctx context.Context, payload []byte) ([]byte, error)

func (t trigger) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return t(ctx, payload) }
