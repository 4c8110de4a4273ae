package anchor

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
)

// A signed object is {"<name>":T,"signature":"<base64 of the ASN.1 DER>"}: T canonical, the signature over its SHA-256.

// seal signs text and wraps it.
func seal(ctx context.Context, name string, text []byte, key Signer) ([]byte, error) {
	sig, err := key.Sign(ctx, sha256.Sum256(text))
	if err != nil {
		return nil, err
	}
	object := append([]byte(`{"`+name+`":`), text...)
	object = base64.StdEncoding.AppendEncode(append(object, `,"signature":"`...), sig)
	return append(object, `"}`...), nil
}

// signature reads what follows the text T, which has been read since start.
func (c *cursor) signature(start int) (digest [32]byte, sig []byte) {
	digest = sha256.Sum256(c.text[start:c.at])
	c.literal(`,"signature":`)
	sig = c.base64(1 << 10)
	c.literal(`}`)
	return digest, sig
}

// base64 reads at most limit bytes in their one spelling.
func (c *cursor) base64(limit int) []byte {
	s := c.plain(base64.StdEncoding.EncodedLen(limit))
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if c.err == nil && (err != nil || len(b) == 0) {
		c.fail("not base64")
	}
	return b
}

// signedByOne reports whether one of keys, which are the log's, made sig.
func signedByOne(digest [32]byte, sig []byte, keys []Verifier) error {
	for _, key := range keys {
		if key.verifyDigest(digest, sig) {
			return nil
		}
	}
	return ErrSignature
}
