package connection_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// age has the connection's token obtained and ending then.
func (w *world) age(id string, obtained, expires time.Duration) {
	w.t.Helper()
	k, err := w.kept(id)
	require.NoError(w.t, err)
	k["obtained"], k["expires"] = time.Now().Add(obtained), time.Now().Add(expires)
	w.keep(id, k)
}

func (w *world) only(caller tenant.Caller) connection.Connection {
	w.t.Helper()
	all := w.list(caller)
	require.Len(w.t, all, 1)
	return all[0]
}

// Of 20 who find the token at its end, in two processes, one renews it, and all go on with what that one got: the refresh token is good once, and the provider
// takes everything back from who uses it twice.
func TestOneRenewsTheToken(t *testing.T) {
	w := newWorld(t)
	made, other := w.connect(w.ada, "u-ada"), w.process()
	for round := range 3 {
		w.age(made.ID, -2*time.Hour, -time.Hour)
		before := w.authority.Given()
		var all sync.WaitGroup
		begin := make(chan struct{})
		tokens := make([]string, 20)
		for n := range tokens {
			all.Go(func() {
				by := w.connections
				if n%2 == 0 {
					by = other
				}
				<-begin
				var err error
				tokens[n], err = token(t.Context(), by, w.TenantID, made.ID)
				require.NoError(t, err)
			})
		}
		close(begin)
		all.Wait()
		require.Equal(t, before+1, w.authority.Given(), "round %d", round)
		for _, token := range tokens {
			require.Equal(t, tokens[0], token)
		}
		w.works(made.ID, "u-ada")
	}
	require.Equal(t, 1, w.count(`select count(*) from connections where secret_lease is null and secret_version = 4`))
}

func TestATokenIsRenewedEarly(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	for _, c := range []struct {
		obtained, expires time.Duration
		renewed           bool
	}{
		{-30 * time.Minute, 30 * time.Minute, false},
		{-54 * time.Minute, 5*time.Minute + 30*time.Second, false},
		{-56 * time.Minute, 5*time.Minute - 30*time.Second, true},
		{-2 * time.Hour, -time.Hour, true},
	} {
		w.age(made.ID, c.obtained, c.expires)
		before := w.authority.Given()
		w.works(made.ID, "u-ada")
		require.Equal(t, c.renewed, w.authority.Given() > before, c)
	}
	// Whoever renews it may have died: until the lease ends others go on with the token, and then one of them renews it.
	w.age(made.ID, -56*time.Minute, 4*time.Minute)
	before := w.authority.Given()
	w.exec(`update connections set secret_lease = clock_timestamp() + interval '1 hour'`)
	w.works(made.ID, "u-ada")
	require.Equal(t, before, w.authority.Given())
	w.exec(`update connections set secret_lease = clock_timestamp() - interval '1 second'`)
	w.works(made.ID, "u-ada")
	require.Equal(t, before+1, w.authority.Given())
}

// A refresh token that was replaced is kept also where the store does not take it at once, and although whoever asked for it has gone.
func TestARotatedTokenIsKept(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	first, err := w.kept(made.ID)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.authority.Gives = cancel // whoever asks goes away when the token is on its way
	for range 2 {
		w.age(made.ID, -2*time.Hour, -time.Hour)
		w.tokens.broken.Store(2)
		_, _ = token(ctx, w.connections, w.TenantID, made.ID)
		w.authority.Gives = nil
		ctx = t.Context()
	}
	last, err := w.kept(made.ID)
	require.NoError(t, err)
	require.NotEqual(t, first["refreshToken"], last["refreshToken"])
	w.age(made.ID, -2*time.Hour, -time.Hour)
	w.works(made.ID, "u-ada")
	require.Equal(t, connection.Active, w.only(w.ada).Status)
}

// What is good until it is taken back is not given again: the one there is stays.
func TestARefreshTokenThatStays(t *testing.T) {
	w := newWorld(t)
	w.authority.Stays = true
	made := w.connect(w.ada, "u-ada")
	for range 2 {
		w.age(made.ID, -2*time.Hour, -time.Hour)
		w.works(made.ID, "u-ada")
	}
	require.Equal(t, 3, w.authority.Given())
}

func TestAccessThatIsTakenBack(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	kept, err := w.kept(made.ID)
	require.NoError(t, err)
	w.authority.TakeBack()
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := w.whoami(w.connections, made.ID)
			says(t, err, "the user has to connect again: the authorization server refuses: invalid_grant")
		})
	}
	all.Wait()
	now := w.only(w.ada)
	require.Equal(t, connection.Reconnect, now.Status)
	require.Equal(t, "the authorization server refuses: invalid_grant", *now.Reason)
	w.hidden(kept["access"].(string), kept["refreshToken"].(string))
	asked := w.authority.Asked()
	_, err = w.whoami(w.connections, made.ID)
	says(t, err, "the user has to connect again")
	require.Equal(t, asked, w.authority.Asked(), "nobody is asked again")

	again := w.connect(w.ada, "u-ada")
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, connection.Active, again.Status)
	require.Nil(t, again.Reason)
	w.works(made.ID, "u-ada")
}

// A provider that cannot be reached, or is in trouble, has taken nothing back.
func TestAProviderThatIsDown(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	for _, status := range []int{500, 502, 503, 429, 404} {
		w.authority.Down(status)
		w.age(made.ID, -56*time.Minute, 4*time.Minute)
		w.works(made.ID, "u-ada") // the token is good for four minutes
		w.age(made.ID, -2*time.Hour, -time.Hour)
		_, err := w.whoami(w.connections, made.ID)
		says(t, err, "the connection cannot be used now: the authorization server answers with HTTP status ")
		require.Equal(t, connection.Active, w.only(w.ada).Status, status)
	}
	w.authority.Down(0)
	secretOfClient := w.authority.ClientSecret
	w.authority.ClientSecret = "another one"
	_, err := w.whoami(w.connections, made.ID)
	says(t, err, "the connection cannot be used now: the authorization server refuses: invalid_client") // the client's matter, not the user's
	w.authority.ClientSecret = secretOfClient
	w.works(made.ID, "u-ada")

	w.age(made.ID, -2*time.Hour, -time.Hour)
	w.provider.Close()
	_, err = w.whoami(w.connections, made.ID)
	says(t, err, "the connection cannot be used now: the authorization server: ")
	require.Equal(t, connection.Active, w.only(w.ada).Status)
}

// A token that the provider does not take is renewed, once; what it does not allow, or does not do, is another thing.
func TestATokenThatIsRefused(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	w.authority.Expire()
	w.works(made.ID, "u-ada")
	require.Equal(t, 2, w.authority.Given())
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError} {
		w.api.Store(int32(status))
		_, err := w.whoami(w.connections, made.ID)
		var e *provider.Error
		require.ErrorAs(t, err, &e, status)
	}
	require.Equal(t, 2, w.authority.Given())
	require.Equal(t, connection.Active, w.only(w.ada).Status)

	w.api.Store(http.StatusUnauthorized)
	_, err := w.whoami(w.connections, made.ID)
	says(t, err, "the user has to connect again: the provider does not take the token that it has just given")
	require.Equal(t, 3, w.authority.Given())
	require.Equal(t, connection.Reconnect, w.only(w.ada).Status)
}

// Somebody connects again while another call finds out that the access was over: the new one stays.
func TestConnectingAgainMeanwhile(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	calls := 0
	err := w.connections.Use(t.Context(), w.TenantID, made.ID, func(context.Context, *http.Client, tracker.Config, string) error {
		if calls++; calls == 2 {
			w.connect(w.ada, "u-ada")
		}
		return &provider.Error{Kind: provider.Denied, Status: http.StatusUnauthorized, Reason: "no"}
	})
	says(t, err, "the user has to connect again")
	require.Equal(t, 2, calls)
	require.Equal(t, connection.Active, w.only(w.ada).Status)
	w.works(made.ID, "u-ada")
}

func TestATokenThatCannotBeRenewed(t *testing.T) {
	w := newWorld(t)
	w.authority.NoRefresh = true
	made := w.connect(w.ada, "u-ada")
	w.age(made.ID, -56*time.Minute, 4*time.Minute)
	w.works(made.ID, "u-ada")
	w.age(made.ID, -2*time.Hour, -time.Hour)
	_, err := w.whoami(w.connections, made.ID)
	says(t, err, "the user has to connect again: the access has ended, and the provider gave nothing to renew it with")
	require.Equal(t, connection.Reconnect, w.only(w.ada).Status)
	require.Equal(t, 1, w.authority.Given(), "least of all a token of the client's own")

	again := w.connect(w.ada, "u-ada")
	name, err := secret.Of(w.TenantID, "connections", again.ID)
	require.NoError(t, err)
	require.NoError(t, w.tokens.Delete(t.Context(), name))
	_, err = w.whoami(w.connections, again.ID)
	says(t, err, "the user has to connect again: its tokens are gone")
}

// Tokens go where they were given for, and nowhere else.
func TestAnIntegrationThatMoves(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	var reached atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	for _, field := range []string{"apiUrl", "authUrl"} {
		for _, at := range []time.Duration{-time.Hour, time.Hour} {
			var config map[string]any
			require.NoError(t, json.Unmarshal([]byte(w.integration.Config), &config))
			config[field] = elsewhere.URL
			moved, err := json.Marshal(config)
			require.NoError(t, err)
			w.age(made.ID, -2*time.Hour, at)
			change := integration.Settings{Config: set(string(moved)), Secret: set(integration.SecretGiven{Token: &w.authority.ClientSecret})}
			w.update(change)
			_, err = w.whoami(w.connections, made.ID)
			says(t, err, "the user has to connect again: the integration is with another place now")
			change.Config = set(w.integration.Config)
			w.update(change)
			w.connect(w.ada, "u-ada")
		}
	}
	w.update(integration.Settings{Config: set(w.integration.Config)})
	w.works(made.ID, "u-ada")
	require.Zero(t, reached.Load())
}

func (w *world) update(s integration.Settings) {
	w.t.Helper()
	_, err := integration.Open(w.db.App, w.integrations, egress.Config{Loopback: true}).Update(w.t.Context(), w.TenantID, w.integration.ID, s)
	require.NoError(w.t, err)
}

func TestWhoseConnectionCanBeUsed(t *testing.T) {
	w := newWorld(t)
	bob := w.user(w.TenantID, tenant.Member)
	one, two := w.connect(w.ada, "u-ada"), w.connect(bob, "u-bob")
	w.works(one.ID, "u-ada")
	w.works(two.ID, "u-bob")
	w.exec(`update users set status = 'disabled' where id = $1`, bob.UserID)
	for _, c := range []struct{ tenantID, id string }{{w.TenantID, two.ID}, {w.TenantID, ident.New()}, {w.TenantID, "no id"}, {w.db.World(t, "globex").TenantID, one.ID}} {
		_, err := token(t.Context(), w.connections, c.tenantID, c.id)
		require.Equal(t, fault.Missing("connection"), err)
	}
	w.exec(`update users set status = 'active' where id = $1`, bob.UserID)
	w.works(two.ID, "u-bob")
}
