package integration_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	same, err := w.update(made.ID, integration.Settings{})
	require.NoError(t, err)
	require.False(t, same.UpdatedAt.Before(made.UpdatedAt.Time))
	same.UpdatedAt = made.UpdatedAt
	require.Equal(t, made, same)

	w.exec(`update integrations set error = 'not posted'`)
	changed, err := w.update(made.ID, integration.Settings{Name: is("Shop"), Enabled: is(false), RateLimit: is(1)})
	require.NoError(t, err)
	require.Equal(t, []any{"Shop", false, 1, "not posted"}, []any{changed.Name, changed.Enabled, changed.RateLimit, *changed.Error})
	require.Equal(t, changed, w.get(made.ID))
	changed, err = w.update(made.ID, integration.Settings{Config: is(`{"replyUrl": "http://127.0.0.1:9/"}`)})
	require.NoError(t, err)
	require.Nil(t, changed.Error, "it was of what was")
	require.JSONEq(t, `{"replyUrl": "http://127.0.0.1:9/"}`, changed.Config)
	changed, err = w.update(made.ID, integration.Settings{Config: null[string]()})
	require.NoError(t, err)
	require.Equal(t, `{}`, changed.Config)
	require.Equal(t, changed, w.get(made.ID))

	for says, n := range map[string]integration.Settings{
		"name must not be null":   {Name: null[string]()},
		"agentId is required":     {AgentID: null[string]()},
		"agentId names no agent":  {AgentID: is(ident.New())},
		"rateLimit must be from":  {RateLimit: is(-1)},
		"secret must not be null": {Secret: null[integration.SecretGiven]()},
		"secret.signing must be":  {Secret: is(integration.SecretGiven{Signing: new("short")})},
		"secret.token is not for": {Secret: is(integration.SecretGiven{Token: new("x")})},
	} {
		_, err := w.update(made.ID, n)
		refused(t, err, says)
	}
	require.Equal(t, changed, w.get(made.ID))

	w.exec(`update agents set status = 'archived'`)
	off, err := w.update(made.ID, integration.Settings{Enabled: is(false)})
	require.NoError(t, err, "one whose agent was archived since can still be changed")
	require.False(t, off.Enabled)

	other := w.neighbour("globex")
	for _, id := range []string{made.ID, ident.New(), "no id"} {
		_, err := other.update(id, integration.Settings{Name: is("Theirs")})
		require.Equal(t, fault.Missing("integration"), err, id)
	}
}

func TestASecretIsReplacedInParts(t *testing.T) {
	w, s := newWorld(t), newWorkspace(t)
	made := w.create(w.slack(s))
	secrets := integration.NewSecrets(w.store)
	known, err := secrets.Get(t.Context(), w.TenantID, made.ID, made.Version)
	require.NoError(t, err)
	require.Equal(t, integration.Secret{Signing: signing, Token: token}, known)

	changed, err := w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Token: new("xoxb-new")})})
	require.NoError(t, err)
	require.Equal(t, 2, changed.Version)
	require.Equal(t, changed, w.get(made.ID))
	require.Equal(t, []string{"/api/auth.test Bearer " + token, "/api/auth.test Bearer xoxb-new"}, s.asked)
	known, err = secrets.Get(t.Context(), w.TenantID, made.ID, 2)
	require.NoError(t, err)
	require.Equal(t, integration.Secret{Signing: signing, Token: "xoxb-new"}, known)

	s.says(map[string]any{"ok": false, "error": "account_inactive"})
	_, err = w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Token: new("xoxb-bad")})})
	refused(t, err, "account_inactive")
	known, err = w.known(w.get(made.ID))
	require.NoError(t, err)
	require.Equal(t, "xoxb-new", known.Token, "what is refused changes nothing")
	renamed, err := w.update(made.ID, integration.Settings{Name: is("Acme workspace")})
	require.NoError(t, err, "and nobody is asked for a name")
	require.Equal(t, changed.Config, renamed.Config)
	require.Len(t, s.asked, 3)
}

// A token goes to nobody but the one that it was given for, whatever an admin writes into the configuration.
func TestASecretStaysWithItsOrigin(t *testing.T) {
	w, s, stranger := newWorld(t), newWorkspace(t), newWorkspace(t)
	made := w.create(w.slack(s))
	elsewhere := is(`{"apiUrl": "` + stranger.URL + `/api"}`)
	_, err := w.update(made.ID, integration.Settings{Config: elsewhere})
	refused(t, err, "secret.token must be given again")
	_, err = w.update(made.ID, integration.Settings{Config: elsewhere, Secret: is(integration.SecretGiven{Signing: new(signing)})})
	refused(t, err, "secret.token must be given again")
	_, err = w.update(made.ID, integration.Settings{Config: null[string]()})
	refused(t, err, "secret.token must be given again")
	require.Empty(t, stranger.asked)
	same, err := w.update(made.ID, integration.Settings{Config: is(`{"apiUrl": "` + s.URL + `/other"}`)})
	require.NoError(t, err, "the same origin")
	require.JSONEq(t, `{"apiUrl": "`+s.URL+`/other", "botUserId": "U0BOT", "teamId": "T0001", "enterpriseId": "E0001"}`, same.Config)
	moved, err := w.update(made.ID, integration.Settings{Config: elsewhere, Secret: is(integration.SecretGiven{Token: new("xoxb-theirs")})})
	require.NoError(t, err)
	require.Equal(t, []string{"/api/auth.test Bearer xoxb-theirs"}, stranger.asked)
	require.Equal(t, moved, w.get(made.ID))

	client := w.create(integration.New{Provider: integration.Linear, Settings: integration.Settings{Name: is("Linear"), Config: is(`{"clientId": "a", "redirectUris": ["https://a.test/"], "authUrl": "https://linear.test"}`),
		Secret: is(integration.SecretGiven{Token: new("oauth")})}})
	for _, config := range []string{`{"clientId": "a", "redirectUris": ["https://a.test/"]}`, `{"clientId": "a", "redirectUris": ["https://a.test/"], "authUrl": "https://linear.test:444"}`,
		`{"clientId": "a", "redirectUris": ["https://a.test/"], "authUrl": "https://linear.test", "apiUrl": "https://other.test"}`} {
		_, err = w.update(client.ID, integration.Settings{Config: is(config)})
		refused(t, err, "secret.token must be given again")
	}
	_, err = w.update(client.ID, integration.Settings{Config: is(`{"clientId": "b", "redirectUris": ["https://a.test/"], "authUrl": "https://LINEAR.test:443"}`)})
	require.NoError(t, err)
}

// A secret that the store has lost is given anew, whole.
func TestASecretThatIsGone(t *testing.T) {
	w, s := newWorld(t), newWorkspace(t)
	made := w.create(w.slack(s))
	w.lose(made.ID)
	_, err := w.known(made)
	require.Equal(t, integration.ErrGone, err)
	_, err = w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Token: new(token)})})
	refused(t, err, "secret.signing is required")
	changed, err := w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Token: new(token), Signing: new(signing)})})
	require.NoError(t, err)
	known, err := w.known(changed)
	require.NoError(t, err)
	require.Equal(t, integration.Secret{Signing: signing, Token: token}, known)
}

// Of changes that are made at once each is there, or was refused: the row and the secret are of one change.
func TestUpdatesAtOnce(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	const callers = 12
	var errs [callers]error
	begin := make(chan struct{})
	var g errgroup.Group
	for n := range callers {
		g.Go(func() error {
			<-begin
			_, errs[n] = w.update(made.ID, integration.Settings{RateLimit: is(n + 1), Secret: is(integration.SecretGiven{Signing: new(fmt.Sprint("a signing secret, number ", n+1))})})
			return nil
		})
	}
	close(begin)
	require.NoError(t, g.Wait())
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		refused(t, err, "being changed by somebody else")
	}
	after := w.get(made.ID)
	require.Positive(t, done)
	require.Equal(t, 1+done, after.Version)
	known, err := w.known(after)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint("a signing secret, number ", after.RateLimit), known.Signing)
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	made, kept := w.create(w.generic()), w.create(w.generic(func(n *integration.New) { n.Name = is("Kept") }))
	remove := func(by *world, id string) (integration.Integration, error) {
		return integration.Delete(t.Context(), w.db.App, w.store, by.TenantID, id)
	}
	for _, id := range []string{made.ID, ident.New(), "no id"} {
		_, err := remove(other, id)
		require.Equal(t, fault.Missing("integration"), err)
	}
	w.exec(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, gen_random_uuid(), 'AUTO', 1, 'AUTO', $2, $3)`, w.TenantID, w.AgentID, w.SpaceID)
	w.exec(`insert into integration_threads (tenant_id, integration_id, key, thread_uuid, address) select tenant_id, $1, 'k', uuid, '{}' from threads`, made.ID)
	w.exec(`alter table messages drop constraint messages_tenant_id_turn_id_fkey`) // the turns are of no interest here
	say := func(body string) {
		w.exec(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id) select tenant_id, gen_random_uuid(), uuid, 1 + (select count(*) from messages), 'assistant', $1,
			gen_random_uuid() from threads`, body)
	}
	say("First.")
	w.exec(`insert into integration_replies (tenant_id, id, integration_id, thread_uuid, turn_id, status) select tenant_id, gen_random_uuid(), $1, uuid, gen_random_uuid(), 'posting' from threads`, made.ID)

	w.exec(`insert into connections (tenant_id, id, user_id, integration_id, provider, provider_user_id) values ($1, gen_random_uuid(), $2, $3, 'linear', 'u')`, w.TenantID, w.UserID, made.ID)
	_, err := remove(w, made.ID)
	refused(t, err, "their connections must be deleted first")
	require.Equal(t, made, w.get(made.ID))
	require.Equal(t, 2, w.secrets())
	w.exec(`delete from connections`)

	deleted, err := remove(w, made.ID)
	require.NoError(t, err)
	require.Equal(t, made, deleted)
	_, err = integration.Get(t.Context(), w.db.App.In(w.TenantID), made.ID)
	require.Equal(t, fault.Missing("integration"), err)
	require.Equal(t, 1, w.secrets())
	require.Equal(t, 2, query[int](w, `select count(*) from integration_replies where status = 'failed' and next_at is null and finished_at is not null and error = 'the integration was deleted'`))
	require.Equal(t, 1, query[int](w, `select count(*) from integration_threads join threads on uuid = thread_uuid`), "the thread stays")
	say("Later.")
	require.Equal(t, 2, query[int](w, `select count(*) from integration_replies`), "and nobody waits outside for what is said in it")
	require.Equal(t, kept, w.get(kept.ID))
	_, err = remove(w, made.ID)
	require.Equal(t, fault.Missing("integration"), err)
}

// What is left of a deletion that failed is an integration that can be deleted again.
func TestDeleteThatFails(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	down := errors.New("the store is down")
	_, err := integration.Delete(t.Context(), w.db.App, broken{w.store, down}, w.TenantID, made.ID)
	require.ErrorIs(t, err, down)
	require.Equal(t, made, w.get(made.ID))
	_, err = integration.Delete(t.Context(), w.db.App, w.store, w.TenantID, made.ID)
	require.NoError(t, err)
	require.Zero(t, w.secrets())
}
