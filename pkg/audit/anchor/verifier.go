package anchor

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Signature types of c2sp.org/signed-note that are used here.
const (
	typeECDSA       = 0x02
	typeCosignature = 0x04
)

// Verifier is a public key with its name: the log's own (ECDSA P-256) or a witness's (Ed25519). Make it with one of the
// functions below; the zero Verifier verifies nothing.
type Verifier struct {
	name string
	id   [4]byte
	log  *ecdsa.PublicKey // one of these two
	cosi ed25519.PublicKey
}

// Name is the log's origin, or the witness's name.
func (v Verifier) Name() string { return v.name }

// Witness reports whether it is a witness's key.
func (v Verifier) Witness() bool { return v.cosi != nil }

// LogVerifier is the key of the log with that origin. With an empty origin it is the key of whatever log it signs for: the
// caller trusts the key and takes a checkpoint's word for the log's name.
func LogVerifier(origin string, key *ecdsa.PublicKey) (Verifier, error) {
	if err := checkName(origin); origin != "" && err != nil {
		return Verifier{}, fmt.Errorf("anchor: origin: %w", err)
	}
	if key == nil || key.Curve != elliptic.P256() {
		return Verifier{}, errors.New("anchor: the log's key is not on P-256")
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return Verifier{}, fmt.Errorf("anchor: %w", err)
	}
	sum := sha256.Sum256(der)
	return Verifier{name: origin, id: [4]byte(sum[:]), log: key}, nil
}

// WitnessVerifier is the key of the witness with that name.
func WitnessVerifier(name string, key ed25519.PublicKey) (Verifier, error) {
	if err := checkName(name); err != nil {
		return Verifier{}, fmt.Errorf("anchor: witness: %w", err)
	}
	if len(key) != ed25519.PublicKeySize {
		return Verifier{}, errors.New("anchor: witness: not an Ed25519 key")
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), append([]byte{typeCosignature}, key...)...))
	return Verifier{name: name, id: [4]byte(sum[:]), cosi: key}, nil
}

// ParseVerifier reads a key from text: a verifier key `<name>+<key id>+<base64 of type and key>` of type 0x02 or 0x04,
// or PEM of a P-256 public key, which is then the key of the log with the given origin. With an origin, a verifier key
// of a log must have that name.
func ParseVerifier(text []byte, origin string) (Verifier, error) {
	if block, rest := pem.Decode(text); block != nil {
		if block.Type != "PUBLIC KEY" || len(strings.TrimSpace(string(rest))) != 0 {
			return Verifier{}, errors.New("anchor: not one PEM block PUBLIC KEY")
		}
		return parseSPKI(origin, block.Bytes)
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(string(text)), "+")
	id, encoded, _ := strings.Cut(rest, "+")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) < 2 {
		return Verifier{}, errors.New("anchor: neither PEM nor a verifier key")
	}
	var v Verifier
	switch key[0] {
	case typeECDSA:
		if origin != "" && name != origin {
			return Verifier{}, fmt.Errorf("anchor: the key is of the log %q, not of %q", name, origin)
		}
		v, err = parseSPKI(name, key[1:])
	case typeCosignature:
		v, err = WitnessVerifier(name, key[1:])
	default:
		return Verifier{}, fmt.Errorf("anchor: a verifier key of type 0x%02x: only ECDSA (0x02) and cosignatures of Ed25519 (0x04) are known", key[0])
	}
	if err == nil && hex.EncodeToString(v.id[:]) != id {
		return Verifier{}, fmt.Errorf("anchor: the verifier key %s has the wrong key id", name)
	}
	return v, err
}

func parseSPKI(origin string, der []byte) (Verifier, error) {
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Verifier{}, fmt.Errorf("anchor: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return Verifier{}, fmt.Errorf("anchor: the log's key is a %T, not an ECDSA key", parsed)
	}
	return LogVerifier(origin, key)
}

// signs reports whether a line of a note with that origin is of this key, by its name and id.
func (v Verifier) signs(origin string, line signature) bool {
	return v.id == line.id && (v.name == line.name || v.name == "" && line.name == origin)
}

// String is the verifier key; a key of whatever log has none with a name.
func (v Verifier) String() string {
	key := append([]byte{typeCosignature}, v.cosi...)
	if v.log != nil {
		der, err := x509.MarshalPKIXPublicKey(v.log)
		if err != nil { // it was marshalled when v was made
			return ""
		}
		key = append([]byte{typeECDSA}, der...)
	}
	return fmt.Sprintf("%s+%x+%s", v.name, v.id, base64.StdEncoding.EncodeToString(key))
}

// verify checks the signature of a note's body, and gives the time that a witness put into it.
func (v Verifier) verify(body string, sig []byte) (at time.Time, err error) {
	switch {
	case v.log != nil:
		if !v.verifyDigest(sha256.Sum256([]byte(body)), sig) {
			return at, ErrSignature
		}
	case v.cosi != nil:
		if len(sig) != 8+ed25519.SignatureSize {
			return at, ErrSignature
		}
		seconds := binary.BigEndian.Uint64(sig)
		signed := "cosignature/v1\ntime " + strconv.FormatUint(seconds, 10) + "\n" + body
		if seconds > math.MaxInt64 || !ed25519.Verify(v.cosi, []byte(signed), sig[8:]) {
			return at, ErrSignature
		}
		at = time.Unix(int64(seconds), 0).UTC()
	default:
		return at, ErrSignature
	}
	return at, nil
}

// verifyDigest is for beacons and manifests, which the log's key signs bare.
func (v Verifier) verifyDigest(digest [32]byte, sig []byte) bool {
	return v.log != nil && ecdsa.VerifyASN1(v.log, digest[:], sig)
}
