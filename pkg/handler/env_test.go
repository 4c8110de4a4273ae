package handler_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Whoever needs webhooks' secrets has no other ones of the store that they are in, and whoever is called from the internet takes none away.
func TestSecretsOfWebhooks(t *testing.T) {
	store, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	ports := &handler.Ports{IntegrationSecrets: func() secret.Store { return store }}
	tenant := ident.New()
	hook, err := secret.Of(tenant, "webhooks", ident.New())
	require.NoError(t, err)
	client, err := secret.Of(tenant, "integrations", ident.New())
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), client, "of a client"))
	whole := handler.NewEnv(manifest.Row{Name: "f", Needs: []string{"secret:webhooks"}}, ports)
	keeper := handler.NewEnv(manifest.Row{Name: "g", Needs: []string{"secret:webhooks:keep"}}, ports)
	for _, s := range []secret.Store{whole.WebhookSecrets(), keeper.WebhookSecretsKeeper()} {
		_, err = s.Get(t.Context(), client)
		require.ErrorIs(t, err, secret.ErrDenied)
		require.NoError(t, s.Put(t.Context(), hook, "of a webhook"))
	}
	require.ErrorIs(t, keeper.WebhookSecretsKeeper().Delete(t.Context(), hook), secret.ErrDenied)
	require.NoError(t, whole.WebhookSecrets().Delete(t.Context(), hook))
	require.Panics(t, func() { keeper.WebhookSecrets() })
	require.Panics(t, func() { keeper.IntegrationSecretsReader() })
}

func TestWhoSendsAndWhoRegisters(t *testing.T) {
	ports := &handler.Ports{Push: func() *push.Pusher { return push.New(nil) }}
	sender := handler.NewEnv(manifest.Row{Name: "f", Needs: []string{"push:send"}}, ports)
	registrar := handler.NewEnv(manifest.Row{Name: "g", Needs: []string{"push:devices"}}, ports)
	require.NotNil(t, sender.Push())
	require.NotNil(t, registrar.PushDevices())
	require.Panics(t, func() { sender.PushDevices() })
	require.Panics(t, func() { registrar.Push() })
}
