package guardrail_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	agents "github.com/agentplatform/agentplatform/functions/agent"
	functions "github.com/agentplatform/agentplatform/functions/guardrail"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

var rule = args{"stages": []string{"input", "output"}, "action": "mask", "builtIn": []string{"EMAIL"}}

func create(t *testing.T, p *handlertest.Platform, claims tenant.Claims, input args) (guardrail.Guardrail, *fault.Error) {
	return handlertest.Call[guardrail.Guardrail](t, p, "create-guardrail", functions.CreateGuardrail, claims, args{"input": input})
}

func update(t *testing.T, p *handlertest.Platform, claims tenant.Claims, id string, input args) (guardrail.Guardrail, *fault.Error) {
	return handlertest.Call[guardrail.Guardrail](t, p, "update-guardrail", functions.UpdateGuardrail, claims, args{"id": id, "input": input})
}

func get(t *testing.T, p *handlertest.Platform, claims tenant.Claims, id string) (guardrail.Guardrail, *fault.Error) {
	return handlertest.Call[guardrail.Guardrail](t, p, "get-guardrail", functions.GetGuardrail, claims, args{"id": id})
}

func remove(t *testing.T, p *handlertest.Platform, claims tenant.Claims, id string) (guardrail.Guardrail, *fault.Error) {
	return handlertest.Call[guardrail.Guardrail](t, p, "delete-guardrail", functions.DeleteGuardrail, claims, args{"id": id})
}

func TestAGuardrailsLife(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner, member := handlertest.Claims(w, tenant.Owner), handlertest.Claims(w, tenant.Member)
	_, refused := create(t, p, member, args{"name": "x", "kind": "RULES", "rules": []args{rule}})
	require.Equal(t, fault.Forbidden, refused.Type)
	_, refused = create(t, p, owner, args{"name": "x", "kind": "RULES"})
	require.Equal(t, fault.ValidationError, refused.Type)

	made, err := create(t, p, owner, args{"name": "Personal data", "kind": "RULES", "rules": []args{rule,
		{"stages": []string{"output"}, "action": "block", "topic": args{"name": "pay", "phrases": []string{"salary"}}},
		{"stages": []string{"tool_output"}, "action": "mask", "pattern": args{"name": "number", "pattern": `\bEMP-\d{4}\b`}}}})
	require.Nil(t, err)
	require.Len(t, made.Rules, 3)
	read, err := get(t, p, member, made.ID)
	require.Nil(t, err)
	require.Equal(t, asJSON(t, made), asJSON(t, read))
	require.Contains(t, asJSON(t, read), `"bedrock":null`)

	changed, err := update(t, p, owner, made.ID, args{"kind": "BEDROCK", "rules": []args{}, "bedrock": args{"identifier": "ab12cd34", "version": "3"}, "blockedInputMessage": "Not here.", "description": "d"})
	require.Nil(t, err)
	require.Equal(t, &guardrail.Managed{Identifier: "ab12cd34", Version: "3", Stages: guardrail.Stages}, changed.Bedrock)
	read, err = get(t, p, member, made.ID)
	require.Nil(t, err)
	require.Equal(t, asJSON(t, changed), asJSON(t, read))
	changed, err = update(t, p, owner, made.ID, args{"blockedInputMessage": nil, "name": "Managed"})
	require.Nil(t, err)
	require.Equal(t, []any{"Managed", (*string)(nil), "d"}, []any{changed.Name, changed.BlockedInputMessage, *changed.Description})
	for _, input := range []args{{"name": nil}, {"kind": nil}, {"kind": "RULES"}, {"bedrock": nil}, {"rules": []args{{"stages": []string{"input"}, "action": "mask"}}}} {
		_, err = update(t, p, owner, made.ID, input)
		require.Equal(t, fault.ValidationError, err.Type, "%v", input)
	}

	_, err = remove(t, p, member, made.ID)
	require.Equal(t, fault.Forbidden, err.Type)
	gone, err := remove(t, p, owner, made.ID)
	require.Nil(t, err)
	require.Equal(t, asJSON(t, changed), asJSON(t, gone))
	_, err = get(t, p, member, made.ID)
	require.Equal(t, fault.Missing("guardrail"), err)
}

func TestAGuardrailInUseStays(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	g, err := create(t, p, owner, args{"name": "Personal data", "kind": "RULES", "rules": []args{rule}})
	require.Nil(t, err)
	set := func(field, id any) *fault.Error {
		_, err := handlertest.Call[agent.Agent](t, p, "update-agent", agents.UpdateAgent, owner, args{"id": w.AgentID, "input": args{field.(string): id}})
		return err
	}
	for _, id := range []string{"x", ident.New(), ""} {
		require.Equal(t, fault.Missing("guardrail"), set("guardrailId", id))
	}
	require.Nil(t, set("guardrailId", g.ID))
	require.Nil(t, set("description", "an update that says nothing of it"))
	a, err := handlertest.Call[agent.Agent](t, p, "get-agent", agents.GetAgent, owner, args{"id": w.AgentID})
	require.Nil(t, err)
	require.Equal(t, g.ID, *a.GuardrailID)
	_, err = remove(t, p, owner, g.ID)
	require.Equal(t, fault.Invalid("the guardrail is used by agent Ada; give it another one first"), err)

	_, dbErr := p.DB.Superuser(t).Exec(t.Context(), `update agent_templates set guardrail_id = $1`, g.ID)
	require.NoError(t, dbErr)
	require.Nil(t, set("guardrailId", nil))
	_, err = remove(t, p, owner, g.ID)
	require.Equal(t, fault.Invalid("the guardrail is used by template Default; give it another one first"), err)
	_, dbErr = p.DB.Superuser(t).Exec(t.Context(), `update agent_templates set guardrail_id = null`)
	require.NoError(t, dbErr)

	other, err := handlertest.Call[agent.Agent](t, p, "create-agent", agents.CreateAgent, owner, args{"input": args{"name": "Eve", "guardrailId": g.ID}})
	require.Nil(t, err)
	require.Equal(t, g.ID, *other.GuardrailID)
	_, err = remove(t, p, owner, g.ID)
	require.Contains(t, err.Message, "agent Eve")
	_, err = handlertest.Call[agent.Agent](t, p, "delete-agent", agents.DeleteAgent, owner, args{"id": other.ID})
	require.Nil(t, err)
	_, err = remove(t, p, owner, g.ID)
	require.Nil(t, err, "an archived agent uses nothing")
}

func TestGuardrailsOfAnotherTenantDoNotExist(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := p.DB.World(t, "acme"), p.DB.World(t, "globex")
	g, err := create(t, p, handlertest.Claims(acme, tenant.Owner), args{"name": "x", "kind": "RULES", "rules": []args{rule}})
	require.Nil(t, err)
	bob, missing := handlertest.Claims(globex, tenant.Owner), fault.Missing("guardrail")
	_, err = get(t, p, bob, g.ID)
	require.Equal(t, missing, err)
	_, err = update(t, p, bob, g.ID, args{})
	require.Equal(t, missing, err)
	_, err = remove(t, p, bob, g.ID)
	require.Equal(t, missing, err)
	_, err = handlertest.Call[agent.Agent](t, p, "update-agent", agents.UpdateAgent, bob, args{"id": globex.AgentID, "input": args{"guardrailId": g.ID}})
	require.Equal(t, missing, err)
	list, err := handlertest.Call[page.Page[guardrail.Guardrail]](t, p, "list-guardrails", functions.ListGuardrails, bob, args{})
	require.Nil(t, err)
	require.Empty(t, list.Items)
}

func TestListGuardrailsPages(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	for i := range 5 {
		_, err := create(t, p, owner, args{"name": fmt.Sprintf("G %d", 4-i), "kind": "RULES", "rules": []args{rule}})
		require.Nil(t, err)
	}
	var names []string
	var token *string
	for pages := 1; ; pages++ {
		got, err := handlertest.Call[page.Page[guardrail.Guardrail]](t, p, "list-guardrails", functions.ListGuardrails, handlertest.Claims(w, tenant.Member), args{"limit": 2, "nextToken": token})
		require.Nil(t, err)
		for _, g := range got.Items {
			names = append(names, g.Name)
		}
		if token = got.NextToken; token == nil {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, []string{"G 0", "G 1", "G 2", "G 3", "G 4"}, names)
}

func asJSON(t *testing.T, v any) string {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}
