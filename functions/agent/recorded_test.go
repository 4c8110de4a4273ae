package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestCreateAgentIsRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	create := func() agent.Agent {
		a, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "Eve", "clientToken": "t1"}})
		require.Nil(t, err)
		return a
	}
	a := create()
	require.Equal(t, a, create())

	recorded := p.Recorded(t)
	require.Len(t, recorded, 1, "the repeated call is not another act")
	e := recorded[0]
	require.Equal(t, audit.AgentCreated, e.Type)
	require.Equal(t, args{"agentId": a.ID, "name": "Eve", "templateId": w.TemplateID}, e.Payload)
	require.Equal(t, []string{w.TenantID, w.UserID, "user", "graphql", "agent", a.ID, a.ID, "test"},
		[]string{e.TenantID, e.Actor, string(e.ActorType), string(e.Source), e.ResourceType, e.ResourceID, e.AgentID, e.RequestID})
	require.Empty(t, e.RedactedFields)
	require.Equal(t, []string{"drain-outbox"}, p.Invoked(), "woken once")
}

func TestSkillsChangedIsRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	_, dbErr := p.DB.Superuser(t).Exec(t.Context(), `update agent_templates set skill_pack_ids = '{c,d}'`)
	require.NoError(t, dbErr)
	for _, step := range []struct {
		input          args
		added, removed []any
	}{
		{args{"name": "Bob"}, nil, nil},
		{args{"skillPackIds": []string{"d", "c"}}, nil, nil}, // what the template gave it
		{args{"skillPackIds": []string{"b", "a", "c", "a"}}, []any{"a", "b"}, []any{"d"}},
		{args{"skillPackIds": []string{"a", "b", "c"}}, nil, nil},
		{args{"skillPackIds": []string{}}, []any{}, []any{"a", "b", "c"}},
		{args{"skillPackIds": nil}, []any{"c", "d"}, []any{}},
		{args{"templateId": w.TemplateID}, nil, nil},
	} {
		before := len(p.Recorded(t))
		_, err := handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": w.AgentID, "input": step.input})
		require.Nil(t, err)
		recorded := p.Recorded(t)[before:]
		if step.added == nil {
			require.Empty(t, recorded, "%v", step.input)
			continue
		}
		require.Len(t, recorded, 1, "%v", step.input)
		require.Equal(t, audit.AgentSkillsChanged, recorded[0].Type)
		require.Equal(t, args{"agentId": w.AgentID, "addedSkills": step.added, "removedSkills": step.removed}, recorded[0].Payload)
	}
}

func TestAnAgentIsDeletedOnce(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	remove := func(claims tenant.Claims, id string, reason any) (agent.Agent, *fault.Error) {
		return handlertest.Call[agent.Agent](t, p, "delete-agent", functions.DeleteAgent, claims, args{"id": id, "reason": reason})
	}
	_, err := remove(handlertest.Claims(w, tenant.Member), w.AgentID, nil)
	require.Equal(t, fault.Forbidden, err.Type)
	for _, id := range []string{ident.New(), "no id", p.DB.World(t, "globex").AgentID} {
		_, err = remove(owner, id, nil)
		require.Equal(t, fault.Missing("agent"), err)
	}
	_, err = remove(owner, w.AgentID, string(make([]byte, 1025)))
	require.Equal(t, fault.ValidationError, err.Type)
	require.Empty(t, p.Recorded(t))

	first, err := remove(owner, w.AgentID, "no longer needed")
	require.Nil(t, err)
	require.Equal(t, agent.Archived, first.Status)
	again, err := remove(owner, w.AgentID, "for another reason")
	require.Nil(t, err)
	require.Equal(t, first, again)
	recorded := p.Recorded(t)
	require.Len(t, recorded, 1)
	require.Equal(t, audit.AgentDeleted, recorded[0].Type)
	require.Equal(t, args{"agentId": w.AgentID, "reason": "no longer needed"}, recorded[0].Payload)

	// Archiving by updateAgent is the same act.
	a, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "Eve"}})
	require.Nil(t, err)
	_, err = handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": a.ID, "input": args{"status": "archived", "skillPackIds": []string{"a"}}})
	require.Nil(t, err)
	recorded = p.Recorded(t)[2:]
	require.Len(t, recorded, 2)
	require.Equal(t, audit.AgentSkillsChanged, recorded[0].Type)
	require.Equal(t, audit.AgentDeleted, recorded[1].Type)
	require.Equal(t, args{"agentId": a.ID}, recorded[1].Payload)
}

func TestWhatIsNotRecordedIsNotDone(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	p.BreakOutbox(t)
	_, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "Eve", "clientToken": "t1"}})
	require.Equal(t, fault.InternalError, err.Type)
	_, err = handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": w.AgentID, "input": args{"name": "Eve", "status": "archived"}})
	require.Equal(t, fault.InternalError, err.Type)
	_, err = handlertest.Call[agent.Agent](t, p, "delete-agent", functions.DeleteAgent, owner, args{"id": w.AgentID})
	require.Equal(t, fault.InternalError, err.Type)

	var agents, tokens int
	var name, status string
	row := p.DB.Superuser(t).QueryRow(t.Context(), `select count(*), min(name), min(status), (select count(*) from client_tokens) from agents`)
	require.NoError(t, row.Scan(&agents, &name, &status, &tokens))
	require.Equal(t, []any{1, "Ada", "active", 0}, []any{agents, name, status, tokens})
	require.Empty(t, p.Invoked(), "nobody is woken for nothing")
}
