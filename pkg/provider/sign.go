package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// MAC is HMAC-SHA256 over the parts, one behind the other.
func MAC(secret string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// SameHex reports whether given is mac in hexadecimal digits.
func SameHex(given string, mac []byte) bool {
	b, err := hex.DecodeString(given)
	return err == nil && hmac.Equal(b, mac)
}
