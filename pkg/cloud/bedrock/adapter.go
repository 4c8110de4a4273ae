package bedrock

import (
	"log/slog"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// Model is the adapter for the need model.
func Model(a *cloud.Account, p *handler.Ports) {
	p.Model = sync.OnceValue(func() model.Model {
		client := cloud.Must(New(Config{Region: a.Region, Endpoint: a.BedrockEndpoint, Credentials: a.AWS().Credentials, Connections: a.ModelConns}))
		return model.NewRetry(client, model.RetryConfig{Attempts: a.ModelAttempts, Log: slog.Default()})
	})
}
