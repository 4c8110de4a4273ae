package handler

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
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
