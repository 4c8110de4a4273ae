package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/text"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var settings = guardrail.Settings{Name: "Personal data", Kind: guardrail.Rules, Rules: []guardrail.Rule{
	{Stages: guardrail.Stages, Action: guardrail.Mask, BuiltIn: []guardrail.BuiltIn{guardrail.EMail}}}}

func TestATurnTakesItsAgentsGuardrailOrElseItsTemplates(t *testing.T) {
	db := pgtest.New(t)
	w := db.World(t, "acme")
	exec := func(sql string, args ...any) {
		_, err := db.Superuser(t).Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	var own, shared guardrail.Guardrail
	require.NoError(t, db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		if own, err = store.Create(t.Context(), tx, w.TenantID, settings); err != nil {
			return err
		}
		shared, err = store.Create(t.Context(), tx, w.TenantID, settings)
		return err
	}))
	turn := ident.New()
	exec(`insert into thread_turns (tenant_id, id, agent_id, status) values ($1, $2, $3, 'failed')`, w.TenantID, turn, w.AgentID)
	load := func() (*guardrail.Guardrail, error) {
		var b pgx.Batch
		var l store.Loaded
		store.Queue(&b, turn, &l)
		require.NoError(t, db.App.Once(t.Context(), w.TenantID, &b))
		return l.Ready()
	}
	g, err := load()
	require.NoError(t, err)
	require.Nil(t, g)
	exec(`update agent_templates set guardrail_id = $1`, shared.ID)
	g, err = load()
	require.NoError(t, err)
	require.Equal(t, shared.ID, g.ID)
	exec(`update agents set guardrail_id = $1`, own.ID)
	g, err = load()
	require.NoError(t, err)
	require.Equal(t, own.ID, g.ID)
	d, err := guardrail.Checker{}.Check(t.Context(), *g, guardrail.Input, []string{"ada@example.com"})
	require.NoError(t, err)
	require.Equal(t, []string{"[EMAIL]"}, d.Texts)

	// What is named and cannot be used is never as good as none.
	exec(`update guardrails set rules = '[{"stages":["input"],"action":"mask","pattern":{"name":"x","pattern":"("}}]'`)
	_, err = load()
	require.ErrorContains(t, err, "cannot be read")
	exec(`update agents set guardrail_id = null`)
	exec(`update agent_templates set guardrail_id = 'none'`)
	_, err = load()
	require.EqualError(t, err, "The agent's guardrail none does not exist.")
}

func TestAGuardrailIsNotDeletedWhileAnAgentTakesIt(t *testing.T) {
	db := pgtest.New(t)
	w := db.World(t, "acme")
	var g guardrail.Guardrail
	require.NoError(t, db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		g, err = store.Create(t.Context(), tx, w.TenantID, settings)
		return err
	}))
	deleted := make(chan error, 1)
	require.NoError(t, db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, _, err := agent.Update(t.Context(), tx, w.AgentID, agent.Fields{SettingFields: agent.SettingFields{GuardrailID: text.Patch[string]{Set: true, Value: &g.ID}}})
		go func() {
			deleted <- db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
				_, err := store.Delete(t.Context(), tx, g.ID)
				return err
			})
		}()
		return err
	}))
	err := <-deleted
	require.Error(t, err)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
}
