package local

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// The model that a person has given a seeded template is not taken away at the next start.
func TestASeededTemplateFollowsTheConfigurationUntilItIsChanged(t *testing.T) {
	db := pgtest.New(t)
	o := outbox.New(outbox.Config{Key: []byte("an emission key for tests, 32 characters"), Wake: func(context.Context) error { return nil }})
	start := func(modelID string) (models [2]string) {
		_, err := seed(t.Context(), db.App, o, modelID)
		require.NoError(t, err)
		for i, tenant := range seeds {
			template, err := agent.GetTemplate(t.Context(), db.App.In(tenant.id), tenant.template)
			require.NoError(t, err)
			models[i] = *template.ModelID
		}
		return models
	}
	require.Equal(t, [2]string{"one", "one"}, start("one"))
	require.Equal(t, [2]string{"two", "two"}, start("two"))
	require.NoError(t, db.App.InTenant(t.Context(), seeds[0].id, func(tx pgx.Tx) error {
		own := agent.SettingFields{ModelID: text.Patch[string]{Set: true, Value: new("own")}}
		_, _, err := agent.UpdateTemplate(t.Context(), tx, seeds[0].template, agent.TemplateFields{SettingFields: own})
		return err
	}))
	require.Equal(t, [2]string{"own", "three"}, start("three"))
}
