package realtime

import (
	"context"
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Verifier verifies a token and gives its claims. A fault.Error says what is wrong with the token; any other error is internal.
type Verifier interface {
	Verify(ctx context.Context, authorization string) (tenant.Claims, error)
}

// Executor prepares subscriptions. FromGateway makes one of the gateway; tests have one of their own.
type Executor interface {
	// Subscribe reads and validates a request (the JSON text of {query, variables, operationName}), checks that the caller may have what
	// it asks for, and gives either a subscription or problems.
	Subscribe(ctx context.Context, request []byte, claims tenant.Claims, requestID string) (*Subscription, []Problem)
}

// Subscription is a subscription that may start.
type Subscription struct {
	Field  string         // the field of Subscription, for example onThreadEvent
	Filter map[string]any // top-level members of an event that must be equal; tenantId and the subject's id at least
	Render func(ctx context.Context, event json.RawMessage) json.RawMessage
}

// Problem is an error as a client reads it.
type Problem struct {
	ErrorType string `json:"errorType"`
	Message   string `json:"message"`
	ErrorCode int    `json:"errorCode,omitempty"` // of connection_error only: an HTTP status
}

// feed says which events a subscription field receives, and by which member of them they are found.
type feed struct {
	topic   publish.Topic
	subject string
}

// feeds is @aws_subscribe of the SDL; a test compares.
var feeds = map[string]feed{
	"onThreadEvent":   {publish.ThreadEvents, "threadId"},
	"onAgentActivity": {publish.AgentActivities, "agentId"},
}

// FromGateway makes an Executor of the gateway that also answers the queries.
func FromGateway(g *gateway.Gateway) Executor { return executor{g} }

type executor struct{ gateway *gateway.Gateway }

func (e executor) Subscribe(ctx context.Context, request []byte, claims tenant.Claims, requestID string) (*Subscription, []Problem) {
	parsed, refused := gateway.ParseRequest(request)
	if refused != nil {
		return nil, []Problem{{ErrorType: string(refused.Type), Message: refused.Message}}
	}
	s, response := e.gateway.Subscribe(ctx, parsed, claims, requestID)
	if s == nil {
		var list []Problem
		for _, problem := range response.Errors {
			list = append(list, Problem{ErrorType: string(problem.ErrorType), Message: problem.Message})
		}
		return nil, list
	}
	return &Subscription{Field: s.Field, Filter: s.Filter, Render: s.Render}, nil
}
