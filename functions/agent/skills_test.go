package agent_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// A template's skill packs are those of the agents that have none of their own: with them the agents' change, and each change is recorded.
func TestATemplatesSkillsAreItsAgents(t *testing.T) {
	w := newTemplates(t)
	template, err := w.create(args{"name": "Support", "modelId": "m", "skillPackIds": []string{"a", "b"}})
	require.Nil(t, err)
	member := func(input args) string {
		input["name"], input["templateId"] = "Eve", template.ID
		a, err := handlertest.Call[agent.Agent](t, w.p, "create-agent", functions.CreateAgent, w.owner, args{"input": input})
		require.Nil(t, err)
		return a.ID
	}
	first, second := member(args{}), member(args{})
	member(args{"skillPackIds": []string{"a"}})
	_, err = handlertest.Call[agent.Agent](t, w.p, "delete-agent", functions.DeleteAgent, w.owner, args{"id": member(args{})})
	require.Nil(t, err)

	for _, step := range []struct {
		packs          any
		added, removed []any
	}{
		{[]string{"b", "a", "a"}, nil, nil},
		{[]string{"b", "c"}, []any{"c"}, []any{"a"}},
		{[]string{}, []any{}, []any{"b", "c"}},
		{nil, nil, nil},
		{[]string{"a"}, []any{"a"}, []any{}},
	} {
		before := len(w.p.Recorded(t))
		_, err := w.update(template.ID, args{"skillPackIds": step.packs})
		require.Nil(t, err)
		recorded := w.p.Recorded(t)[before:]
		if step.added == nil {
			require.Empty(t, recorded, "%v", step.packs)
			continue
		}
		require.Len(t, recorded, 2, "%v", step.packs)
		for i, id := range []string{first, second} {
			require.Equal(t, audit.AgentSkillsChanged, recorded[i].Type)
			require.Equal(t, []string{w.TenantID, w.UserID, "agent", id, id}, []string{recorded[i].TenantID, recorded[i].Actor, recorded[i].ResourceType, recorded[i].ResourceID, recorded[i].AgentID})
			require.Equal(t, args{"agentId": id, "addedSkills": step.added, "removedSkills": step.removed}, recorded[i].Payload)
		}
	}
	before := len(w.p.Recorded(t))
	_, err = w.update(template.ID, args{"name": "Help", "modelId": "n"})
	require.Nil(t, err)
	require.Len(t, w.p.Recorded(t), before)

	// What cannot be recorded is not done.
	w.p.BreakOutbox(t)
	_, err = w.update(template.ID, args{"skillPackIds": []string{"z"}})
	require.Equal(t, fault.InternalError, err.Type)
	got, err := w.get(w.owner, template.ID)
	require.Nil(t, err)
	require.Equal(t, []string{"a"}, *got.SkillPackIDs)
}

// An agent begins to take its template's skill packs while these are changed. Whoever is second waits, and its event begins with what the first has made.
func TestAnAgentComesWhileItsTemplateChanges(t *testing.T) {
	packs := func(value *[]string) agent.SettingFields {
		return agent.SettingFields{SkillPackIDs: text.Patch[[]string]{Set: true, Value: value}}
	}
	comes := func(w templates, tx pgx.Tx) ([]audit.Event, error) {
		_, events, err := agent.Update(t.Context(), tx, w.AgentID, agent.Fields{SettingFields: packs(nil)})
		return events, err
	}
	changes := func(w templates, tx pgx.Tx) ([]audit.Event, error) {
		_, events, err := agent.UpdateTemplate(t.Context(), tx, w.TemplateID, agent.TemplateFields{SettingFields: packs(&[]string{"new"})})
		return events, err
	}
	type act func(w templates, tx pgx.Tx) ([]audit.Event, error)
	for name, c := range map[string]struct {
		first, second act
		want          [][2][]string // what each event adds and removes
	}{
		"the agent is first":    {comes, changes, [][2][]string{{{"old"}, {"own"}}, {{"new"}, {"old"}}}},
		"the template is first": {changes, comes, [][2][]string{{{"new"}, {"own"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTemplates(t)
			_, failed := w.update(w.TemplateID, args{"skillPackIds": []string{"old"}})
			require.Nil(t, failed)
			_, failed = w.agent(w.AgentID, args{"skillPackIds": []string{"own"}})
			require.Nil(t, failed)
			super := w.p.DB.Superuser(t)
			var second errgroup.Group
			var all, later []audit.Event
			require.NoError(t, w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
				if all, err = c.first(w, tx); err != nil {
					return err
				}
				second.Go(func() error {
					return w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
						later, err = c.second(w, tx)
						return err
					})
				})
				require.Eventually(t, func() bool {
					var waits bool
					err := super.QueryRow(t.Context(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())`).Scan(&waits)
					return err == nil && waits
				}, time.Minute, time.Millisecond)
				return nil
			}))
			require.NoError(t, second.Wait())
			var got [][2][]string
			for _, e := range append(all, later...) {
				got = append(got, [2][]string{e.Payload["addedSkills"].([]string), e.Payload["removedSkills"].([]string)})
			}
			require.Equal(t, c.want, got)
		})
	}
}
