package integration

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
)

// Secret is what an integration and its provider know of one another. A task tracker's Token is the secret of the OAuth client.
type Secret = channel.Secrets

// value is what the store of secrets has of an integration, as one JSON text.
type value struct {
	Version int `json:"version"`
	Secret
}

func secretID(tenantID, integrationID string) (secret.ID, error) {
	return secret.Of(tenantID, "integrations", integrationID)
}

func keep(ctx context.Context, to secret.Store, tenantID, integrationID string, v value) error {
	name, err := secretID(tenantID, integrationID)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return to.Put(ctx, name, string(b))
}

func drop(ctx context.Context, from secret.Store, tenantID, integrationID string) error {
	name, err := secretID(tenantID, integrationID)
	if err != nil {
		return err
	}
	return from.Delete(ctx, name)
}

// read is an integration's secret, of that version at least.
func read(ctx context.Context, from secret.StoreReader, tenantID, integrationID string, version int) (value, error) {
	name, err := secretID(tenantID, integrationID)
	if err != nil {
		return value{}, err
	}
	v, err := kept.Read(ctx, from, name, version, func(v value) int { return v.Version })
	if errors.Is(err, secret.ErrMissing) {
		err = ErrGone
	}
	return v, err
}

// ErrGone says that there is no secret in the store although the row has one.
var ErrGone = fault.Invalid("the secret of the integration is gone: give it again")

// Secrets reads the integrations' secrets, and remembers them: a version is one value for good. It is safe for concurrent use.
type Secrets struct {
	from   secret.StoreReader
	mutex  sync.Mutex
	latest map[[2]string]value // by tenant and integration
	last   map[[2]string]last  // likewise
}

// last is what the store gave that is not for good: strangers' deliveries must not ask it each time.
type last struct {
	version int    // of the row
	known   Secret // of a newer version
	err     error
	until   time.Time
}

// How long that is remembered.
const (
	newerTime  = time.Minute     // the change is over, or has failed
	brokenTime = 5 * time.Second // the store may be well again
)

// NewSecrets reads from a store.
func NewSecrets(from secret.StoreReader) *Secrets {
	return &Secrets{from: from, latest: map[[2]string]value{}, last: map[[2]string]last{}}
}

// remembered is how many secrets are kept in memory at most.
const remembered = 10_000

// Get is an integration's secret, of the version that its row says. Version 0 is none.
func (s *Secrets) Get(ctx context.Context, tenantID, integrationID string, version int) (Secret, error) {
	if version == 0 {
		return Secret{}, nil
	}
	name := [2]string{tenantID, integrationID}
	s.mutex.Lock()
	v, known := s.latest[name]
	before := s.last[name]
	s.mutex.Unlock()
	switch {
	case known && v.Version == version:
		return v.Secret, nil
	case before.version == version && time.Now().Before(before.until):
		return before.known, before.err
	}
	v, err := read(ctx, s.from, tenantID, integrationID, version)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case err != nil && ctx.Err() != nil: // that says nothing of the store
	case err != nil:
		put(s.last, name, last{version: version, err: err, until: time.Now().Add(brokenTime)})
	case v.Version != version: // of a change that is not over, or never was
		put(s.last, name, last{version: version, known: v.Secret, until: time.Now().Add(newerTime)})
	default:
		put(s.latest, name, v)
	}
	return v.Secret, err
}

func put[V any](in map[[2]string]V, name [2]string, v V) {
	if len(in) >= remembered {
		clear(in)
	}
	in[name] = v
}
