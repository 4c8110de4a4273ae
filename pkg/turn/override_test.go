package turn_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	patch "github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// give changes the agent as updateAgent does.
func (w *world) give(f agent.Fields) {
	w.t.Helper()
	w.tx(func(tx pgx.Tx) error {
		_, _, err := agent.Update(w.t.Context(), tx, w.AgentID, f)
		return err
	})
}

func is[T any](v T) patch.Patch[T] { return patch.Patch[T]{Set: true, Value: &v} }

// A turn goes by the template's fields, each of them until the agent has its own, and again when it has none any more.
func TestATurnGoesByTheAgentsOwnFields(t *testing.T) {
	var asked model.Request
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked = r
		return echo(ctx, r, s)
	}))
	w.tx(func(tx pgx.Tx) error {
		_, _, err := agent.UpdateTemplate(t.Context(), tx, w.TemplateID, agent.TemplateFields{SystemPrompt: is("The template's."), SettingFields: agent.SettingFields{ModelID: is("vendor.large-1")}})
		return err
	})
	for _, step := range []struct {
		give          agent.Fields
		model, prompt string
		tools         int
	}{
		{agent.Fields{SystemPrompt: patch.Patch[string]{Set: true}}, "vendor.large-1", "The template's.", 1},
		{agent.Fields{SettingFields: agent.SettingFields{ModelID: is("vendor.small-1")}}, "vendor.small-1", "The template's.", 1},
		{agent.Fields{SystemPrompt: is("Its own.")}, "vendor.small-1", "Its own.", 1},
		{agent.Fields{SettingFields: agent.SettingFields{Tools: is([]string{})}}, "vendor.small-1", "Its own.", 0},
		{agent.Fields{SettingFields: agent.SettingFields{ModelID: patch.Patch[string]{Set: true}, Tools: patch.Patch[[]string]{Set: true}}}, "vendor.large-1", "Its own.", 1},
	} {
		w.give(step.give)
		asked = model.Request{}
		id := w.ask(w.open().ID, "Hello").TurnID
		w.run(id)
		require.Equal(t, step.model, asked.ModelID)
		require.Equal(t, "You are Ada.\n\n"+step.prompt, asked.System)
		require.Len(t, asked.Tools, step.tools)
		require.Equal(t, step.model, *w.turn(id).Model)
	}
}

// The agent's own runtime counts, whatever its template's is.
func TestATurnRunsWhereTheAgentSays(t *testing.T) {
	w := newWorld(t, script(echo))
	w.tx(func(tx pgx.Tx) error {
		_, _, err := agent.UpdateTemplate(t.Context(), tx, w.TemplateID, agent.TemplateFields{SettingFields: agent.SettingFields{Runtime: is("nowhere")}})
		return err
	})
	run := func() turn.Status {
		id := w.ask(w.open().ID, "Hello").TurnID
		w.run(id)
		return w.turn(id).Status
	}
	require.Equal(t, turn.Failed, run())
	w.give(agent.Fields{SettingFields: agent.SettingFields{Runtime: is(turn.DefaultRuntime)}})
	require.Equal(t, turn.Succeeded, run())
	w.give(agent.Fields{SettingFields: agent.SettingFields{Runtime: is("elsewhere")}})
	require.Equal(t, turn.Failed, run())
}

// However a turn begins, what is reserved for it is what its own model may cost.
func TestWhatIsReservedIsForTheAgentsOwnModel(t *testing.T) {
	const haiku = "anthropic.claude-haiku-4-5-20251001-v1:0" // eleven times as dear as the template's, which costs 0.1 and 0.5
	w := newWorld(t, script(echo))
	super := w.db.Superuser(t)
	exec := func(sql string, args ...any) {
		_, err := super.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	exec(`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'tenant', $1, 1000000000)`, w.TenantID)
	begin := map[string]func() (turnID string, err error){
		"asked": func() (string, error) {
			asked, err := w.send(w.open().ID, "Hello", turn.Enqueue)
			return asked.TurnID, err
		},
		"opened": func() (turnID string, err error) {
			err = w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
				a, err := agent.Get(t.Context(), tx, w.AgentID)
				if err == nil {
					turnID, err = turn.Open(t.Context(), tx, w.TenantID, a, &thread.Thread{Channel: thread.Auto}, turn.Words{Body: "Hello"}, nil)
				}
				return err
			})
			return turnID, err
		},
	}
	for name, begin := range begin {
		reserved := func() (micros int) {
			id, err := begin()
			require.NoError(t, err, name)
			require.NoError(t, super.QueryRow(t.Context(), `select reserved_micros from budget_reservations where turn_id = $1`, id).Scan(&micros))
			return micros
		}
		w.give(agent.Fields{SettingFields: agent.SettingFields{ModelID: patch.Patch[string]{Set: true}}})
		templates := reserved()
		require.Positive(t, templates)
		w.give(agent.Fields{SettingFields: agent.SettingFields{ModelID: is(haiku)}})
		require.Equal(t, 11*templates, reserved(), name)
		w.give(agent.Fields{SettingFields: agent.SettingFields{ModelID: is("vendor.new-1")}})
		_, err := begin()
		require.Equal(t, fault.New(fault.BudgetExceeded, "the price of the model vendor.new-1 is not known, so that no turn of it can be covered by a monthly budget"), fault.From(err), name)
		exec(`update agent_templates set model_id = 'vendor.new-2'`)
		w.give(agent.Fields{SettingFields: agent.SettingFields{ModelID: is(pgtest.ModelID)}})
		require.Equal(t, templates, reserved(), name)
		exec(`update agent_templates set model_id = $1`, pgtest.ModelID)
	}
}

// A summary is made by the agent's own model.
func TestASummaryIsMadeByTheAgentsOwnModel(t *testing.T) {
	w := newWorld(t, script(echo))
	th := w.long(60, 1000)
	w.give(agent.Fields{SettingFields: agent.SettingFields{ModelID: is("vendor.small-1")}})
	var asked []string
	require.NoError(t, w.summarizer(script(func(_ context.Context, r model.Request, _ model.Stream) (model.Response, error) {
		asked = append(asked, r.ModelID)
		return model.Response{Blocks: []model.Block{{Text: "They spoke."}}, StopReason: model.StopEndTurn}, nil
	})).Summarize(t.Context(), w.task(th)))
	require.NotEmpty(t, asked)
	for _, id := range asked {
		require.Equal(t, "vendor.small-1", id)
	}
}
