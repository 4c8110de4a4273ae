package bedrock

import (
	"log/slog"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// Model is the adapter for the need model.
func Model(a *cloud.Account, p *handler.Ports) {
	p.Model = sync.OnceValue(func() model.Model {
		return model.Traced(model.NewRetry(open(a), model.RetryConfig{Attempts: a.ModelAttempts, Log: slog.Default()}), trace.Bedrock)
	})
}

// Guardrail is the adapter for the need guardrail.
func Guardrail(a *cloud.Account, p *handler.Ports) {
	p.Guardrail = sync.OnceValue(func() guardrail.Guard { return NewGuard(Guard{Client: open(a), Log: slog.Default()}) })
}

func open(a *cloud.Account) *Client {
	return cloud.Must(New(Config{Region: a.Region, Endpoint: a.BedrockEndpoint, Credentials: a.AWS().Credentials, Connections: a.ModelConns}))
}
