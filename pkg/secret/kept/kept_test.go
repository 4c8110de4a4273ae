package kept_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// late is a store that, some times, gives the values before the last first.
type late struct {
	secret.Store
	mu     sync.Mutex
	before []string
	asked  int
	put    func(ctx context.Context) // called when a value is put
}

// Put implements secret.Store.
func (l *late) Put(ctx context.Context, id secret.ID, value string) error {
	if l.put != nil {
		l.put(ctx)
	}
	return l.Store.Put(ctx, id, value)
}

// Get implements secret.Store.
func (l *late) Get(ctx context.Context, id secret.ID) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if len(l.before) > 0 {
		v := l.before[0]
		l.before = l.before[1:]
		return v, nil
	}
	return l.Store.Get(ctx, id)
}

// world is a row of tool servers, and its values.
type world struct {
	t       *testing.T
	db      *pgtest.DB
	store   *late
	secrets *kept.Secrets
	tenant  string
	row     string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: pgtest.New(t), row: ident.New()}
	w.tenant = w.db.World(t, "acme").TenantID
	store, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	w.store = &late{Store: store}
	w.secrets = kept.New(w.db.App, w.store, kept.Place{Table: "tool_servers", Word: "servers", Noun: "tool server"})
	_, err = w.db.Superuser(t).Exec(t.Context(), `insert into tool_servers (tenant_id, id, name, url, transport, auth, secret_version) values ($1, $2, 'a', 'https://a.test', 'AUTO', 'OAUTH', 1)`, w.tenant, w.row)
	require.NoError(t, err)
	return w
}

func (w *world) put(v kept.Secret) {
	require.NoError(w.t, w.secrets.Put(w.t.Context(), w.tenant, w.row, v))
}

// soon is a value whose token is to be renewed, and good until then.
func soon(version int, refresh string) kept.Secret {
	return kept.Secret{Version: version, RefreshToken: refresh, Access: "old", Obtained: time.Now().Add(-56 * time.Minute), Expires: time.Now().Add(4 * time.Minute)}
}

func text(t *testing.T, v kept.Secret) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestAnOlderValueIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.put(kept.Secret{Version: 3, Value: "new"})
	w.store.before = []string{text(t, kept.Secret{Version: 1, Value: "old", ClientSecret: "older"}), text(t, kept.Secret{Version: 2, Value: "old"})}
	v, err := w.secrets.Get(t.Context(), w.tenant, w.row, 3)
	require.NoError(t, err)
	require.Equal(t, kept.Secret{Version: 3, Value: "new"}, v, "and nothing of an older one")
	_, err = w.secrets.Get(t.Context(), w.tenant, w.row, 4)
	require.ErrorIs(t, err, kept.ErrStale)
	require.Equal(t, 8, w.store.asked)

	w.store.before = []string{`{"value":"s3cret`}
	_, err = w.secrets.Get(t.Context(), w.tenant, w.row, 1)
	require.EqualError(t, err, "the secret is not what was put")
	require.NoError(t, w.secrets.Drop(t.Context(), w.tenant, w.row))
	_, err = w.secrets.Get(t.Context(), w.tenant, w.row, 1)
	require.ErrorIs(t, err, secret.ErrMissing)
	err = w.secrets.Put(t.Context(), w.tenant, w.row, kept.Secret{Access: strings.Repeat("a", 4096), RefreshToken: strings.Repeat("r", 4096)})
	require.Equal(t, fault.Invalid("the tokens of the tool server are too long to be kept"), err)
}

// Whoever kept the last value may have died before the row said so. One that asked with the value before it finds that out.
func TestARefreshTokenThatWasReplaced(t *testing.T) {
	w := newWorld(t)
	last := soon(2, "second")
	w.put(last)
	before := text(t, soon(1, "first"))
	w.store.before = []string{before, before}
	var asked []string
	v, err := w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, "", func(_ context.Context, v kept.Secret) (oauth.Token, error) {
		asked = append(asked, v.RefreshToken)
		if v.RefreshToken == "first" {
			return oauth.Token{}, &oauth.Error{Code: "invalid_grant", Reason: "no"}
		}
		return oauth.Token{Access: "new", Refresh: "third"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, asked)
	require.Equal(t, []any{3, "new", "third"}, []any{v.Version, v.Access, v.RefreshToken})
	var version int
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select secret_version from tool_servers where secret_lease is null`).Scan(&version))
	require.Equal(t, 3, version)
}

func TestATokenThatCannotBeRenewedNow(t *testing.T) {
	w := newWorld(t)
	v := soon(1, "")
	w.put(v)
	fresh := func(refused string, with error) (kept.Secret, error) {
		return w.secrets.Fresh(t.Context(), w.tenant, w.row, 1, refused, func(context.Context, kept.Secret) (oauth.Token, error) { return oauth.Token{}, with })
	}
	away, over := &oauth.Error{Reason: "HTTP status 503"}, &oauth.Error{Reason: "no", Code: "invalid_grant"}
	got, err := fresh("", away)
	require.NoError(t, err, "it is good for four minutes")
	require.Equal(t, "old", got.Access)
	_, err = fresh("old", away)
	require.ErrorIs(t, err, away, "nobody takes it")
	_, err = fresh("", over)
	require.ErrorIs(t, err, over)
	_, err = fresh("", errors.Join(errors.New("more"), over))
	require.ErrorIs(t, err, over)
	v.Expires = time.Now()
	w.put(v)
	_, err = fresh("", away)
	require.ErrorIs(t, err, away)
	_, err = w.secrets.Fresh(t.Context(), w.tenant, ident.New(), 1, "", nil)
	require.ErrorIs(t, err, secret.ErrMissing)
}

// The lease is one's at a time, and is waited for.
func TestHold(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, most := 0, 0
	for range 4 {
		all.Go(func() {
			lease, err := w.secrets.Hold(t.Context(), w.tenant, w.row)
			require.NoError(t, err)
			mu.Lock()
			holders++
			most = max(most, holders)
			mu.Unlock()
			require.NoError(t, lease.Put(t.Context(), kept.Secret{Version: lease.Version + 1}))
			mu.Lock()
			holders--
			mu.Unlock()
			require.NoError(t, lease.Release(t.Context(), lease.Version+1))
		})
	}
	all.Wait()
	require.Equal(t, 1, most)
	v, err := w.secrets.Get(t.Context(), w.tenant, w.row, 5)
	require.NoError(t, err)
	require.Equal(t, 5, v.Version)
	_, err = w.secrets.Hold(t.Context(), w.tenant, ident.New())
	require.Equal(t, fault.Missing("tool server"), err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = w.secrets.Hold(ctx, w.tenant, w.row)
	require.NoError(t, err)
	cancel()
	_, err = w.secrets.Hold(ctx, w.tenant, w.row)
	require.ErrorIs(t, err, context.Canceled)
}
