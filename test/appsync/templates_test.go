package appsync_test

const (
	templateFields = `id name description isDefault modelId systemPrompt runtime tools toolApprovals guardrailId skillPackIds knowledgeBaseId fetchHosts createdAt updatedAt` + evaluatorFields
	settingFields  = ` settings { field from value }`
)

// agentTemplates are a template that is made and changed, and an agent that overrides some of it.
var agentTemplates = []step{
	{name: "createAgentTemplate", query: `mutation ($input: CreateAgentTemplateInput!) { createAgentTemplate(input: $input) { ` + templateFields + ` } }`, save: map[string]string{"template": "createAgentTemplate.id"},
		vars: values{"input": values{"name": "Support", "modelId": "offline.echo-1", "tools": []string{"read_*"}, "skillPackIds": []string{}, "evaluators": []any{
			values{"type": "json_schema", "schema": `{"type": "object"}`}}, "clientToken": "template"}},
		says: values{"createAgentTemplate.runtime": "default", "createAgentTemplate.isDefault": false, "createAgentTemplate.fetchHosts": []any{}, "createAgentTemplate.evaluators.0.schema": `{"type":"object"}`}},
	{name: "createAgentTemplate again", query: `mutation ($input: CreateAgentTemplateInput!) { createAgentTemplate(input: $input) { id } }`,
		vars: values{"input": values{"name": "Support", "modelId": "offline.echo-1", "tools": []string{"read_*"}, "skillPackIds": []string{}, "evaluators": []any{
			values{"type": "json_schema", "schema": `{"type": "object"}`}}, "clientToken": "template"}}},
	{name: "createAgentTemplate by a member", as: "member", query: `mutation { createAgentTemplate(input: {name: "No", modelId: "m"}) { id } }`, want: "Forbidden"},
	{name: "createAgentTemplate that runs nowhere", query: `mutation { createAgentTemplate(input: {name: "No", modelId: "m", runtime: "Over there"}) { id } }`, want: "ValidationError"},
	{name: "updateAgentTemplate", query: `mutation ($input: UpdateAgentTemplateInput!) { updateAgentTemplate(id: "{template}", input: $input) { ` + templateFields + ` } }`,
		vars: values{"input": values{"description": "For customers", "systemPrompt": "Say \"please\".", "evaluators": nil, "skillPackIds": nil, "tools": []string{}}},
		says: values{"updateAgentTemplate.evaluators": nil, "updateAgentTemplate.tools": []any{}, "updateAgentTemplate.name": "Support"}},
	{name: "updateAgentTemplate without a model", query: `mutation { updateAgentTemplate(id: "{template}", input: {modelId: null}) { id } }`, want: "ValidationError"},
	{name: "updateAgentTemplate of another tenant", as: "globex", query: `mutation { updateAgentTemplate(id: "{template}", input: {name: "x"}) { id } }`, want: "NotFound"},
	{name: "getAgentTemplate", as: "member", query: `{ getAgentTemplate(id: "{template}") { ` + templateFields + ` } }`, says: values{"getAgentTemplate.description": "For customers"}},
	{name: "getAgentTemplate of another tenant", as: "globex", query: `{ getAgentTemplate(id: "{template}") { id } }`, want: "NotFound"},
	{name: "listAgentTemplates", as: "member", query: `{ listAgentTemplates { items { ` + templateFields + ` } nextToken } }`, says: values{"listAgentTemplates.items.0.isDefault": true}},
	{name: "listAgentTemplates, a page", query: `{ listAgentTemplates(limit: 1) { items { name } nextToken } }`, save: map[string]string{"templates": "listAgentTemplates.nextToken"}},
	{name: "listAgentTemplates, the next page", query: `{ listAgentTemplates(limit: 1, nextToken: "{templates}") { items { name } nextToken } }`, says: values{"listAgentTemplates.items.0.name": "Support"}},
	{name: "listAgentTemplates, no page", query: `{ listAgentTemplates(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "createAgent, of a template", query: `mutation { createAgent(input: {name: "Overrider", templateId: "{template}", modelId: "vendor.small-1"}) { id modelId runtime` + settingFields + ` } }`, save: map[string]string{"overrider": "createAgent.id"},
		says: values{"createAgent.modelId": "vendor.small-1", "createAgent.runtime": nil, "createAgent.settings.0.from": "agent", "createAgent.settings.0.value": `"vendor.small-1"`, "createAgent.settings.1.field": "runtime",
			"createAgent.settings.1.value": `"default"`, "createAgent.settings.2.from": "template", "createAgent.settings.2.value": `"Say \"please\"."`, "createAgent.settings.3.value": `[]`, "createAgent.settings.6.value": nil}},
	{name: "updateAgent, its own runtime", query: `mutation { updateAgent(id: "{overrider}", input: {modelId: null, runtime: "large", tools: ["read_*"], evaluators: [{type: json_schema, schema: "{\"type\":\"array\"}"}]}) { modelId runtime` + settingFields + ` } }`,
		says: values{"updateAgent.modelId": nil, "updateAgent.settings.0.value": `"offline.echo-1"`, "updateAgent.settings.1.from": "agent", "updateAgent.settings.3.value": `["read_*"]`,
			"updateAgent.settings.8.value": `[{"name":"json_schema","type":"json_schema","schema":"{\"type\":\"array\"}"}]`}},
	{name: "updateAgent, an empty model", query: `mutation { updateAgent(id: "{overrider}", input: {modelId: ""}) { id } }`, want: "ValidationError"},
	{name: "Agent.settings of each", as: "member", query: `{ listAgents { items { name modelId runtime` + settingFields + ` template { name } } nextToken } }`},
	{name: "deleteAgent that overrides", query: `mutation { deleteAgent(id: "{overrider}") { status } }`},
}
