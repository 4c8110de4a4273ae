package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// The resources of tasks, besides functions' own ARNs.
const (
	invoke        = "arn:aws:states:::lambda:invoke"
	invokeForTask = invoke + ".waitForTaskToken"
)

func waitsForToken(resource string) bool { return resource == invokeForTask }

// dialect is what tasks may call here: functions.
func (e *Engine) dialect() asl.Dialect {
	return asl.Dialect{Resource: func(resource string, s *asl.State) error {
		if resource == invoke || resource == invokeForTask {
			parameters, _ := s.Parameters().(map[string]any)
			_, is := parameters["FunctionName"]
			_, made := parameters["FunctionName.$"]
			if !is && !made {
				return fmt.Errorf("%s needs Parameters with a FunctionName", resource)
			}
			return nil
		}
		if _, ok := e.function(resource); !ok || !strings.HasPrefix(resource, "arn:") {
			return fmt.Errorf("a task's resource is a function's ARN, %s or %s", invoke, invokeForTask)
		}
		return nil
	}}
}

// function is the name of a function by its ARN or full name, with or without a version; as Functions calls it.
func (e *Engine) function(name string) (string, bool) {
	if strings.HasPrefix(name, "arn:") {
		parts := strings.SplitN(name, ":", 7)
		if len(parts) < 7 || parts[2] != "lambda" || parts[5] != "function" {
			return "", false
		}
		name = parts[6]
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimPrefix(name, e.config.Prefix)
	return name, name != ""
}

// plan is the call of a task with that input.
func (e *Engine) plan(resource string, input any) (*call, *asl.Failure) {
	c := &call{token: waitsForToken(resource), wrapped: resource == invoke}
	name, payload := resource, input
	if c.token || c.wrapped {
		parameters, _ := input.(map[string]any)
		name, _ = parameters["FunctionName"].(string)
		if payload = parameters["Payload"]; payload == nil {
			payload = map[string]any{}
		}
	}
	known := false
	if c.function, known = e.function(name); !known {
		return nil, &asl.Failure{Error: "Lambda.ResourceNotFoundException", Cause: "Function not found: " + name}
	}
	v, f := made(payload)
	c.payload = json.RawMessage(v.text)
	return c, f
}

// ending is how a call ends.
type ending int

const (
	answered  ending = iota // with a result or failure
	handedOut               // the answer comes by the token
	givenUp                 // the engine stops
)

// do makes a call.
func (e *Engine) do(ctx context.Context, c *call, deadline, now time.Time) (event, ending) {
	within := ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, max(0, deadline.Sub(now)))
		defer cancel()
	}
	answer, err := e.invoke(within, c)
	function := messages.InvokeResponse_Error{}
	switch {
	case err != nil && ctx.Err() != nil: // also what a function says that was told to stop
		return event{}, givenUp
	case err != nil && within.Err() != nil:
		return event{failure: &asl.Failure{Error: asl.ErrorTimeout}}, answered
	case errors.As(err, &function):
		cause, _ := json.Marshal(struct { // as Lambda words it
			Message string `json:"errorMessage"`
			Type    string `json:"errorType"`
		}{function.Message, function.Type})
		return event{failure: &asl.Failure{Error: function.Type, Cause: string(cause)}}, answered
	case err != nil:
		return event{failure: &asl.Failure{Error: "Lambda.Unknown", Cause: err.Error()}}, answered
	case c.token:
		return event{}, handedOut
	case len(answer) > workflow.MaxData:
		return event{failure: tooLarge()}, answered
	}
	v, err := textOf(string(answer))
	if err != nil {
		return event{failure: &asl.Failure{Error: asl.ErrorRuntime, Cause: "the function's answer is not JSON"}}, answered
	}
	if c.wrapped {
		v.data = map[string]any{"ExecutedVersion": "$LATEST", "Payload": v.data, "StatusCode": json.Number("200")}
	}
	return event{result: &v}, answered
}

func (e *Engine) invoke(ctx context.Context, c *call) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	if e.config.Functions == nil {
		return nil, errors.New("there are no functions")
	}
	return e.config.Functions(ctx, c.function, c.payload)
}

func panicked(p any) error { return fmt.Errorf("panic: %v", p) }
