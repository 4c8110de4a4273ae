package secret

import (
	"context"
	"strings"
	"unicode/utf8"
)

// StoreReader gives what a Store keeps, for who must not change it. It is safe for concurrent use.
type StoreReader interface {
	// Get is the value that was put last: its whole text. ErrMissing when there is none; ErrForeign when what is there was not put there by Put.
	Get(ctx context.Context, id ID) (string, error)
}

// Store keeps secrets of tenants, encrypted. It is safe for concurrent use.
//
// What belongs together is one value (an access token, its refresh token and its expiry: one JSON text), since only one value is replaced at once.
// The Store locks nothing: who reads a value to replace it by its successor holds a lock of his own over both. Behind that lock, Get may in the cloud give
// the value before for a moment, since Parameter Store does not promise that a read sees the last write; so keep beside the lock which value is the last.
type Store interface {
	StoreReader
	// Put makes the secret, or replaces its value in one step: at any time others read the whole old or the whole new one, and of several at once one
	// is left, whole. A value that Check refuses changes nothing. After another error the value may be the old or the new one: put it again. Over what is
	// ErrForeign, Put may fail with that: delete it first.
	Put(ctx context.Context, id ID, value string) error
	// Delete takes the secret away, whatever is there. A missing one is no error: a call whose answer was lost is made again, and its caller wants the
	// secret gone, not to be the one who removed it.
	Delete(ctx context.Context, id ID) error
}

// maxSize is what Parameter Store keeps in one parameter (advanced tier), in bytes.
const maxSize = 8192

// Check reports whether a Store keeps value: UTF-8 without NUL (else ErrNotText), 1 to 8192 bytes (else ErrSize). Each { counts twice: Parameter Store
// refuses {{…}} in a value, so that a { may be kept as two bytes.
func Check(value string) error {
	switch {
	case value == "" || len(value)+strings.Count(value, "{") > maxSize:
		return ErrSize
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return ErrNotText
	}
	return nil
}
