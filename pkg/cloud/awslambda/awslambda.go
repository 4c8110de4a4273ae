// Package awslambda is AWS Lambda behind package invoke: Functions reaches functions; Invoke puts it behind the needs invoke:<function>, whether to start a
// function or to wait for it, Call behind fields.
package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
)

// Invoke is the adapter for the needs invoke:<function>.
func Invoke(a *cloud.Account, p *handler.Ports) {
	p.Invoke = sync.OnceValue(func() invoke.Invoker { return open(a) })
	Call(a, p)
}

// Call is the adapter for the need fields.
func Call(a *cloud.Account, p *handler.Ports) {
	p.Call = sync.OnceValue(func() invoke.Caller { return open(a) })
}

func open(a *cloud.Account) Functions {
	return Functions{Client: lambda.NewFromConfig(a.AWS()), Prefix: cloud.Required("FUNCTION_PREFIX", a.FunctionPrefix)}
}

// Functions are the platform's functions in AWS Lambda.
type Functions struct {
	Client *lambda.Client
	Prefix string // put before the manifest name: "agentplatform-prod-"
}

// Invoke queues the payload with Lambda (InvocationType Event).
func (f Functions) Invoke(ctx context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = f.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(f.Prefix + function), InvocationType: types.InvocationTypeEvent, Payload: body})
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	return nil
}

// Call runs the function (InvocationType RequestResponse). A function that fails is a *FunctionError. Only a call that Lambda has not begun is repeated:
// the function may change something. One that it never begins, being too busy, is a fault.RateLimitExceeded, as if the function had refused it.
func (f Functions) Call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	out, err := f.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(f.Prefix + function), Payload: payload}, notBegun)
	var throttled *types.TooManyRequestsException
	if errors.As(err, &throttled) {
		return nil, fmt.Errorf("call %s: %w: %w", function, fault.New(fault.RateLimitExceeded, "the platform is busy; try again later"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", function, err)
	}
	if out.FunctionError != nil {
		failed := &FunctionError{Function: function}
		if json.Unmarshal(out.Payload, failed) != nil { // Lambda writes it; a function's own text is not needed to say that it failed
			failed.Type = *out.FunctionError
		}
		return nil, failed
	}
	return out.Payload, nil
}

// notBegun repeats what Lambda has refused because it was too busy, while somebody waits.
func notBegun(o *lambda.Options) { o.Retryer = busy }

var busy = retry.NewStandard(func(s *retry.StandardOptions) {
	s.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
	s.MaxBackoff = time.Second
})

// FunctionError is a function that returned an error, crashed or took too long.
type FunctionError struct {
	Function string `json:"-"`
	Type     string `json:"errorType"`
	Message  string `json:"errorMessage"`
}

func (e *FunctionError) Error() string {
	return fmt.Sprintf("the function %s failed: %s: %s", e.Function, e.Type, e.Message)
}
