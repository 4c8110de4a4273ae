// Package secret is where secrets are kept: the platform's own, which an operator sets and functions only read (Reader; in the cloud AWS Secrets Manager,
// pkg/cloud/secretsmanager), and the tenants' OAuth tokens and API keys (Store; in the cloud Parameter Store, pkg/cloud/ssm; on one machine Dir).
//
// The two are two interfaces, for they name what they hold differently: a Reader by any name or ARN that a setting gives, a Store by an ID, which belongs
// to one tenant. What reads tenants' secrets can so be given no other name.
//
// What holds: a secret's value is in no error and in no log; an error names the secret and says why it cannot be had. Nothing is kept in memory: whoever
// wants to ask once asks once.
package secret

import (
	"context"
	"errors"
)

// Reader gives a secret's text.
type Reader interface {
	// Get is the current value of the secret of that name or ARN: its whole text. ErrMissing, ErrDenied and ErrNotText say why there is none.
	Get(ctx context.Context, id string) (string, error)
}

// Why a secret cannot be had or kept; errors.Is finds them.
var (
	ErrMissing = errors.New("there is no such secret")
	ErrDenied  = errors.New("access denied")
	ErrNotText = errors.New("it holds bytes, not text")
	ErrSize    = errors.New("a secret has 1 to 8192 bytes, of which each { counts twice")
	ErrForeign = errors.New("it was not put there by this store") // of a Store: not encrypted, or under another key or id
	ErrBusy    = errors.New("too many calls at once: try again in a moment")
	ErrNoID    = errors.New("the secret has no id: secret.Of makes one")
)
