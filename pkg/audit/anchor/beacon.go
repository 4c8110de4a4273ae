package anchor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Beacon says between two anchors how far the chains have come: {"beacon":B,"signature":"…"}. With the newest anchor and
// the beacons since, every chain's head is known that was ever shown to the bucket.
type Beacon struct {
	Number     uint64     // from 1 without gaps, over all cadences
	Cadence    uint64     // number of the cadence that is open; as cadence_id in the text
	Previous   string     // previous_sha256: of all bytes of the beacon before it, or Genesis for the first
	RecordedAt ident.Time // when it was made
	Tenants    []Head     // whose head moved since the beacon before, ascending by the bytes of their id; at least one
}

// SHA256 is the hash of an object's bytes, as the next anchor or beacon names it.
func SHA256(object []byte) string {
	sum := sha256.Sum256(object)
	return hex.EncodeToString(sum[:])
}

// Append appends the canonical text that is signed.
func (b Beacon) Append(dst []byte) []byte {
	dst = append(append(dst, `{"cadence_id":"`...), CadenceID(b.Cadence)...)
	dst = strconv.AppendUint(append(dst, `","number":`...), b.Number, 10)
	dst = append(append(dst, `,"previous_sha256":"`...), b.Previous...)
	dst = appendTime(append(dst, `","recorded_at":`...), b.RecordedAt)
	return append(appendHeads(append(dst, `,"schema_version":1,"tenants":`...), b.Tenants), '}')
}

func (b Beacon) check() error {
	switch {
	case b.Number < 1 || b.Number > maxNumber || b.Cadence < 1 || b.Cadence > maxNumber:
		return errors.New("numbers begin at 1")
	case !isLink(b.Previous) || (b.Number == 1) != (b.Previous == Genesis):
		return fmt.Errorf("previous_sha256 is %s only in the first beacon, and a hash in all others", Genesis)
	case !writable(b.RecordedAt):
		return errors.New("a time that has no text")
	case len(b.Tenants) == 0:
		return errors.New("no head has moved")
	}
	return inOrder(b.Tenants, func(h Head) (string, uint64) { return h.TenantID, h.Length })
}

// SealBeacon signs the beacon.
func SealBeacon(ctx context.Context, b Beacon, key Signer) (object []byte, err error) {
	if err = b.check(); err == nil {
		object, err = seal(ctx, "beacon", b.Append(nil), key)
	}
	if err != nil {
		return nil, fmt.Errorf("anchor: beacon: %w", err)
	}
	return object, nil
}

// OpenBeacon reads a beacon: exactly the bytes that SealBeacon writes, signed by one of keys, which are the log's; else
// it is ErrSignature, and the beacon comes along for who wants to say what it claims.
func OpenBeacon(object []byte, keys []Verifier) (Beacon, error) {
	var b Beacon
	c := &cursor{text: object}
	c.literal(`{"beacon":`)
	start := c.at
	c.literal(`{"cadence_id":`)
	b.Cadence = c.cadence()
	c.literal(`,"number":`)
	b.Number = c.uint()
	c.literal(`,"previous_sha256":`)
	b.Previous = c.link()
	c.literal(`,"recorded_at":`)
	b.RecordedAt = c.time()
	c.literal(`,"schema_version":1,"tenants":`)
	b.Tenants = c.heads()
	c.literal(`}`)
	digest, sig := c.signature(start)
	err := c.end()
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return Beacon{}, fmt.Errorf("anchor: beacon: %w", err)
	}
	return b, signedByOne(digest, sig, keys)
}
