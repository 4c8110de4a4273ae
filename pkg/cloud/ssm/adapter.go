package ssm

import (
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// ToolSecrets is the adapter for the need secret:tools.
func ToolSecrets(a *cloud.Account, p *handler.Ports) {
	p.ToolSecrets = store(a, "TOOL", a.ToolSecretsPrefix, a.ToolSecretsKeyID)
}

// IntegrationSecrets is the adapter for the needs secret:integrations and secret:webhooks, and for those that allow a part of one.
func IntegrationSecrets(a *cloud.Account, p *handler.Ports) {
	p.IntegrationSecrets = store(a, "INTEGRATION", a.IntegrationPrefix, a.IntegrationKeyID)
}

// ConnectionSecrets is the adapter for the need secret:connections.
func ConnectionSecrets(a *cloud.Account, p *handler.Ports) {
	p.ConnectionSecrets = store(a, "CONNECTION", a.ConnectionPrefix, a.ConnectionKeyID)
}

// store opens the store of one category, whose settings begin with its name.
func store(a *cloud.Account, category, prefix, keyID string) func() secret.Store {
	return sync.OnceValue(func() secret.Store {
		return Store{Client: ssm.NewFromConfig(a.AWS()), KeyID: cloud.Required(category+"_SECRETS_KEY_ID", keyID),
			Prefix: cloud.Required(category+"_SECRETS_PREFIX", prefix)}
	})
}
