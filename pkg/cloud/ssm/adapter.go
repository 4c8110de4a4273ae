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
	p.ToolSecrets = sync.OnceValue(func() secret.Store {
		return Store{Client: ssm.NewFromConfig(a.AWS()), KeyID: cloud.Required("TOOL_SECRETS_KEY_ID", a.ToolSecretsKeyID),
			Prefix: cloud.Required("TOOL_SECRETS_PREFIX", a.ToolSecretsPrefix)}
	})
}
