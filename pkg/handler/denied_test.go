package handler_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// counted adds figures up.
type counted struct {
	mu sync.Mutex
	of map[string]float64
}

func (c *counted) Take(e metric.Event) []slog.Attr {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range e.Sets {
		for _, f := range s.Figures {
			c.of[f.Name] += f.Value
		}
	}
	return nil
}

// What a limit refuses is counted once, whatever the function is called by; other errors are not.
func TestRefusalsAreCounted(t *testing.T) {
	figures := &counted{of: map[string]float64{}}
	metric.SetDefault(figures)
	t.Cleanup(func() { metric.SetDefault(nil) })
	for _, typ := range []fault.Type{fault.RateLimitExceeded, fault.BudgetExceeded, fault.Forbidden, fault.InternalError} {
		err := fault.New(typ, "no")
		for _, h := range []lambda.Handler{
			handler.Resolver(func(context.Context, struct{}) (string, error) { return "", err }),
			handler.REST(func(context.Context, *handler.Request) (handler.Reply, error) { return handler.Reply{}, err }),
			handler.State(func(context.Context, struct{}) (string, error) { return "", err }),
			handler.Call(func(context.Context, struct{}) (string, error) { return "", err }), // who asks it answers its caller
		} {
			_, _ = h.Invoke(t.Context(), []byte(`{}`))
		}
	}
	require.Equal(t, map[string]float64{"denials.rate_limit": 3, "denials.budget": 3}, figures.of)
}
