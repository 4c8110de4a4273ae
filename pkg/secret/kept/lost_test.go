package kept_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
)

func (w *world) exec(sql string) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), sql)
	require.NoError(w.t, err)
}

// Where the answer to a refresh token is lost on the way, the one that came with it is asked for once more, at once.
func TestAnAnswerThatIsLost(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		lost  error
		asked int
	}{
		"no answer":                 {&oauth.Error{Reason: "the authorization server: no answer"}, 2},
		"a failure of the server":   {&oauth.Error{Reason: "HTTP status 502", Status: http.StatusBadGateway}, 2},
		"and it says so":            {&oauth.Error{Reason: "server_error", Code: "server_error", Status: http.StatusInternalServerError}, 2},
		"too many questions":        {&oauth.Error{Reason: "HTTP status 429", Status: http.StatusTooManyRequests}, 1},
		"who are you":               {&oauth.Error{Reason: "invalid_client", Code: "invalid_client", Status: http.StatusUnauthorized}, 1},
		"whoever asks went away":    {context.Canceled, 1},
		"the access was taken back": {&oauth.Error{Reason: "no", Code: "invalid_grant", Status: http.StatusBadRequest}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w.exec(`update tool_servers set secret_version = 1`)
			w.put(soon(1, "first"))
			var asked []string
			v, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "old", func(_ context.Context, v kept.Secret) (oauth.Token, error) {
				if asked = append(asked, v.RefreshToken); len(asked) == 1 {
					return oauth.Token{}, c.lost
				}
				return oauth.Token{Access: "new", Refresh: "second"}, nil
			})
			require.Len(t, asked, c.asked)
			if c.asked == 1 {
				require.ErrorIs(t, err, c.lost)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"first", "first"}, asked)
			require.Equal(t, "second", v.RefreshToken)
		})
	}
	w.exec(`update tool_servers set secret_version = 1`)
	w.put(soon(1, ""))
	asked := 0
	_, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "old", func(context.Context, kept.Secret) (oauth.Token, error) {
		asked++
		return oauth.Token{}, &oauth.Error{Reason: "no answer"}
	})
	require.Error(t, err)
	require.Equal(t, 1, asked, "without a refresh token nothing is lost")
}

// Whoever asked for so long that another has the lease now keeps nothing over what that one keeps.
func TestALeaseThatAnotherHas(t *testing.T) {
	w := newWorld(t)
	w.put(soon(1, "first"))
	runOut := `update tool_servers set secret_lease = clock_timestamp() - interval '1 second'`
	v, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "", func(context.Context, kept.Secret) (oauth.Token, error) {
		w.exec(runOut)
		later, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "", func(context.Context, kept.Secret) (oauth.Token, error) {
			return oauth.Token{Access: "of the later", Refresh: "second"}, nil
		})
		require.NoError(t, err)
		require.Equal(t, "of the later", later.Access)
		return oauth.Token{Access: "of the earlier", Refresh: "lost"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []any{2, "of the later", "second"}, []any{v.Version, v.Access, v.RefreshToken})

	// While another has the lease, whoever lost it does not give it back either.
	w.put(soon(3, "third"))
	w.exec(`update tool_servers set secret_version = 3`)
	lost, err := w.secrets.Hold(t.Context(), w.tenant, w.row)
	require.NoError(t, err)
	w.exec(runOut)
	held, err := w.secrets.Hold(t.Context(), w.tenant, w.row)
	require.NoError(t, err)
	require.Error(t, lost.Put(t.Context(), kept.Secret{Version: 4, Value: "over it"}))
	require.NoError(t, lost.Release(t.Context(), 3))
	require.NoError(t, held.Put(t.Context(), kept.Secret{Version: 4, Value: "kept"}))
	require.NoError(t, held.Release(t.Context(), 4))
	v, err = w.secrets.Get(t.Context(), w.tenant, w.row, 4)
	require.NoError(t, err)
	require.Equal(t, "kept", v.Value)
	var free bool
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select secret_lease is null from tool_servers`).Scan(&free))
	require.True(t, free)
}

// Reading and asking end some time before the lease, and keeping what came has the lease's whole time again.
func TestTheTimesOfALease(t *testing.T) {
	w := newWorld(t)
	w.put(soon(1, "first"))
	lease := func() (until time.Time) {
		require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select secret_lease from tool_servers`).Scan(&until))
		return until
	}
	var taken time.Time
	v, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "", func(ctx context.Context, _ kept.Secret) (oauth.Token, error) {
		taken = lease()
		end, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.Less(t, end, taken.Add(-10*time.Second))
		w.store.put = func(ctx context.Context) {
			end, bounded := ctx.Deadline()
			require.True(t, bounded)
			again := lease()
			require.Greater(t, again, taken)
			require.Less(t, end, again.Add(-10*time.Second))
		}
		return oauth.Token{Access: "new", Refresh: "second"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, "second", v.RefreshToken)
	require.NotNil(t, w.store.put)
}
