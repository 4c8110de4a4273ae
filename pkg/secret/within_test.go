package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

func TestAPartOfAStore(t *testing.T) {
	all, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	tenant := ident.New()
	id := func(words ...string) secret.ID {
		id, err := secret.Of(tenant, words...)
		require.NoError(t, err)
		return id
	}
	hooks := secret.Within(all, "webhooks")
	mine, others := id("webhooks", "a"), []secret.ID{id("integrations", "a"), id("integrations", "webhooks"), id("webhooks-too", "a"), id("integrations", "webhooks", "a"), {}}
	require.NoError(t, hooks.Put(t.Context(), mine, "s"))
	for _, other := range others {
		if other != (secret.ID{}) {
			require.NoError(t, all.Put(t.Context(), other, "not yours"))
		}
		for _, s := range []secret.Store{hooks, secret.Lasting(hooks)} {
			value, err := s.Get(t.Context(), other)
			require.ErrorIs(t, err, secret.ErrDenied)
			require.Empty(t, value)
			require.ErrorIs(t, s.Put(t.Context(), other, "mine"), secret.ErrDenied)
			require.ErrorIs(t, s.Delete(t.Context(), other), secret.ErrDenied)
		}
		if other != (secret.ID{}) {
			value, err := all.Get(t.Context(), other)
			require.NoError(t, err)
			require.Equal(t, "not yours", value)
		}
	}
	kept := secret.Lasting(hooks)
	require.ErrorIs(t, kept.Delete(t.Context(), mine), secret.ErrDenied)
	require.NoError(t, kept.Put(t.Context(), mine, "another"))
	value, err := kept.Get(t.Context(), mine)
	require.NoError(t, err)
	require.Equal(t, "another", value)
	require.NoError(t, hooks.Delete(t.Context(), mine))
	_, err = kept.Get(t.Context(), mine)
	require.ErrorIs(t, err, secret.ErrMissing)
}
