// Package invoke is how the platform's functions reach one another: Invoker starts one, Caller waits for its answer. pkg/cloud/awslambda does it in the
// cloud, pkg/local on one machine.
package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Invoker hands a payload to a function, by its manifest name. A nil error means that the platform has the payload; it may still be lost
// or arrive twice, so what must happen is also found by a sweep, and what must happen once is guarded by the database.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload any) error
}

// Caller asks a function, by its manifest name, and waits for its answer. An error says nothing about what the function has done before it: nobody asks
// a second time by himself.
type Caller interface {
	Call(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// Function is one function that a Caller may ask.
type Function func(ctx context.Context, payload []byte) ([]byte, error)

// Ask asks a function of handler.Call and reads its answer. A *fault.Error that is no InternalError is the function's own, which has then done nothing;
// of any other error nobody knows what the function has done before it.
func Ask[A any](ctx context.Context, ask Function, payload any) (answer A, err error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return answer, err
	}
	raw, err := ask(ctx, body)
	if err != nil {
		return answer, err
	}
	var in struct {
		Data      json.RawMessage `json:"data"`
		ErrorType fault.Type      `json:"errorType"`
		Message   string          `json:"message"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return answer, fmt.Errorf("the function's answer: %w", err)
	}
	if in.ErrorType != "" {
		return answer, fault.New(in.ErrorType, "%s", in.Message)
	}
	if len(in.Data) == 0 {
		return answer, errors.New("the function's answer has no data and no error")
	}
	return answer, json.Unmarshal(in.Data, &answer)
}
