package webhook

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Given is what its owner says of a webhook, and the secret that a task tracker signs with, which is never given back: null takes it away.
type Given struct {
	Settings
	SigningSecret text.Patch[string] `json:"signing_secret,omitzero"`
}

// place is where the secrets are. What belongs to a version never changes, and no version comes twice: a row that has none any more says which was the last
// by a number below zero.
var place = kept.Place{Table: "webhooks", Word: "webhooks", Noun: "webhook"}

const maxSecret = 500 // characters

// Secrets are the signing secrets of task trackers' webhooks. It is safe for concurrent use.
type Secrets struct {
	db     *postgres.DB
	in     secret.Store
	mutex  sync.Mutex
	latest map[string]kept.Secret // by webhook
}

// NewSecrets keeps them in a store.
func NewSecrets(db *postgres.DB, in secret.Store) *Secrets {
	return &Secrets{db: db, in: in, latest: map[string]kept.Secret{}}
}

// remembered is how many secrets are kept in memory at most.
const remembered = 10_000

// Get is a webhook's secret of a version. It is remembered: a version is one value for good.
func (s *Secrets) Get(ctx context.Context, tenantID, webhookID string, version int) (string, error) {
	s.mutex.Lock()
	v, known := s.latest[webhookID]
	s.mutex.Unlock()
	if known && v.Version == version {
		return v.Value, nil
	}
	v, err := Secret(ctx, s.in, tenantID, webhookID, version)
	if err != nil || v.Version != version { // a newer one is of a change that is not over, or never was
		return v.Value, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.latest) >= remembered {
		clear(s.latest)
	}
	s.latest[webhookID] = v
	return v.Value, nil
}

// Set does with the secret of a webhook, which tx has locked, what was given. It comes last in tx: what is left of one that fails then is a webhook whose
// secret must be given again, and nothing is taken that is not signed.
func (s *Secrets) Set(ctx context.Context, tx pgx.Tx, w *Webhook, given text.Patch[string]) error {
	if given.Value != nil {
		if w.TargetType != Task {
			return fault.Invalid("signing_secret is for target_type task")
		}
		if n := len(*given.Value); n == 0 || n > maxSecret || strings.ContainsFunc(*given.Value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return fault.Invalid("signing_secret must be 1 to %d visible characters", maxSecret)
		}
		return s.keep(ctx, tx, w, *given.Value)
	}
	if w.secret <= 0 || !given.Set && w.TargetType == Task {
		return nil
	}
	w.secret, w.HasSecret = -w.secret, false
	if err := version(ctx, tx, w); err != nil {
		return err
	}
	return s.Drop(ctx, w.TenantID, w.ID)
}

func (s *Secrets) keep(ctx context.Context, tx pgx.Tx, w *Webhook, value string) error {
	w.secret, w.HasSecret = max(w.secret, -w.secret)+1, true
	if err := version(ctx, tx, w); err != nil {
		return err
	}
	return kept.New(s.db, s.in, place).Put(ctx, w.TenantID, w.ID, kept.Secret{Version: w.secret, Value: value})
}

func version(ctx context.Context, tx pgx.Tx, w *Webhook) error {
	return tx.QueryRow(ctx, `update webhooks set secret_version = $2, version = version + 1, updated_at = clock_timestamp() where id = $1 returning version, updated_at`, w.ID, w.secret).
		Scan(&w.Version, &w.UpdatedAt)
}

// Drop takes a value away.
func (s *Secrets) Drop(ctx context.Context, tenantID, webhookID string) error {
	return kept.New(s.db, s.in, place).Drop(ctx, tenantID, webhookID)
}

// Shake keeps the secret that a tracker names in its handshake, while the webhook has none. The same one may be named again; another one is ErrShaken: whoever
// knows the webhook's address does not change what it trusts.
func (s *Secrets) Shake(ctx context.Context, tenantID, webhookID, given string) error {
	return s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		w, err := one(ctx, tx, webhookID, ` for no key update`)
		if err != nil {
			return err
		}
		if w.secret <= 0 {
			return s.keep(ctx, tx, &w, given)
		}
		now, err := Secret(ctx, s.in, tenantID, webhookID, w.secret)
		if err == nil && subtle.ConstantTimeCompare([]byte(now.Value), []byte(given)) != 1 {
			err = ErrShaken
		}
		return err
	})
}

// ErrShaken refuses a handshake.
var ErrShaken = fault.New(fault.Unauthorized, "the webhook has another secret: take it away first")

// Secret is a webhook's secret, of that version at least.
func Secret(ctx context.Context, from secret.StoreReader, tenantID, webhookID string, version int) (kept.Secret, error) {
	name, err := secret.Of(tenantID, place.Word, webhookID)
	if err != nil {
		return kept.Secret{}, err
	}
	v, err := kept.Read(ctx, from, name, version, func(v kept.Secret) int { return v.Version })
	if err == nil && v.Value == "" {
		err = errors.New("webhook: the secret is empty")
	}
	return v, err
}
