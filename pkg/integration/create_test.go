package integration_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

func TestCreate(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	require.Equal(t, integration.Integration{ID: made.ID, Name: "Orders", Provider: "generic", AgentID: &w.AgentID, Config: "{}", Enabled: true, RateLimit: 600,
		URL: new("/integrations/" + made.ID + "/webhook"), HasSecret: true, CreatedBy: w.UserID, CreatedAt: made.CreatedAt, UpdatedAt: made.CreatedAt, Version: 1}, made)
	require.Equal(t, made, w.get(made.ID))
	require.NotContains(t, query[string](w, `select i::text from integrations i`), signing)
	known, err := w.known(made)
	require.NoError(t, err)
	require.Equal(t, integration.Secret{Signing: signing}, known)

	box := w.create(w.mailbox("Support.Desk"))
	require.Equal(t, "support.desk", *box.Address)
	require.Equal(t, `{"address":"support.desk"}`, box.Config)
	require.Nil(t, box.URL)
	require.False(t, box.HasSecret)
	require.Equal(t, box, w.get(box.ID))

	client := w.create(integration.New{Provider: integration.Linear, Settings: integration.Settings{Name: is("Linear"), Enabled: is(false), RateLimit: is(7),
		Config: is(` {"clientId": "abc", "scopes": ["read"], "redirectUris": ["http://localhost:3000/back", "https://app.example/c?d"]} `), Secret: is(integration.SecretGiven{Token: new("oauth")})}})
	require.Equal(t, client, w.get(client.ID))
	require.Nil(t, client.URL)
	require.False(t, client.Enabled)
	require.Equal(t, 7, client.RateLimit)
	c, err := client.Client()
	require.NoError(t, err)
	require.Equal(t, integration.Client{ClientID: "abc", Scopes: []string{"read"}, RedirectURIs: []string{"http://localhost:3000/back", "https://app.example/c?d"}}, c)
	require.Equal(t, 2, w.secrets())
}

func TestWhatNoIntegrationMayBe(t *testing.T) {
	w := newWorld(t)
	w.exec(`insert into agents select (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'name', 'Gone', 'status', 'archived', 'is_default', false))).* from agents a`)
	archived := query[string](w, `select id from agents where status = 'archived'`)
	foreign := w.neighbour("globex").AgentID
	for says, change := range map[string]func(n *integration.New){
		"provider must be":            func(n *integration.New) { n.Provider = "teams" },
		"name must not be empty":      func(n *integration.New) { n.Name = is(" ") },
		"name must not be null":       func(n *integration.New) { n.Name = null[string]() },
		"enabled must not be null":    func(n *integration.New) { n.Enabled = null[bool]() },
		"rateLimit must be from 1":    func(n *integration.New) { n.RateLimit = is(0) },
		"to 100000 deliveries":        func(n *integration.New) { n.RateLimit = is(100_001) },
		"agentId is required":         func(n *integration.New) { n.AgentID = null[string]() },
		"agentId names no agent":      func(n *integration.New) { n.AgentID = is(ident.New()) },
		"agentId names no agent of":   func(n *integration.New) { n.AgentID = is("ada") },
		"no agent of the tenant":      func(n *integration.New) { n.AgentID = is(foreign) },
		"the agent is archived":       func(n *integration.New) { n.AgentID = is(archived) },
		"config must be a JSON":       func(n *integration.New) { n.Config = is(`[]`) },
		"config must be a JSON obj":   func(n *integration.New) { n.Config = is(`null`) },
		"config is longer than":       func(n *integration.New) { n.Config = is(`{"replyUrl": "` + strings.Repeat("x", 17<<10) + `"}`) },
		"config must not contain NUL": func(n *integration.New) { n.Config = is(`{"replyUrl": "\u0000"}`) },
		"unknown field":               func(n *integration.New) { n.Config = is(`{"clientSecret": "x"}`) },
		"secret.signing is required":  func(n *integration.New) { n.Secret = null[integration.SecretGiven]() },
		"secret.signing must be 16":   func(n *integration.New) { n.Secret = is(integration.SecretGiven{Signing: new("fifteen letters")}) },
		"to 2048 printable ASCII": func(n *integration.New) {
			n.Secret = is(integration.SecretGiven{Signing: new(strings.Repeat("x", 2049))})
		},
		"printable ASCII": func(n *integration.New) { n.Secret = is(integration.SecretGiven{Signing: new(signing + "\n")}) },
		"secret.token is not for": func(n *integration.New) {
			n.Secret = is(integration.SecretGiven{Signing: new(signing), Token: new("x")})
		},
	} {
		_, err := w.integrations.Create(t.Context(), w.caller(), w.generic(change), nil)
		refused(t, err, says)
	}
	for address, says := range map[string]string{"": "config.address must be", "a+b": "config.address must be", "a..b": "config.address must be", ".a": "config.address must be",
		"ä": "config.address must be", "a@b": "config.address must be", "a b": "config.address must be", strings.Repeat("a", 65): "config.address must be", "Postmaster": "reserved", "reply": "reserved"} {
		_, err := w.integrations.Create(t.Context(), w.caller(), w.mailbox(address), nil)
		refused(t, err, says)
	}
	client := func(config string) error {
		_, err := w.integrations.Create(t.Context(), w.caller(), integration.New{Provider: integration.Jira, Settings: integration.Settings{Name: is("Jira"), Config: is(config),
			Secret: is(integration.SecretGiven{Token: new("oauth")})}}, nil)
		return err
	}
	for config, says := range map[string]string{
		`{}`: "config.clientId", `{"clientId": ""}`: "config.clientId", `{"clientId": 7}`: "config: ", `{"clientId": "a", "secret": "b"}`: "unknown field",
		`{"clientId": "a", "scopes": ["a b"]}`:                                     "config.scopes",
		`{"clientId": "a", "redirectUris": ["http://app.example/"]}`:               "config.redirectUris must be https",
		`{"clientId": "a", "redirectUris": ["/back"]}`:                             "config.redirectUris must be an absolute",
		`{"clientId": "a", "redirectUris": ["https://a:b@app.example/"]}`:          "user name",
		`{"clientId": "a", "redirectUris": ["https://app.example/#there"]}`:        "fragment",
		`{"clientId": "a", "redirectUris": ["javascript:alert(1)"]}`:               "config.redirectUris must be",
		`{"clientId": "a", "redirectUris": [` + strings.Repeat(`"",`, 20) + `""]}`: "config.redirectUris must be 1 to 20 addresses",
		`{"clientId": "a"}`:                     "config.redirectUris must be 1 to 20 addresses",
		`{"clientId": "a", "redirectUris": []}`: "config.redirectUris must be 1 to 20 addresses",
		`{"clientId": "a", "redirectUris": ["https://a.example/"], "apiUrl": "http://192.0.2.1"}`: "config.apiUrl must be https",
		`{"clientId": "a", "redirectUris": ["https://a.example/"], "authUrl": "ftp://localhost"}`: "config.authUrl must be https",
	} {
		refused(t, client(config), says)
	}
	_, err := w.integrations.Create(t.Context(), w.caller(), integration.New{Provider: integration.Asana, Settings: integration.Settings{Name: is("Asana"), AgentID: is(w.AgentID),
		Config: is(`{"clientId": "a", "redirectUris": ["https://a.example/"]}`), Secret: is(integration.SecretGiven{Token: new("oauth")})}}, nil)
	refused(t, err, "agentId is not for provider asana")
	require.Zero(t, w.secrets())
	require.Zero(t, query[int](w, `select count(*) from integrations`))
}

// What another tenant has says no more than what one's own tenant has.
func TestNamesAreTheTenantsAndAddressesTheDeployments(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	w.create(w.generic())
	other.create(other.generic())
	_, err := w.integrations.Create(t.Context(), w.caller(), w.generic(), nil)
	require.Equal(t, fault.Invalid("an integration has the name Orders already"), err)

	w.create(w.mailbox("support"))
	again := w.mailbox("SUPPORT")
	again.Name = is("Another")
	_, own := w.integrations.Create(t.Context(), w.caller(), again, nil)
	_, foreign := other.integrations.Create(t.Context(), other.caller(), other.mailbox("support"), nil)
	require.Equal(t, fault.Invalid("config.address support is taken"), own)
	require.Equal(t, own, foreign)
	box := other.create(other.mailbox("sales"))
	_, err = other.update(box.ID, integration.Settings{Config: is(`{"address": "support"}`)})
	require.Equal(t, own, err)
	require.Equal(t, 2, w.secrets(), "nothing is kept for what was not made")
}

func TestSlackIsAskedWhoTheAppIs(t *testing.T) {
	w, s := newWorld(t), newWorkspace(t)
	n := w.slack(s)
	n.Config = is(`{"apiUrl": "` + s.URL + `/api/", "botUserId": "U0OTHER", "teamId": "T0OTHER"}`)
	made := w.create(n)
	require.JSONEq(t, `{"apiUrl": "`+s.URL+`/api", "botUserId": "U0BOT", "teamId": "T0001", "enterpriseId": "E0001"}`, made.Config, "whatever was given")
	require.Equal(t, []string{"/api/auth.test Bearer " + token}, s.asked)
	require.Equal(t, made, w.get(made.ID))

	for says, answer := range map[string]map[string]any{
		"secret.token cannot be used: Slack refuses it: invalid_auth": {"ok": false, "error": "invalid_auth"},
		"bot token":                    {"ok": true, "team_id": "T0001", "user_id": "U0PERSON"},
		"try again later: the answer":  {"ok": true},
		"could not be asked":           {"ok": false, "error": "internal_error"},
		"try again later: Slack refus": {"ok": false, "error": "ratelimited"},
	} {
		s.says(answer)
		n.Name = is("Another")
		_, err := w.integrations.Create(t.Context(), w.caller(), n, nil)
		refused(t, err, says)
		require.NotContains(t, err.Error(), token)
	}
	s.Close()
	_, err := w.integrations.Create(t.Context(), w.caller(), n, nil)
	refused(t, err, "could not be asked whose secret.token is, try again later: the server")
	n.Config = is(`{"apiUrl": "https://169.254.169.254/"}`)
	_, err = w.integrations.Create(t.Context(), w.caller(), n, nil)
	refused(t, err, "the host has no address on the internet")
	require.Equal(t, 1, w.secrets())
	require.Equal(t, 1, query[int](w, `select count(*) from integrations`))
}

func TestCreateWithAClientToken(t *testing.T) {
	w := newWorld(t)
	const callers = 20
	var made [callers]integration.Integration
	begin := make(chan struct{})
	var g errgroup.Group
	for i := range callers {
		g.Go(func() (err error) {
			<-begin
			made[i], err = w.integrations.Create(t.Context(), w.caller(), w.generic(), new("once"))
			return err
		})
	}
	close(begin)
	require.NoError(t, g.Wait())
	for _, m := range made {
		m.Version = 1 // which is for the platform alone, and not kept with the answer
		require.Equal(t, w.get(made[0].ID), m)
	}
	require.Equal(t, 1, w.secrets())
	require.NotContains(t, query[string](w, `select c::text from client_tokens c`), signing)

	other := w.generic(func(n *integration.New) {
		n.Secret = is(integration.SecretGiven{Signing: new("another signing secret")})
	})
	again, err := w.integrations.Create(t.Context(), w.caller(), other, new("once"))
	require.NoError(t, err, "the secret is not compared")
	require.Equal(t, made[0].ID, again.ID)
	known, err := w.known(w.get(again.ID))
	require.NoError(t, err)
	require.Equal(t, signing, known.Signing)
	_, err = w.integrations.Create(t.Context(), w.caller(), w.generic(func(n *integration.New) { n.RateLimit = is(1) }), new("once"))
	refused(t, err, "clientToken was used with another input")
}

// What is not committed leaves no secret that nobody would look for.
func TestCreateThatFailsKeepsNoSecret(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	integrations := integration.Open(w.db.App, failing{w.store, cancel}, egress.Config{})
	_, err := integrations.Create(ctx, w.caller(), w.generic(), nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, w.secrets())
	require.Zero(t, query[int](w, `select count(*) from integrations`))
}

func TestGitHubIsAskedWhoseTheTokenIs(t *testing.T) {
	w, s := newWorld(t), newWorkspace(t)
	s.says(map[string]any{"login": "ada-bot", "id": 7, "type": "User"})
	n := integration.New{Provider: integration.GitHub, Settings: integration.Settings{Name: is("Shop"), AgentID: is(w.AgentID),
		Config: is(`{"apiUrl": "` + s.URL + `", "mention": "ada", "login": "somebody"}`), Secret: is(integration.SecretGiven{Signing: new(signing), Token: new(token)})}}
	made := w.create(n)
	require.JSONEq(t, `{"apiUrl": "`+s.URL+`", "mention": "ada", "login": "ada-bot", "allow": ["OWNER", "MEMBER", "COLLABORATOR"]}`, made.Config)
	require.Equal(t, []string{"/user Bearer " + token}, s.asked)

	changed, err := w.update(made.ID, integration.Settings{Config: is(`{"apiUrl": "` + s.URL + `", "mention": "bert", "allow": ["OWNER"]}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"apiUrl": "`+s.URL+`", "mention": "bert", "login": "ada-bot", "allow": ["OWNER"]}`, changed.Config)
	s.says(map[string]any{"message": "<script>"})
	_, err = w.update(made.ID, integration.Settings{Config: is(`{"apiUrl": "` + s.URL + `", "mention": "bert"}`)})
	refused(t, err, "the answer of the server cannot be understood")
	n.Config = is(`{}`)
	_, err = w.integrations.Create(t.Context(), w.caller(), n, nil)
	refused(t, err, "config.mention is required")
}
