package appsync_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

const (
	integrationFields = `id name provider agentId enabled rateLimit url address hasSecret error createdBy createdAt updatedAt`
	connectionFields  = `id userId integrationId provider providerUserId account accountName scopes status reason createdAt updatedAt`
	deliveryFields    = `id integrationId webhookId provider outcome event providerId error size sha256 durationMs threadId body replayOf receivedAt`
	comesBack         = "https://console.example.test/connections"
)

// integrations are links to outside services: of one that signs as the platform says, and of a task tracker with an authorization server.
var integrations = []step{
	{name: "createIntegration", query: `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { config ` + integrationFields + ` } }`, save: map[string]string{"integration": "createIntegration.id"},
		vars: values{"input": values{"name": "Anything", "provider": "generic", "agentId": "{agent}", "config": `{"replyUrl": "https://example.test/answers"}`, "secret": values{"signing": "sixteen characters"}, "clientToken": "i"}}},
	{name: "createIntegration by a member", as: "member", query: `mutation { createIntegration(input: {name: "No", provider: generic, agentId: "{agent}", secret: {signing: "sixteen characters"}}) { id } }`, want: "Forbidden"},
	{name: "createIntegration, a list", query: `mutation ($c: AWSJSON) { createIntegration(input: {name: "No", provider: generic, agentId: "{agent}", config: $c, secret: {signing: "sixteen characters"}}) { id } }`,
		vars: values{"c": `[1]`}, want: "ValidationError"},
	{name: "createIntegration of a tracker", query: `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { ` + integrationFields + ` } }`, save: map[string]string{"tracker": "createIntegration.id"},
		first: (*side).tracked, vars: values{"input": values{"name": "Linear", "provider": "linear", "secret": values{"token": "the client's s3cret"},
			"config": `{"clientId": "platform", "redirectUris": ["` + comesBack + `"], "apiUrl": "{outside}", "authUrl": "{outside}"}`}}},
	{name: "updateIntegration", query: `mutation ($c: AWSJSON) { updateIntegration(id: "{integration}", input: {config: $c, rateLimit: 60}) { config ` + integrationFields + ` } }`, vars: values{"c": `{}`}},
	{name: "updateIntegration of another tenant", as: "globex", query: `mutation { updateIntegration(id: "{integration}", input: {enabled: false}) { id } }`, want: "NotFound"},
	{name: "getIntegration", as: "member", query: `{ getIntegration(id: "{integration}") { config ` + integrationFields + ` } }`},
	{name: "getIntegration of nobody", query: `{ getIntegration(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "listIntegrations", as: "member", query: `{ listIntegrations(limit: 1) { items { ` + integrationFields + ` } nextToken } }`},
	{name: "listIntegrations, no page", query: `{ listIntegrations(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "replayDelivery", as: "operator", query: `mutation { replayDelivery(id: "{delivery}") { ` + deliveryFields + ` } }`, first: (*side).delivered},
	{name: "replayDelivery by an owner", query: `mutation { replayDelivery(id: "{delivery}") { id } }`, want: "Forbidden"},
	{name: "listDeliveries", query: `{ listDeliveries(filter: {integrationId: "{integration}", outcome: ok}) { items { ` + deliveryFields + ` } nextToken } }`},
	{name: "listDeliveries by a member", as: "member", query: `{ listDeliveries { nextToken } }`, want: "Forbidden"},

	{name: "startConnection", as: "member", query: `mutation { startConnection(input: {integrationId: "{tracker}", redirectUri: "` + comesBack + `"}) { expiresAt } }`},
	{name: "startConnection elsewhere", query: `mutation { startConnection(input: {integrationId: "{tracker}", redirectUri: "https://evil.example.test/"}) { expiresAt } }`, want: "ValidationError"},
	{name: "completeConnection", query: `mutation { completeConnection(input: {state: "{state}", code: "{code}"}) { ` + connectionFields + ` } }`, first: (*side).consented, save: map[string]string{"connection": "completeConnection.id"}},
	{name: "completeConnection again", query: `mutation { completeConnection(input: {state: "{state}", code: "{code}"}) { id } }`, want: "ValidationError"},
	{name: "listConnections", query: `{ listConnections { items { ` + connectionFields + ` } nextToken } }`},
	{name: "listConnections, no page", query: `{ listConnections(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "deleteIntegration with connections", query: `mutation { deleteIntegration(id: "{tracker}") { name } }`, want: "ValidationError"},
	{name: "deleteConnection of another tenant", as: "globex", query: `mutation { deleteConnection(id: "{connection}") { id } }`, want: "NotFound"},
	{name: "deleteConnection", query: `mutation { deleteConnection(id: "{connection}") { ` + connectionFields + ` } }`},
	{name: "deleteIntegration", query: `mutation { deleteIntegration(id: "{tracker}") { name provider } }`},

	{name: "registerDevice", query: `mutation { registerDevice(input: {platform: fcm, token: "a-token"}) { id platform createdAt seenAt } }`, save: map[string]string{"device": "registerDevice.id"}},
	{name: "registerDevice without a token", query: `mutation { registerDevice(input: {platform: apns, token: "x"}) { id } }`, want: "ValidationError"},
	{name: "listDevices", query: `{ listDevices { items { id platform createdAt seenAt } nextToken } }`},
	{name: "listDevices, no page", query: `{ listDevices(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "unregisterDevice", query: `mutation { unregisterDevice(id: "{device}") { id platform } }`},
	{name: "unregisterDevice again", query: `mutation { unregisterDevice(id: "{device}") { id } }`, want: "NotFound"},
}

// tracked is a task tracker with its authorization server, at one address.
func (s *side) tracked() {
	s.t.Helper()
	s.authority = oauthtest.New(s.t)
	s.authority.ClientSecret, s.authority.RedirectURIs = "the client's s3cret", []string{comesBack}
	mux := http.NewServeMux()
	mux.Handle("/oauth/", s.authority.At("/oauth"))
	mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		person, _ := s.authority.Whose(r)
		fmt.Fprintf(w, `{"data":{"viewer":{"id":%q,"name":"Ada","organization":{"id":"org-1","name":"Acme"}}}}`, person)
	})
	outside := httptest.NewServer(mux)
	s.t.Cleanup(outside.Close)
	s.known["outside"] = outside.URL
}

// consented is the owner on the way back from the task tracker.
func (s *side) consented() {
	s.t.Helper()
	begun, err := connection.NewClients(s.DB.App, s.IntegrationSecrets()).Start(s.t.Context(), tenant.Caller{TenantID: s.acme.TenantID, UserID: s.acme.UserID, Role: tenant.Owner},
		connection.Beginning{IntegrationID: s.known["tracker"], RedirectURI: comesBack})
	require.NoError(s.t, err)
	s.known["state"], s.known["code"] = s.authority.Consent(s.t, begun.AuthorizationURL, "ada")
}

// delivered is a delivery in the log.
func (s *side) delivered() {
	s.t.Helper()
	body, err := json.Marshal(values{"conversation": "c-1", "message": "Hello", "id": "m-1"})
	require.NoError(s.t, err)
	s.known["delivery"] = ident.New()
	s.superuser(`insert into deliveries (tenant_id, id, provider, integration_id, outcome, event, provider_id, size, sha256, body, duration_us)
		values ($1, $2, 'generic', $3, 'error', 'message', 'd-1', $4, sha256(convert_to($5, 'UTF8')), $5, 1)`, s.acme.TenantID, s.known["delivery"], s.known["integration"], len(body), string(body))
}
