package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Genesis is what the first event of a chain has as its predecessor.
const Genesis = "GENESIS"

// WriterLock is the key of the PostgreSQL advisory lock that the ledger's one writer holds.
const WriterLock int64 = 0x6c65646765720001

// Hash chains an event to the one before it: SHA-256 of the canonical text and of prev, which is the previous event's hash or Genesis. It is 64
// lower-case hex characters.
func Hash(canonical []byte, prev string) string {
	h := sha256.New()
	h.Write(canonical)
	h.Write([]byte(prev))
	var sum [sha256.Size]byte
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], h.Sum(sum[:0]))
	return string(text[:])
}

// MAC is the emission MAC of an event's pending form: HMAC-SHA256, 32 bytes.
func MAC(key, pending []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(pending)
	return h.Sum(nil)
}

// Receipt is the emission MAC as a caller keeps it: lower-case hex.
func Receipt(mac []byte) string { return hex.EncodeToString(mac) }

const recordedAt = "recorded_at"

// WithRecordedAt appends the envelope in pending, with recorded_at put into its place, to dst. pending must have passed ParseEnvelope.
func WithRecordedAt(dst, pending []byte, t ident.Time) ([]byte, error) {
	if t.IsZero() {
		return nil, errors.New("audit: no time to record")
	}
	at, name, _, err := place(pending)
	if err != nil {
		return nil, err
	}
	if name == recordedAt {
		return nil, errors.New("audit: the envelope has been recorded before")
	}
	text, err := t.MarshalJSON()
	if err != nil {
		return nil, err
	}
	dst = append(dst, pending[:at]...)
	dst = append(append(dst, `"recorded_at":`...), text...)
	return append(append(dst, ','), pending[at:]...), nil
}

// Pending appends the recorded envelope without its recorded_at, which is what the emission MAC covers, to dst. canonical must have passed
// ParseEnvelope.
func Pending(dst, canonical []byte) ([]byte, error) {
	at, name, length, err := place(canonical)
	if err != nil {
		return nil, err
	}
	if name != recordedAt {
		return nil, errors.New("audit: the envelope has no recorded_at")
	}
	return append(append(dst, canonical[:at]...), canonical[at+length:]...), nil
}

// place is where in an envelope recorded_at is or belongs: the first member that is not before it, with the length of that member and the
// comma behind it. There is one: schema_version.
func place(envelope []byte) (at int, name string, length int, err error) {
	at = 1 // behind the brace
	for n, value := range canonical.Members(envelope) {
		length = len(n) + len(value) + len(`"":,`)
		if string(n) >= recordedAt {
			return at, string(n), length, nil
		}
		at += length
	}
	return 0, "", 0, errors.New("audit: not an envelope")
}
