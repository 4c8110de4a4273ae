// Package kept is what a row of the database has in the store of secrets: all that belongs together, as one value, and OAuth tokens that are renewed.
//
// What holds:
//
//   - The row says which version of the value is the last, and no older one is used, although a store may for a moment give the value before the last.
//   - An access token is renewed before it ends, by one process at a time: by a lease in the row, which ends by itself a minute later. Whoever comes meanwhile
//     goes on with the token that there is, and waits only if it has ended or was refused. One whose lease was taken by another keeps nothing over it.
//   - A refresh token that was replaced is kept, although the request that asked for it has ended, and tried again where that fails. Where the answer to
//     one is lost on the way it is asked with once more at once: that a server gives the same again is for a moment only.
//   - No secret is in a row, an error or a log.
//
// The row belongs to the noun, and so does the asking for tokens: see Places and Ask.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Secret is a value.
type Secret struct {
	Version      int       `json:"version"`
	Value        string    `json:"value,omitempty"` // that stays as it is: a key
	ClientSecret string    `json:"clientSecret,omitempty"`
	RefreshToken string    `json:"refreshToken,omitempty"`
	Access       string    `json:"access,omitempty"`
	Obtained     time.Time `json:"obtained,omitzero"`
	Expires      time.Time `json:"expires,omitzero"` // zero: not said
}

// early is how long before its end a token is renewed, or an eighth of its life where that is shorter.
const early = 5 * time.Minute

// Fresh reports whether the access token is good for now without being renewed; Usable, whether it is at all.
func (s Secret) Fresh(now time.Time) bool {
	return s.Access != "" && (s.Expires.IsZero() || now.Before(s.Expires.Add(-min(early, s.Expires.Sub(s.Obtained)/8))))
}

func (s Secret) Usable(now time.Time) bool {
	return s.Access != "" && (s.Expires.IsZero() || now.Before(s.Expires))
}

// Place is where a kind of rows is, and where its values are. The table has the columns id, secret_version (0: there is no value) and secret_lease.
type Place struct {
	Table string
	Word  string // in the value's id, between tenant and row
	Noun  string // what a row is, for people
}

// Secrets are the values of one kind of rows, of all tenants. It is safe for concurrent use.
type Secrets struct {
	db    *postgres.DB
	store secret.Store
	at    Place
}

// New is the values at a place.
func New(db *postgres.DB, store secret.Store, at Place) *Secrets { return &Secrets{db, store, at} }

// Put keeps a value; the row is the caller's to write, with the value's version.
func (s *Secrets) Put(ctx context.Context, tenantID, row string, v Secret) error {
	name, err := secret.Of(tenantID, s.at.Word, row)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	err = s.store.Put(ctx, name, string(b))
	if errors.Is(err, secret.ErrSize) {
		return fault.Invalid("the tokens of the %s are too long to be kept", s.at.Noun)
	}
	return err
}

// Drop takes a row's value away.
func (s *Secrets) Drop(ctx context.Context, tenantID, row string) error {
	name, err := secret.Of(tenantID, s.at.Word, row)
	if err != nil {
		return err
	}
	return s.store.Delete(ctx, name)
}

// Get is a row's value, of that version at least; secret.ErrMissing: there is none.
func (s *Secrets) Get(ctx context.Context, tenantID, row string, version int) (Secret, error) {
	name, err := secret.Of(tenantID, s.at.Word, row)
	if err != nil {
		return Secret{}, err
	}
	return Read(ctx, s.store, name, version, func(v Secret) int { return v.Version })
}

// ErrStale says that the store did not give what was put last, although it was asked some times.
var ErrStale = errors.New("the store of secrets gives an older value than the last one")

const (
	readings = 5
	pause    = 200 * time.Millisecond // between two questions
)

// Read is a value of JSON that has a version, of that one at least: a read may for a moment give the value before the last.
func Read[T any](ctx context.Context, store secret.StoreReader, name secret.ID, version int, of func(T) int) (T, error) {
	var none T
	for range readings {
		var v T
		text, err := store.Get(ctx, name)
		switch {
		case err != nil:
			return none, err
		case json.Unmarshal([]byte(text), &v) != nil:
			return none, errors.New("the secret is not what was put") // without the error, which quotes it
		case of(v) >= version:
			return v, nil
		}
		if err := wait(ctx, pause); err != nil {
			return none, err
		}
	}
	return none, ErrStale
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
