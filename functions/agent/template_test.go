package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	guardrails "github.com/agentplatform/agentplatform/functions/guardrail"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// templates is a tenant whose templates a test makes and changes.
type templates struct {
	pgtest.World
	t     *testing.T
	p     *handlertest.Platform
	owner tenant.Claims
}

func newTemplates(t *testing.T) templates {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	return templates{w, t, p, handlertest.Claims(w, tenant.Admin)}
}

func (w templates) create(input args) (agent.Template, *fault.Error) {
	return handlertest.Call[agent.Template](w.t, w.p, "create-agent-template", functions.CreateAgentTemplate, w.owner, args{"input": input})
}

func (w templates) update(id string, input args) (agent.Template, *fault.Error) {
	return handlertest.Call[agent.Template](w.t, w.p, "update-agent-template", functions.UpdateAgentTemplate, w.owner, args{"id": id, "input": input})
}

func (w templates) get(claims tenant.Claims, id string) (agent.Template, *fault.Error) {
	return handlertest.Call[agent.Template](w.t, w.p, "get-agent-template", functions.GetAgentTemplate, claims, args{"id": id})
}

func (w templates) guardrail(claims tenant.Claims) string {
	w.t.Helper()
	g, err := handlertest.Call[guardrail.Guardrail](w.t, w.p, "create-guardrail", guardrails.CreateGuardrail, claims, args{"input": args{
		"name": "Mail", "kind": "RULES", "rules": []any{args{"stages": []any{"input"}, "action": "mask", "builtIn": []any{"EMAIL"}}}}})
	require.Nil(w.t, err)
	return g.ID
}

// fields are a value for each setting, as a caller gives it.
func (w templates) fields() args {
	return args{"modelId": "vendor.large-1", "runtime": "large_2", "systemPrompt": "Be kind.", "tools": []any{"read_thread", "docs__*"}, "toolApprovals": []any{"docs__*"},
		"guardrailId": w.guardrail(w.owner), "skillPackIds": []any{"a", "b"}, "knowledgeBaseId": "kb", "fetchHosts": []any{"example.com"},
		"evaluators": []any{args{"name": "short", "type": "length", "maxWords": 50.0}}}
}

// shown are the settings of a as JSON gives them.
func shown(t *testing.T, a any) args {
	t.Helper()
	all := members(t, a)
	for _, other := range []string{"id", "name", "description", "isDefault", "createdAt", "updatedAt", "status", "templateId", "rateLimits"} {
		delete(all, other)
	}
	return all
}

func TestATemplatesFields(t *testing.T) {
	w := newTemplates(t)
	plain, err := w.create(args{"name": "Plain", "modelId": pgtest.ModelID})
	require.Nil(t, err)
	nothing := args{"modelId": pgtest.ModelID, "runtime": "default", "systemPrompt": nil, "tools": []any{}, "toolApprovals": []any{}, "guardrailId": nil, "skillPackIds": nil,
		"knowledgeBaseId": nil, "fetchHosts": []any{}, "evaluators": nil}
	require.Equal(t, nothing, shown(t, plain))
	require.False(t, plain.IsDefault)

	fields := w.fields()
	input := args{"name": "Support", "description": "For customers."}
	for field, value := range fields {
		input[field] = value
	}
	full, err := w.create(input)
	require.Nil(t, err)
	require.True(t, ident.Valid(full.ID))
	require.Equal(t, []string{"Support", "For customers."}, []string{full.Name, *full.Description})
	require.Equal(t, fields, shown(t, full))
	got, err := w.get(handlertest.Claims(w.World, tenant.Member), full.ID)
	require.Nil(t, err)
	require.Equal(t, full, got)

	for field, value := range fields { // one by one: each changes what it names, and nothing else
		changed, err := w.update(plain.ID, args{field: value})
		require.Nil(t, err, field)
		nothing[field] = value
		require.Equal(t, nothing, shown(t, changed), field)
		got, err := w.get(w.owner, plain.ID)
		require.Nil(t, err)
		require.Equal(t, changed, got)
	}
	cleared, err := w.update(plain.ID, args{"runtime": nil, "systemPrompt": nil, "tools": nil, "toolApprovals": nil, "guardrailId": nil, "skillPackIds": nil, "knowledgeBaseId": nil,
		"fetchHosts": nil, "evaluators": nil, "description": nil, "name": "Plainer"})
	require.Nil(t, err)
	require.Equal(t, args{"modelId": "vendor.large-1", "runtime": "default", "systemPrompt": nil, "tools": []any{}, "toolApprovals": []any{}, "guardrailId": nil, "skillPackIds": nil,
		"knowledgeBaseId": nil, "fetchHosts": []any{}, "evaluators": nil}, shown(t, cleared))
	require.Equal(t, "Plainer", cleared.Name)
	require.True(t, cleared.UpdatedAt.After(cleared.CreatedAt.Time))

	first, err := w.update(w.TemplateID, args{"modelId": "vendor.large-1"})
	require.Nil(t, err)
	require.True(t, first.IsDefault, "the default one can be changed too")
	require.Equal(t, "vendor.large-1", *first.ModelID)
}

func TestWhatATemplateMayNotBe(t *testing.T) {
	w := newTemplates(t)
	for name, input := range map[string]args{
		"no name":            {"name": nil},
		"blank name":         {"name": " "},
		"long name":          {"name": strings.Repeat("x", 201)},
		"NUL":                {"description": "a\x00b"},
		"no model":           {"modelId": nil},
		"blank model":        {"modelId": ""},
		"long model":         {"modelId": strings.Repeat("x", 201)},
		"empty runtime":      {"runtime": ""},
		"runtime in words":   {"runtime": "Large one"},
		"long runtime":       {"runtime": strings.Repeat("x", 64)},
		"long prompt":        {"systemPrompt": strings.Repeat("x", 64<<10+1)},
		"too many packs":     {"skillPackIds": make([]string, 51)},
		"empty pack":         {"skillPackIds": []string{""}},
		"a tool's name":      {"tools": []string{"a b"}},
		"approvals":          {"toolApprovals": []string{"**"}},
		"a host":             {"fetchHosts": []string{"https://example.com"}},
		"no evaluator":       {"evaluators": []any{args{"type": "magic"}}},
		"an evaluator's own": {"evaluators": []any{args{"type": "json_schema", "schema": "{"}}},
	} {
		_, err := w.update(w.TemplateID, input)
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
		whole := args{"name": "x", "modelId": "m"}
		for field, value := range input {
			whole[field] = value
		}
		_, err = w.create(whole)
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	_, err := w.create(args{"name": "x"})
	require.Equal(t, fault.New(fault.ValidationError, "modelId must not be null"), err)
	_, err = w.create(args{"name": "x", "modelId": "m", "clientToken": ""})
	require.Equal(t, fault.ValidationError, err.Type)
	globex := handlertest.Claims(w.p.DB.World(t, "globex"), tenant.Owner)
	for _, id := range []string{ident.New(), "none", w.guardrail(globex)} {
		_, err = w.create(args{"name": "x", "modelId": "m", "guardrailId": id})
		require.Equal(t, fault.Missing("guardrail"), err)
		_, err = w.update(w.TemplateID, args{"guardrailId": id})
		require.Equal(t, fault.Missing("guardrail"), err)
	}
	var rows int
	require.NoError(t, w.p.DB.Superuser(t).QueryRow(t.Context(), `select count(*) from agent_templates where name = 'x' or updated_at <> created_at`).Scan(&rows))
	require.Zero(t, rows, "what is refused is not done")
}

func TestWhoMakesTemplates(t *testing.T) {
	w := newTemplates(t)
	mine, err := w.create(args{"name": "Mine", "modelId": "m"})
	require.Nil(t, err)
	member := w
	member.owner = handlertest.Claims(w.World, tenant.Member)
	_, err = member.create(args{"name": "x", "modelId": "m"})
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = member.update(mine.ID, args{"name": "x"})
	require.Equal(t, fault.Forbidden, err.Type)

	// Another tenant's does not exist.
	globex := w
	globex.World = w.p.DB.World(t, "globex")
	globex.owner = handlertest.Claims(globex.World, tenant.Owner)
	for _, id := range []string{mine.ID, ident.New(), "none"} {
		_, err = globex.get(globex.owner, id)
		require.Equal(t, fault.Missing("template"), err)
		for _, input := range []args{{"name": "x"}, {"skillPackIds": []string{"x"}}} {
			_, err = globex.update(id, input)
			require.Equal(t, fault.Missing("template"), err)
		}
		_, err = handlertest.Call[agent.Agent](t, w.p, "update-agent", functions.UpdateAgent, globex.owner, args{"id": globex.AgentID, "input": args{"templateId": id}})
		require.Equal(t, fault.Missing("template"), err)
	}
	list, err := handlertest.Call[page.Page[agent.Template]](t, w.p, "list-agent-templates", functions.ListAgentTemplates, globex.owner, args{})
	require.Nil(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, globex.TemplateID, list.Items[0].ID)
	_, err = handlertest.Call[page.Page[agent.Template]](t, w.p, "list-agent-templates", functions.ListAgentTemplates, tenant.Claims{"email": "nobody@nowhere.test"}, args{})
	require.Equal(t, fault.Forbidden, err.Type)
}

func TestATemplatesClientToken(t *testing.T) {
	w := newTemplates(t)
	first, err := w.create(args{"name": "Support", "modelId": "m", "clientToken": "t1"})
	require.Nil(t, err)
	again, err := w.create(args{"name": "Support", "modelId": "m", "clientToken": "t1"})
	require.Nil(t, err)
	require.Equal(t, first, again)
	_, err = w.create(args{"name": "Support", "modelId": "n", "clientToken": "t1"})
	require.Equal(t, fault.ValidationError, err.Type)
	other, err := w.create(args{"name": "Support", "modelId": "m", "clientToken": "t2"})
	require.Nil(t, err)
	require.NotEqual(t, first.ID, other.ID)
}

func TestListAgentTemplatesPages(t *testing.T) {
	w := newTemplates(t)
	for _, name := range []string{"b", "a", "B", "a", "É"} {
		_, err := w.create(args{"name": name, "modelId": "m"})
		require.Nil(t, err)
	}
	var names []string
	var token *string
	for pages := 1; ; pages++ {
		got, err := handlertest.Call[page.Page[agent.Template]](t, w.p, "list-agent-templates", functions.ListAgentTemplates, handlertest.Claims(w.World, tenant.Member), args{"limit": 2, "nextToken": token})
		require.Nil(t, err)
		for _, a := range got.Items {
			names = append(names, a.Name)
		}
		if token = got.NextToken; token == nil {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, []string{"B", "Default", "a", "a", "b", "É"}, names, "by bytes, and each once")
	_, err := handlertest.Call[page.Page[agent.Template]](t, w.p, "list-agent-templates", functions.ListAgentTemplates, w.owner, args{"limit": 0})
	require.Equal(t, fault.ValidationError, err.Type)
}

// Each caller changes another field, all at the same moment: none undoes what another has done.
func TestConcurrentUpdatesOfATemplateLoseNothing(t *testing.T) {
	w := newTemplates(t)
	fields := w.fields()
	begin := make(chan struct{})
	var g errgroup.Group
	for field, value := range fields {
		g.Go(func() error {
			<-begin
			if _, err := w.update(w.TemplateID, args{field: value}); err != nil {
				return fmt.Errorf("%s: %s", field, err.Message)
			}
			return nil
		})
	}
	close(begin)
	require.NoError(t, g.Wait())
	got, err := w.get(w.owner, w.TemplateID)
	require.Nil(t, err)
	require.Equal(t, fields, shown(t, got))
}
