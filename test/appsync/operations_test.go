package appsync_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
)

const (
	agentFields  = `id name description status systemPrompt templateId skillPackIds knowledgeBaseId rateLimits { turnsPerMinute turnsPerHour turnsPerDay } createdAt updatedAt`
	template     = ` template { id name modelId runtime tools createdAt }`
	threadFields = `id threadUUID prefix channel status title agentId spaceId metadata tokenCount createdAt updatedAt`
	message      = `id threadId role body toolCalls { id name input } toolResults { toolCallId status output } tokenCount model turnId metadata createdAt`
	toolServer   = `id name url scopes transport auth { type header clientId tokenUrl } timeoutSeconds leftOut listedAt createdAt updatedAt`
	tools        = ` tools { name tool description schema idempotent hash status approvedDescription approvedSchema approvedBy approvedAt }`
	userFields   = `id email role status createdAt updatedAt`
	event        = `eventId tenantId occurredAt recordedAt actor actorType source eventType eventHash prevHash chainPosition anchor { status cadenceId } resourceType redactedFields payload payloadBytes`
	export       = `id status format filter requestedBy requestedAt startedAt finishedAt rows bytes error`
)

// The script: every row of the manifest with a GraphQL field answers at least once and refuses at least once, and lists answer their nested fields
// in batches. The last part breaks the database. Subscriptions are in subscriptions_test.go.
var script = slices.Concat(conversation, agentTemplates, turns, guardrails, budgets, evaluations, automation, integrations, tenancy)

var conversation = []step{
	{name: "createAgent", query: `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { ` + agentFields + ` } }`, save: map[string]string{"busy": "createAgent.id"},
		vars: values{"input": values{"name": "Busy", "skillPackIds": []string{}, "rateLimits": values{"turnsPerMinute": 1, "turnsPerDay": nil}, "clientToken": "t"}}},
	{name: "createAgent again", query: `mutation ($input: CreateAgentInput!) { createAgent(input: $input) { id } }`,
		vars: values{"input": values{"name": "Busy", "skillPackIds": []string{}, "rateLimits": values{"turnsPerMinute": 1, "turnsPerDay": nil}, "clientToken": "t"}}},
	{name: "createAgent by a member", as: "member", query: `mutation { createAgent(input: {name: "No"}) { id } }`, want: "Forbidden"},
	{name: "createAgent without a name", query: `mutation { createAgent(input: {name: ""}) { id } }`, want: "ValidationError"},
	{name: "updateAgent", query: `mutation { updateAgent(id: "{busy}", input: {description: "Has much to do", status: active, systemPrompt: null}) { ` + agentFields + template + ` } }`},
	{name: "updateAgent to nowhere", query: `mutation { updateAgent(id: "{busy}", input: {status: created}) { id } }`, want: "ValidationError"},
	{name: "listAgents", as: "member", query: `{ listAgents(filter: {status: active}) { items { ` + agentFields + template + ` } nextToken } }`},
	{name: "listAgents, a page", query: `query ($n: Int) { listAgents(limit: $n) { items { name t: template { name } } nextToken } }`, vars: values{"n": 1}, save: map[string]string{"page": "listAgents.nextToken"}},
	{name: "listAgents, the next page", query: `{ listAgents(limit: 1, nextToken: "{page}") { items { name } nextToken } }`},
	{name: "listAgents, no page", query: `{ listAgents(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "getAgent", query: `query ($id: ID!) { getAgent(id: $id) { ...a ` + template + ` } } fragment a on Agent { ` + agentFields + ` __typename }`, vars: values{"id": "{agent}"}},
	{name: "getAgent of another tenant", query: `query ($id: ID!) { getAgent(id: $id) { id template { name } } }`, vars: values{"id": "{foreign}"}, want: "NotFound"},
	{name: "getAgent without a tenant", as: "stranger", query: `{ getAgent(id: "{agent}") { id } }`, want: "Forbidden"},

	{name: "createThread", query: `mutation ($input: CreateThreadInput!) { createThread(input: $input) { ` + threadFields + ` } }`, save: map[string]string{"thread": "createThread.id"},
		vars: values{"input": values{"title": "First", "metadata": `{"b": [1, {"ü": null}], "a": "\"x\""}`, "clientToken": "c"}}},
	{name: "createThread again", query: `mutation ($input: CreateThreadInput!) { createThread(input: $input) { id metadata } }`,
		vars: values{"input": values{"title": "First", "metadata": `{"b": [1, {"ü": null}], "a": "\"x\""}`, "clientToken": "c"}}},
	{name: "createThread for the busy", query: `mutation { createThread(input: {agentId: "{busy}", channel: GITHUB, metadata: "{}"}) { id agent { name } } }`, save: map[string]string{"second": "createThread.id"}},
	{name: "createThread, another", query: `mutation { createThread(input: {agentId: "{busy}"}) { id metadata } }`, save: map[string]string{"third": "createThread.id"}},
	{name: "createThread, metadata is a list", query: `mutation { createThread(input: {metadata: "[1]"}) { id } }`, want: "ValidationError"},
	{name: "createThread, metadata is a number", query: `mutation { createThread(input: {metadata: "0"}) { id } }`, want: "ValidationError"},
	{name: "createThread, metadata is a text", query: `mutation { createThread(input: {metadata: "\"x\""}) { id } }`, want: "ValidationError"},
	{name: "createThread for nobody", query: `mutation { createThread(input: {agentId: "{nobody}"}) { id } }`, want: "NotFound"},
	{name: "updateThread", as: "member", query: `mutation ($input: UpdateThreadInput!) { updateThread(id: "{thread}", input: $input) { ` + threadFields + ` } }`,
		vars: values{"input": values{"status": "waiting", "title": nil, "metadata": `{"since": 1}`}}},
	{name: "updateThread, cleared", query: `mutation { updateThread(id: "{thread}", input: {metadata: null, title: "Once more"}) { title metadata status } }`},
	{name: "updateThread to nowhere", query: `mutation { updateThread(id: "{thread}", input: {status: null}) { id } }`, want: "ValidationError"},
	{name: "updateThread of nobody", as: "globex", query: `mutation { updateThread(id: "{thread}", input: {title: "x"}) { id } }`, want: "NotFound"},
	{name: "sendMessage", as: "member", query: `mutation ($input: SendMessageInput!) { sendMessage(input: $input) { ` + message + ` } }`, save: map[string]string{"turn": "sendMessage.turnId"},
		vars: values{"input": values{"threadId": "{thread}", "body": "Hello \"Ada\"\n"}}},
	{name: "sendMessage, one after the other", query: `mutation { a: sendMessage(input: {threadId: "{thread}", body: "a"}) { body } b: sendMessage(input: {threadId: "{thread}", body: "b", onBusy: REJECT}) { body } c: sendMessage(input: {threadId: "{thread}", body: "c"}) { body } }`,
		want: "ValidationError"},
	{name: "sendMessage to the busy", query: `mutation { sendMessage(input: {threadId: "{second}", body: "1"}) { role } }`},
	{name: "sendMessage to the too busy", query: `mutation { sendMessage(input: {threadId: "{third}", body: "2"}) { role } }`, want: "RateLimitExceeded"},
	{name: "sendMessage to nobody", query: `mutation { sendMessage(input: {threadId: "CHAT-99", body: "x"}) { id } }`, want: "NotFound"},
	{name: "getThread", query: `{ getThread(id: "{thread}") { ` + threadFields + ` agent { name ` + template + ` } messages(limit: 2, order: NEWEST_FIRST) { items { ` + message + ` } nextToken } turns { items { id status agentId } nextToken } } }`,
		save: map[string]string{"older": "getThread.messages.nextToken"}},
	{name: "getThread, older messages", query: `{ getThread(id: "{thread}") { messages(limit: 2, order: NEWEST_FIRST, nextToken: "{older}") { items { body } nextToken } } }`},
	{name: "getThread of another tenant", as: "globex", query: `{ getThread(id: "{thread}") { id messages { nextToken } } }`, want: "NotFound"},
	{name: "threadEvents", query: `query ($after: Int!) { threadEvents(threadId: "{thread}", after: $after) { items { __typename ... on NewMessageEvent { sequence threadId tenantId message { ` + message + ` } } ... on ThreadUpdateEvent { sequence thread { id status title metadata } } } last prunedBefore } }`,
		vars: values{"after": 1}},
	{name: "threadEvents from the first", query: `{ threadEvents(threadId: "{thread}", limit: 1) { items { ... on ThreadUpdateEvent { sequence threadId } ... on StreamChunkEvent { sequence chunk } } } }`},
	{name: "threadEvents, too many", query: `{ threadEvents(threadId: "{thread}", limit: 1001) { last } }`, want: "ValidationError"},
	{name: "threadEvents of another tenant", as: "globex", query: `{ threadEvents(threadId: "{thread}", after: null) { last } }`, want: "NotFound"},
	{name: "listThreads", query: `{ listThreads { items { ` + threadFields + ` agent { name template { modelId } } messages { items { body role } nextToken } turns(limit: 1) { items { status model toolOutcomes { name } phases { name } } } } nextToken } }`},
	{name: "listThreads, a bad filter", query: `{ listThreads(filter: {agentId: "x"}) { nextToken } }`, want: "ValidationError"},
	{name: "Thread.messages of each refuses", query: `{ listThreads { items { id messages(limit: 101) { nextToken } } } }`, want: "ValidationError"},
	{name: "Thread.turns of each refuses", query: `{ listThreads { items { id agent { name } turns(limit: 0) { nextToken } } } }`, want: "ValidationError"},
	{name: "Thread.messages, a token of one", query: `{ listThreads { items { messages(nextToken: "{older}", limit: 2, order: NEWEST_FIRST) { items { body } } } } }`, want: "ValidationError"},
	{name: "turn", query: `{ turn(id: "{turn}") { id threadId agentId status model inputTokens costUsd phases { name } guardrailDecisions { stage } startedAt finishedAt } }`},
	{name: "turn of nobody", query: `{ turn(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "several at once", query: `{ a: getAgent(id: "{agent}") { name } b: getAgent(id: "{nobody}") { name } c: turn(id: "{nobody}") { id } d: getThread(id: "{thread}") { id } }`, want: "NotFound"},
	{name: "what must not be null", query: `{ listToolServers(limit: 0) { nextToken } }`, want: "ValidationError"},
}

var tenancy = []step{
	{name: "inviteUser", query: `mutation { inviteUser(input: {email: "Max@Acme.test"}) { ` + userFields + ` } }`, save: map[string]string{"max": "inviteUser.id"}},
	{name: "inviteUser again", query: `mutation { inviteUser(input: {email: "max@acme.test", role: admin}) { id } }`, want: "ValidationError"},
	{name: "inviteUser by a member", as: "member", query: `mutation { inviteUser(input: {email: "x@acme.test"}) { id } }`, want: "Forbidden"},
	{name: "listUsers", query: `{ listUsers(limit: 10) { items { ` + userFields + ` } nextToken } }`},
	{name: "listUsers by a member", as: "member", query: `{ listUsers { nextToken } }`, want: "Forbidden"},
	{name: "disableUser", query: `mutation { disableUser(id: "{max}", reason: "left") { ` + userFields + ` } }`},
	{name: "disableUser oneself", query: `mutation { disableUser(id: "{user}") { id } }`, want: "ValidationError"},
	{name: "deleteUser", query: `mutation { deleteUser(id: "{max}") { email } }`},
	{name: "deleteUser again", query: `mutation { deleteUser(id: "{max}") { email } }`, want: "NotFound"},
	{name: "signOut", query: `mutation { signOut }`},
	{name: "signOut without a tenant", as: "stranger", query: `mutation { signOut }`, want: "Forbidden"},

	{name: "addToolServer", query: `mutation { addToolServer(input: {name: "tools", url: "https://mcp.acme.test/x?a=%20b", scopes: ["read"]}) { ` + toolServer + ` } }`, save: map[string]string{"tools": "addToolServer.id"}},
	{name: "updateToolServer", query: `mutation ($input: UpdateToolServerInput!) { updateToolServer(id: "{tools}", input: $input) { ` + toolServer + ` } }`,
		vars: values{"input": values{"timeoutSeconds": 90, "transport": "SSE", "auth": values{"type": "API_KEY", "header": "x-key", "key": "secret"}}}},
	{name: "updateToolServer to nowhere", query: `mutation { updateToolServer(id: "{tools}", input: {url: null}) { id } }`, want: "ValidationError"},
	{name: "refreshToolServer", query: `mutation { refreshToolServer(id: "{tools}") { id listedAt } }`},
	{name: "refreshToolServer by a member", as: "member", query: `mutation { refreshToolServer(id: "{tools}") { id } }`, want: "Forbidden"},
	{name: "approveServerTools", query: `mutation { approveServerTools(id: "{tools}", tools: [{name: "tools__read", hash: "` + strings.Repeat("a", 64) + `"}]) { ` + toolServer + tools + ` } }`,
		first: func(s *side) {
			s.superuser(`insert into tool_server_tools (tenant_id, server_id, name, tool, description, schema, idempotent, hash)
				select tenant_id, id, 'tools__read', 'read', 'Reads.', '{"type":"object"}', true, repeat('a', 64) from tool_servers`)
		}},
	{name: "approveServerTools, not as seen", query: `mutation { approveServerTools(id: "{tools}", tools: [{name: "tools__read", hash: "b"}]) { id } }`, want: "ValidationError"},
	{name: "addToolServer without TLS", query: `mutation { addToolServer(input: {name: "t", url: "http://mcp.acme.test"}) { id } }`, want: "ValidationError"},
	{name: "listToolServers", query: `{ listToolServers { items { ` + toolServer + tools + ` } nextToken } }`},
	{name: "ToolServer.tools of each fails", query: `{ listToolServers { items { name tools { name } } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table tool_server_tools rename to lost`) }, then: func(s *side) { s.superuser(`alter table lost rename to tool_server_tools`) }},
	{name: "removeToolServer", query: `mutation { removeToolServer(id: "{tools}") { name } }`},
	{name: "removeToolServer again", query: `mutation { removeToolServer(id: "{tools}") { name } }`, want: "NotFound"},
	{name: "updateGovernanceFile", query: `mutation { updateGovernanceFile(input: {file: GUARDRAILS, content: "# Be kind"}) { spaceId file version content userId createdAt } }`},
	{name: "updateGovernanceFile by a member", as: "member", query: `mutation { updateGovernanceFile(input: {file: CONTEXT, content: ""}) { version } }`, want: "Forbidden"},
	{name: "deleteAgent", query: `mutation { deleteAgent(id: "{busy}", reason: "done") { status } }`},
	{name: "deleteAgent of nobody", query: `mutation { deleteAgent(id: "{nobody}") { status } }`, want: "NotFound"},

	{name: "createTenant", as: "operator", query: `mutation { createTenant(input: {slug: "initech", name: "Initech", ownerEmail: "peter@initech.test"}) { id slug name turnsAtOnce createdAt } }`},
	{name: "updateTenant", as: "operator", query: `mutation { updateTenant(id: "{tenant}", input: {name: "Acme Ltd", turnsAtOnce: 20}) { id slug name turnsAtOnce createdAt } }`},
	{name: "updateTenant by an owner", query: `mutation { updateTenant(id: "{tenant}", input: {turnsAtOnce: 1}) { id } }`, want: "Forbidden"},
	{name: "createTenant by an owner", query: `mutation { createTenant(input: {slug: "x", name: "X", ownerEmail: "x@x.test"}) { id } }`, want: "Forbidden"},
	{name: "complianceEvents", as: "operator", query: `{ complianceEvents(filter: {tenantId: "{tenant}"}, limit: 5) { items { ` + event + ` } nextToken } }`, first: (*side).anchored,
		save: map[string]string{"event": "complianceEvents.items.0.eventId", "hash": "complianceEvents.items.0.eventHash"}},
	{name: "complianceEvents for an owner", query: `{ complianceEvents { nextToken } }`, want: "Forbidden"},
	{name: "complianceEvent", as: "operator", query: `{ complianceEvent(eventId: "{event}") { ` + event + ` payloadUrl } }`},
	{name: "complianceEvent of nobody", as: "operator", query: `{ complianceEvent(eventId: "{nobody}") { eventId } }`, want: "NotFound"},
	{name: "complianceEventByHash", as: "operator", query: `{ complianceEventByHash(eventHash: "{hash}") { ` + event + ` } }`},
	{name: "complianceEventByHash, no hash", as: "operator", query: `{ complianceEventByHash(eventHash: "` + strings.Repeat("0", 64) + `") { eventId } }`, want: "NotFound"},
	{name: "complianceChain", as: "operator", query: `{ complianceChain(eventHash: "{hash}", limit: 3) { chainPosition prevHash anchor { status } } }`},
	{name: "complianceChain, too long", as: "operator", query: `{ complianceChain(eventHash: "{hash}", limit: 11) { eventId } }`, want: "ValidationError"},
	{name: "complianceVerification", as: "operator", query: `{ complianceVerification { lastAnchor { cadenceId events tenants } beaconedAt pendingEvents quarantinedEvents events tenants cadenceSeconds anchorBucket publicKey command } }`},
	{name: "complianceVerification for an owner", query: `{ complianceVerification { events } }`, want: "Forbidden"},
	{name: "complianceProof", as: "operator", query: `{ complianceProof(eventId: "{event}") }`},
	{name: "complianceProof of nobody", as: "operator", query: `{ complianceProof(eventId: "{nobody}") }`, want: "NotFound"},
	{name: "createComplianceExport", as: "operator", query: `mutation { createComplianceExport(input: {format: NDJSON, filter: {tenantId: "{tenant}"}}) { ` + export + ` } }`, save: map[string]string{"job": "createComplianceExport.id"}},
	{name: "createComplianceExport of the operator's own", as: "operator", query: `mutation { createComplianceExport(input: {}) { id } }`, want: "ValidationError"},
	{name: "complianceExportLink, too early", as: "operator", query: `{ complianceExportLink(jobId: "{job}") { url } }`, want: "ValidationError"},
	{name: "complianceExportLink", as: "operator", query: `{ complianceExportLink(jobId: "{job}") { url manifestUrl fileName expiresAt } }`, first: (*side).exported},
	{name: "complianceExports", as: "operator", query: `{ complianceExports { items { ` + export + ` } nextToken } }`},
	{name: "complianceExports for an owner", query: `{ complianceExports { nextToken } }`, want: "Forbidden"},

	{name: "createAgent without its record", query: `mutation { createAgent(input: {name: "No"}) { id } }`, want: "InternalError", first: func(s *side) { s.BreakOutbox(s.t) }},
	{name: "Agent.template of each fails", query: `{ listAgents { items { name template { name } } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table agent_templates rename to lost`) }},
	{name: "Agent.settings of each fails", query: `{ listAgents { items { name settings { field } } } }`, want: "InternalError"},
	{name: "Thread.agent of each fails", query: `{ listThreads { items { id agent { name } messages(limit: 1) { items { body } } } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table agents rename to lost_too`) }},
}

// exported runs the export job.
func (s *side) exported() {
	s.t.Helper()
	_, err := functions.Table["run-export"](s.Env(s.t, "run-export")).Invoke(s.t.Context(), []byte(`{"jobId":"`+s.known["job"]+`"}`))
	require.NoError(s.t, err)
}

// buckets is a store with the buckets of both sides.
func buckets(t *testing.T) *object.Store {
	t.Helper()
	var all []bucket.Bucket
	for _, side := range []string{"appsync", "gateway"} {
		all = append(all, bucket.Bucket{Name: "audit-" + side, ObjectLock: true}, bucket.Bucket{Name: "exports-" + side})
	}
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret", Buckets: all})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return object.New(object.Config{Region: "us-east-1", Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true})
}

// TestOperations: through resolver.js, as through the platform's gateway, every operation answers the same and refuses the same.
func TestOperations(t *testing.T) {
	_, both := sides(t, buckets(t))
	answered, refused := map[string]bool{}, map[string]bool{}
	for _, st := range script {
		_, appsync := both[0].do(st)
		_, own := both[1].do(st)
		require.Equal(t, own, appsync, st.name)
		if st.want == "" {
			require.Empty(t, appsync.Errors, st.name)
		} else {
			require.Equal(t, []string{st.want}, appsync.types(), st.name)
		}
		for path, want := range st.says {
			require.Equal(t, want, at(t, appsync.Data, path), "%s: %s", st.name, path)
		}
		for field, row := range rows(t).ByGraphQL() {
			if _, name, _ := strings.Cut(field, "."); strings.Contains(st.query, name) {
				answered[row.Name] = answered[row.Name] || st.want == ""
				refused[row.Name] = refused[row.Name] || slices.ContainsFunc(appsync.Errors, func(e graphqlError) bool { return slices.Contains(e.Path, any(name)) })
			}
		}
	}
	for field, row := range rows(t).ByGraphQL() {
		if !strings.HasPrefix(field, "Subscription.") {
			require.True(t, answered[row.Name], "%s has no step that answers", field)
			require.True(t, refused[row.Name], "%s has no step that refuses", field)
		}
	}
	require.Equal(t, both[1].Invoked(), both[0].Invoked())
	require.Equal(t, both[1].Directory().Told(), both[0].Directory().Told())
}
