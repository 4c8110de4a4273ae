package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// counting counts how often a store is read.
type counting struct {
	secret.StoreReader
	reads *atomic.Int32
}

func (c counting) Get(ctx context.Context, id secret.ID) (string, error) {
	c.reads.Add(1)
	return c.StoreReader.Get(ctx, id)
}

func TestSecretsAreReadOnceAVersion(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	made := w.create(w.generic())
	var reads atomic.Int32
	secrets := integration.NewSecrets(counting{w.store, &reads})
	get := func(by *world, id string, version int) (integration.Secret, error) {
		return secrets.Get(t.Context(), by.TenantID, id, version)
	}
	for range 3 {
		known, err := get(w, made.ID, 1)
		require.NoError(t, err)
		require.Equal(t, signing, known.Signing)
	}
	require.EqualValues(t, 1, reads.Load())
	none, err := get(w, made.ID, 0)
	require.NoError(t, err)
	require.Equal(t, integration.Secret{}, none)
	_, err = get(other, made.ID, 1)
	require.Equal(t, integration.ErrGone, err, "another tenant's, although it is remembered")
	_, err = get(w, ident.New(), 1)
	require.Equal(t, integration.ErrGone, err)

	_, err = w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Signing: new("another signing secret")})})
	require.NoError(t, err)
	reads.Store(0)
	known, err := get(w, made.ID, 1)
	require.NoError(t, err)
	require.Equal(t, signing, known.Signing, "who read the row a moment ago has the secret of then")
	for range 3 {
		known, err = get(w, made.ID, 2)
		require.NoError(t, err)
		require.Equal(t, "another signing secret", known.Signing)
	}
	require.EqualValues(t, 1, reads.Load())
}

// A change that failed after its secret was put is over at the next one: nobody remembers the secret of the failed one as that of the next.
func TestASecretThatWasNotCommitted(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	id, err := secret.Of(w.TenantID, "integrations", made.ID)
	require.NoError(t, err)
	require.NoError(t, w.store.Put(t.Context(), id, `{"version": 2, "signing": "of a change that failed"}`))
	secrets := integration.NewSecrets(w.store)
	known, err := secrets.Get(t.Context(), w.TenantID, made.ID, 1)
	require.NoError(t, err)
	require.Equal(t, "of a change that failed", known.Signing)
	changed, err := w.update(made.ID, integration.Settings{Secret: is(integration.SecretGiven{Signing: new("another signing secret")})})
	require.NoError(t, err)
	require.Equal(t, 3, changed.Version)
	known, err = secrets.Get(t.Context(), w.TenantID, made.ID, 3)
	require.NoError(t, err)
	require.Equal(t, "another signing secret", known.Signing)
}

func TestASecretThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	id, err := secret.Of(w.TenantID, "integrations", made.ID)
	require.NoError(t, err)
	require.NoError(t, w.store.Put(t.Context(), id, `"`+signing+`"`))
	_, err = w.known(made)
	require.Error(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v", err, err), signing)

	cut := errors.New("the line is cut")
	_, err = integration.NewSecrets(down{cut}).Get(t.Context(), w.TenantID, made.ID, 1)
	require.ErrorIs(t, err, cut)
}

// down is a store that cannot be reached.
type down struct{ err error }

func (d down) Get(context.Context, secret.ID) (string, error) { return "", d.err }

func TestSecretsForManyAtOnce(t *testing.T) {
	w := newWorld(t)
	made := w.create(w.generic())
	secrets := integration.NewSecrets(w.store)
	begin := make(chan struct{})
	var g errgroup.Group
	for range 16 {
		g.Go(func() error {
			<-begin
			known, err := secrets.Get(t.Context(), w.TenantID, made.ID, 1)
			if err == nil && known.Signing != signing {
				err = errors.New("another secret")
			}
			return err
		})
	}
	close(begin)
	require.NoError(t, g.Wait())
}

// What is not for good is remembered for a while, too: strangers do not have the store asked each time.
func TestSecretsThatAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := secret.Dir(t.TempDir(), "a key for tests, 32 characters..")
		require.NoError(t, err)
		tenantID, id := ident.New(), ident.New()
		name, err := secret.Of(tenantID, "integrations", id)
		require.NoError(t, err)
		var reads atomic.Int32
		from := &switched{StoreReader: counting{store, &reads}, err: errors.New("the line is cut")}
		secrets := integration.NewSecrets(from)
		get := func(version int, want string, read int32) {
			t.Helper()
			reads.Store(0)
			for range 10 {
				known, err := secrets.Get(t.Context(), tenantID, id, version)
				require.Equal(t, want, known.Signing)
				require.Equal(t, want == "", err != nil)
			}
			require.Equal(t, read, reads.Load())
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = secrets.Get(gone, tenantID, id, 1)
		require.Error(t, err)
		require.NoError(t, store.Put(t.Context(), name, `{"version": 2, "signing": "of a change that is not over"}`))

		get(1, "", 1) // whoever was cancelled has learnt nothing
		from.err = nil
		get(1, "", 0)
		<-time.After(5 * time.Second)
		get(1, "of a change that is not over", 1)
		<-time.After(time.Minute - 1)
		get(1, "of a change that is not over", 0)
		<-time.After(1)
		get(1, "of a change that is not over", 1)
		get(2, "of a change that is not over", 1)
		<-time.After(time.Hour)
		get(2, "of a change that is not over", 0)
	})
}

// switched is a store that cannot be reached while it has an error.
type switched struct {
	secret.StoreReader
	err error
}

func (s *switched) Get(ctx context.Context, id secret.ID) (string, error) {
	v, err := s.StoreReader.Get(ctx, id)
	if s.err != nil {
		return "", s.err
	}
	return v, err
}
