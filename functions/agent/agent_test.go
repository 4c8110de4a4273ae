package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

func TestCreateAgent(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)

	a, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{
		"name": "Eve", "systemPrompt": "Be kind.", "skillPackIds": []string{"a", "b"}, "rateLimits": args{"turnsPerMinute": 3}}})
	require.Nil(t, err)
	require.True(t, ident.Valid(a.ID))
	require.Equal(t, agent.Created, a.Status)
	require.Equal(t, w.TemplateID, a.TemplateID)
	require.Equal(t, []string{"a", "b"}, *a.SkillPackIDs)
	require.Equal(t, 3, *a.RateLimits.TurnsPerMinute)
	got, err := handlertest.Call[agent.Agent](t, p, "get-agent", functions.GetAgent, owner, args{"id": a.ID})
	require.Nil(t, err)
	require.Equal(t, a, got)

	_, err = handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, handlertest.Claims(w, tenant.Member), args{"input": args{"name": "Eve"}})
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, tenant.Claims{"email": "nobody@nowhere.test"}, args{"input": args{"name": "Eve"}})
	require.Equal(t, fault.Forbidden, err.Type)

	for name, input := range map[string]args{
		"no name":            {},
		"blank name":         {"name": "  "},
		"long name":          {"name": strings.Repeat("x", 201)},
		"NUL":                {"name": "a\x00b"},
		"long prompt":        {"name": "x", "systemPrompt": strings.Repeat("x", 64<<10+1)},
		"no turns":           {"name": "x", "rateLimits": args{"turnsPerDay": 0}},
		"too many packs":     {"name": "x", "skillPackIds": make([]string, 51)},
		"empty pack":         {"name": "x", "skillPackIds": []string{""}},
		"empty client token": {"name": "x", "clientToken": ""},
	} {
		_, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": input})
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	for _, template := range []string{ident.New(), "not an id"} {
		_, err = handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": "x", "templateId": template}})
		require.Equal(t, fault.NotFound, err.Type)
	}
}

func TestClientTokenGivesTheFirstAnswer(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	create := func(name, token string) (agent.Agent, *fault.Error) {
		return handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": name, "clientToken": token}})
	}
	first, err := create("Eve", "t1")
	require.Nil(t, err)
	_, err = handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": first.ID, "input": args{"name": "Mallory"}})
	require.Nil(t, err)
	again, err := create("Eve", "t1")
	require.Nil(t, err)
	require.Equal(t, first, again)
	other, err := create("Eve", "t2")
	require.Nil(t, err)
	require.NotEqual(t, first.ID, other.ID)
	_, err = create("Trudy", "t1")
	require.Equal(t, fault.ValidationError, err.Type)
}

func TestUpdateAgent(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Admin)
	update := func(input args) (agent.Agent, *fault.Error) {
		return handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, owner, args{"id": w.AgentID, "input": input})
	}
	a, err := update(args{"systemPrompt": nil, "description": "New", "rateLimits": args{"turnsPerHour": 5}})
	require.Nil(t, err)
	require.Nil(t, a.SystemPrompt)
	require.Equal(t, "New", *a.Description)
	require.Equal(t, "Ada", a.Name)
	a, err = update(args{"rateLimits": nil, "status": "suspended"})
	require.Nil(t, err)
	require.Nil(t, a.RateLimits)
	require.Equal(t, agent.Suspended, a.Status)
	_, err = update(args{"status": "created"})
	require.Equal(t, fault.ValidationError, err.Type)
	require.Contains(t, err.Message, "allowed: [active archived]")
	_, err = update(args{"name": nil})
	require.Equal(t, fault.ValidationError, err.Type)
	_, err = update(args{"status": "archived"})
	require.Nil(t, err)
	_, err = update(args{"name": "Too late"})
	require.Equal(t, fault.ValidationError, err.Type)
	_, err = handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, handlertest.Claims(w, tenant.Member), args{"id": w.AgentID, "input": args{}})
	require.Equal(t, fault.Forbidden, err.Type)
}

func TestAgentsOfAnotherTenantDoNotExist(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := p.DB.World(t, "acme"), p.DB.World(t, "globex")
	bob := handlertest.Claims(globex, tenant.Owner)
	_, foreign := handlertest.Call[agent.Agent](t, p, "get-agent", functions.GetAgent, bob, args{"id": acme.AgentID})
	_, missing := handlertest.Call[agent.Agent](t, p, "get-agent", functions.GetAgent, bob, args{"id": ident.New()})
	require.Equal(t, fault.NotFound, foreign.Type)
	require.Equal(t, missing, foreign)
	_, err := handlertest.Call[agent.Agent](t, p, "update-agent", functions.UpdateAgent, bob, args{"id": acme.AgentID, "input": args{"name": "Mine"}})
	require.Equal(t, missing, err)
	_, err = handlertest.Call[any](t, p, "on-agent-activity", functions.OnAgentActivity, bob, args{"agentId": acme.AgentID})
	require.Equal(t, missing, err)
	filter, err := handlertest.Call[map[string]string](t, p, "on-agent-activity", functions.OnAgentActivity, bob, args{"agentId": globex.AgentID})
	require.Nil(t, err)
	require.Equal(t, map[string]string{"tenantId": globex.TenantID, "agentId": globex.AgentID}, filter)
	templates, err := handlertest.Call[[]*agent.Template](t, p, "agent-template", functions.AgentTemplate, bob, args{},
		agent.Agent{TemplateID: globex.TemplateID}, agent.Agent{TemplateID: acme.TemplateID})
	require.Nil(t, err)
	require.Equal(t, pgtest.ModelID, *templates[0].ModelID)
	require.Nil(t, templates[1])
}

func TestListAgentsPages(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	for i := range 6 {
		_, err := handlertest.Call[agent.Agent](t, p, "create-agent", functions.CreateAgent, owner, args{"input": args{"name": fmt.Sprintf("Bot %d", i/2)}}) // names in pairs
		require.Nil(t, err)
	}
	var names []string
	var token *string
	for pages := 1; ; pages++ {
		got, err := handlertest.Call[page.Page[agent.Agent]](t, p, "list-agents", functions.ListAgents, owner, args{"limit": 2, "nextToken": token, "filter": args{"status": "created"}})
		require.Nil(t, err)
		for _, a := range got.Items {
			names = append(names, a.Name)
		}
		if token = got.NextToken; token == nil {
			require.Equal(t, 3, pages)
			break
		}
		_, err = handlertest.Call[page.Page[agent.Agent]](t, p, "list-agents", functions.ListAgents, owner, args{"nextToken": token, "filter": args{"status": "active"}})
		require.Equal(t, fault.ValidationError, err.Type)
	}
	require.Equal(t, []string{"Bot 0", "Bot 0", "Bot 1", "Bot 1", "Bot 2", "Bot 2"}, names)
}
