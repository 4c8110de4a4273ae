package webhook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// unsteady is a store that does nothing while it is broken.
type unsteady struct {
	secret.Store
	broken error
}

func (s *unsteady) Put(ctx context.Context, id secret.ID, value string) error {
	if s.broken != nil {
		return s.broken
	}
	return s.Store.Put(ctx, id, value)
}

func (s *unsteady) Delete(ctx context.Context, id secret.ID) error {
	if s.broken != nil {
		return s.broken
	}
	return s.Store.Delete(ctx, id)
}

// tracked makes a webhook of a task tracker, without a secret.
func (w *world) tracked() webhook.Webhook {
	w.t.Helper()
	return w.create(func(s *webhook.Settings) {
		s.TargetType, s.AgentID, s.Config = webhook.Task, nil, map[string]any{"provider": "asana"}
	})
}

// set gives the webhook a secret, or takes it away: nil.
func (w *world) set(secrets *webhook.Secrets, id string, value *string) (now webhook.Webhook, err error) {
	err = w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		if now, err = webhook.Get(w.t.Context(), w.db.App.In(w.TenantID), id); err != nil {
			return err
		}
		return secrets.Set(w.t.Context(), tx, &now, text.Patch[string]{Set: true, Value: value})
	})
	return now, err
}

func (w *world) store() *unsteady {
	store, err := secret.Dir(w.t.TempDir(), strings.Repeat("k", 32))
	require.NoError(w.t, err)
	return &unsteady{Store: store}
}

// A store that fails leaves the webhook as it is.
func TestTheStoreOfSecretsIsDown(t *testing.T) {
	w := newWorld(t)
	store, hook := w.store(), w.tracked()
	secrets := webhook.NewSecrets(w.db.App, store)
	store.broken = errors.New("the store is down")
	_, err := w.set(secrets, hook.ID, new("one"))
	require.ErrorIs(t, err, store.broken)
	require.ErrorIs(t, secrets.Shake(t.Context(), w.TenantID, hook.ID, "one"), store.broken)
	require.Equal(t, []any{false, 1}, []any{w.get(hook.ID).HasSecret, w.get(hook.ID).Version})

	store.broken = nil
	now, err := w.set(secrets, hook.ID, new("one"))
	require.NoError(t, err)
	require.Equal(t, []any{true, 2}, []any{now.HasSecret, now.Version})
	store.broken = errors.New("the store is down")
	_, err = w.set(secrets, hook.ID, nil)
	require.ErrorIs(t, err, store.broken)
	require.True(t, w.get(hook.ID).HasSecret, "and nothing unsigned is taken")
	got, err := secrets.Get(t.Context(), w.TenantID, hook.ID, 1)
	require.NoError(t, err)
	require.Equal(t, "one", got)
}

// A secret that is gone although its row says that there is one is no secret: nothing is verified by it, and nothing is taken.
func TestASecretThatIsGone(t *testing.T) {
	w := newWorld(t)
	store, hook := w.store(), w.tracked()
	secrets := webhook.NewSecrets(w.db.App, store)
	_, err := w.set(secrets, hook.ID, new("one"))
	require.NoError(t, err)
	require.NoError(t, secrets.Drop(t.Context(), w.TenantID, hook.ID))
	_, err = secrets.Get(t.Context(), w.TenantID, hook.ID, 1)
	require.ErrorIs(t, err, secret.ErrMissing)
	require.ErrorIs(t, secrets.Shake(t.Context(), w.TenantID, hook.ID, "another"), secret.ErrMissing)

	name, err := secret.Of(w.TenantID, "webhooks", hook.ID)
	require.NoError(t, err)
	for _, wrong := range []string{`{"version":1}`, `{"version":1,"value":""}`, `x`} {
		require.NoError(t, store.Put(t.Context(), name, wrong))
		_, err = secrets.Get(t.Context(), w.TenantID, hook.ID, 1)
		require.Equal(t, fault.InternalError, fault.From(err).Type, wrong)
	}
	_, err = w.set(secrets, hook.ID, new("two"))
	require.NoError(t, err, "it is given again")
	got, err := secrets.Get(t.Context(), w.TenantID, hook.ID, 2)
	require.NoError(t, err)
	require.Equal(t, "two", got)
}

// Another tenant's webhook has no secret here, and is none.
func TestAnotherTenantsSecret(t *testing.T) {
	w := newWorld(t)
	globex, store, hook := w.neighbour("globex"), w.store(), w.tracked()
	secrets := webhook.NewSecrets(w.db.App, store)
	_, err := w.set(secrets, hook.ID, new("one"))
	require.NoError(t, err)
	_, err = globex.set(secrets, hook.ID, new("two"))
	require.True(t, fault.IsMissing(err))
	require.True(t, fault.IsMissing(secrets.Shake(t.Context(), globex.TenantID, hook.ID, "two")))
	_, err = webhook.Secret(t.Context(), store, globex.TenantID, hook.ID, 1)
	require.ErrorIs(t, err, secret.ErrMissing)
}
