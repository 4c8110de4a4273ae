package ssm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Each category of secrets has settings of its own, and a function without them does not start.
func TestAdapters(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for category, open := range map[string]func(*handler.Ports) secret.Store{
		"TOOL":        func(p *handler.Ports) secret.Store { return p.ToolSecrets() },
		"INTEGRATION": func(p *handler.Ports) secret.Store { return p.IntegrationSecrets() },
		"CONNECTION":  func(p *handler.Ports) secret.Store { return p.ConnectionSecrets() },
	} {
		ports := func() *handler.Ports {
			p, err := cloud.Ports(t.Context(), cloud.Environment, ssm.ToolSecrets, ssm.IntegrationSecrets, ssm.ConnectionSecrets)
			require.NoError(t, err)
			return p
		}
		require.PanicsWithValue(t, category+"_SECRETS_KEY_ID is not set", func() { open(ports()) })
		t.Setenv(category+"_SECRETS_KEY_ID", "key-of-"+category)
		require.PanicsWithValue(t, category+"_SECRETS_PREFIX is not set", func() { open(ports()) })
		t.Setenv(category+"_SECRETS_PREFIX", "/stage/"+category)
		store, _ := open(ports()).(ssm.Store)
		require.Equal(t, []string{"key-of-" + category, "/stage/" + category}, []string{store.KeyID, store.Prefix})
	}
}
