// Package secret reads secrets from where they are kept: in the cloud AWS Secrets Manager (pkg/cloud/secretsmanager).
//
// What holds: a secret's value is in no error and in no log; an error names the secret and says why it cannot be had. Nothing is kept here: whoever
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

// Why a secret cannot be had; errors.Is finds them.
var (
	ErrMissing = errors.New("there is no such secret")
	ErrDenied  = errors.New("access denied")
	ErrNotText = errors.New("it holds bytes, not text")
)
