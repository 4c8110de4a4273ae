package connection_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func (w *world) forgotten(id string) {
	w.t.Helper()
	_, err := w.kept(id)
	require.ErrorIs(w.t, err, secret.ErrMissing)
	require.Zero(w.t, w.count(`select count(*) from connections where id = $1`, id))
	_, err = token(w.t.Context(), w.connections, w.TenantID, id)
	require.Equal(w.t, fault.Missing("connection"), err)
}

func TestDeleting(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	require.Equal(t, 1, w.authority.Allowed())
	globex := w.db.World(t, "globex")
	for _, caller := range []tenant.Caller{w.user(w.TenantID, tenant.Member), {TenantID: globex.TenantID, UserID: globex.UserID, Role: tenant.Owner}} {
		_, err := w.connections.Delete(t.Context(), caller, made.ID)
		require.Equal(t, fault.Missing("connection"), err)
	}
	_, err := w.connections.Delete(t.Context(), w.ada, "no id")
	require.Equal(t, fault.Missing("connection"), err)
	w.works(made.ID, "u-ada")

	deleted, err := w.connections.Delete(t.Context(), w.ada, made.ID)
	require.NoError(t, err)
	require.Equal(t, shown(t, made), shown(t, deleted))
	require.Zero(t, w.authority.Allowed(), "revoked at the provider")
	w.forgotten(made.ID)
	_, err = w.connections.Delete(t.Context(), w.ada, made.ID)
	require.Equal(t, fault.Missing("connection"), err)

	again := w.connect(w.ada, "u-ada")
	require.NotEqual(t, made.ID, again.ID)
	_, err = w.connections.Delete(t.Context(), w.user(w.TenantID, tenant.Admin), again.ID)
	require.NoError(t, err)
	w.forgotten(again.ID)
}

// What the provider does not do keeps nobody from leaving it.
func TestDeletingWithoutTheProvider(t *testing.T) {
	w := newWorld(t)
	made := w.connect(w.ada, "u-ada")
	kept, err := w.kept(made.ID)
	require.NoError(t, err)
	w.authority.Down(http.StatusInternalServerError)
	_, err = w.connections.Delete(t.Context(), w.ada, made.ID)
	require.NoError(t, err)
	w.forgotten(made.ID)
	require.Contains(t, w.logs.String(), "the tokens of a connection could not be revoked")
	w.hidden(kept["access"].(string), kept["refreshToken"].(string), w.authority.ClientSecret)
	w.authority.Down(0)

	made = w.connect(w.ada, "u-ada")
	w.exec(`update integrations set enabled = false`)
	_, err = w.connections.Delete(t.Context(), w.ada, made.ID)
	require.NoError(t, err)
	w.forgotten(made.ID)
}

// Whoever renews a token while its connection is deleted leaves none behind.
func TestDeletingWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		made := w.connect(w.ada, "u-ada")
		w.age(made.ID, -2*time.Hour, -time.Hour)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 6 {
			all.Go(func() {
				<-begin
				if _, err := token(t.Context(), w.connections, w.TenantID, made.ID); err != nil {
					require.Contains(t, []fault.Type{fault.NotFound, fault.ValidationError}, fault.From(err).Type, err)
				}
			})
		}
		for range 2 {
			all.Go(func() {
				<-begin
				if _, err := w.connections.Delete(t.Context(), w.ada, made.ID); err != nil {
					require.Equal(t, fault.Missing("connection"), err)
				}
			})
		}
		close(begin)
		all.Wait()
		w.forgotten(made.ID)
		require.Zero(t, w.authority.Allowed())
	}
}

func TestLeaving(t *testing.T) {
	w := newWorld(t)
	bob := w.user(w.TenantID, tenant.Member)
	one, two, other := w.connect(w.ada, "u-ada"), w.connect(w.ada, "u-ada-at-home"), w.connect(bob, "u-bob")
	w.start(w.ada)
	w.exec(`delete from users where id = $1`, w.ada.UserID)
	_, err := token(t.Context(), w.connections, w.TenantID, one.ID)
	require.Equal(t, fault.Missing("connection"), err, "of no use without its user")
	require.NoError(t, w.connections.Leave(t.Context(), w.TenantID, w.ada.UserID))
	w.forgotten(one.ID)
	w.forgotten(two.ID)
	require.Equal(t, 1, w.authority.Allowed())
	require.Zero(t, w.count(`select count(*) from connection_states`))
	w.works(other.ID, "u-bob")
	require.NoError(t, w.connections.Leave(t.Context(), w.TenantID, ident.New()))
}

func TestListing(t *testing.T) {
	w := newWorld(t)
	bob, admin := w.user(w.TenantID, tenant.Member), w.user(w.TenantID, tenant.Admin)
	var made []string
	for _, c := range []struct {
		caller tenant.Caller
		person string
	}{{w.ada, "a"}, {bob, "b"}, {w.ada, "c"}, {admin, "d"}} {
		made = append(made, w.connect(c.caller, c.person).ID)
	}
	ids := func(caller tenant.Caller, after *connection.Cursor, limit int) (ids []string) {
		all, err := connection.List(t.Context(), w.db.App.In(caller.TenantID), caller, after, limit)
		require.NoError(t, err)
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.Equal(t, []string{made[0], made[2]}, ids(w.ada, nil, 10))
	require.Equal(t, []string{made[1]}, ids(bob, nil, 10))
	require.Equal(t, made, ids(admin, nil, 10))
	require.Equal(t, made[1:3], ids(admin, &connection.Cursor{ID: made[0]}, 2))
	globex := w.db.World(t, "globex")
	require.Empty(t, ids(tenant.Caller{TenantID: globex.TenantID, UserID: w.ada.UserID, Role: tenant.Owner}, nil, 10))
}
