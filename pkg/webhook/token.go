package webhook

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

const (
	tokenLength = 32
	alphabet    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	shown       = 4 // of a masked token
)

// newToken is 32 random letters and digits, 190 bits.
func newToken() string {
	token := make([]byte, 0, tokenLength)
	var b [tokenLength]byte
	for len(token) < tokenLength {
		rand.Read(b[:]) // never fails (crypto/rand)
		for _, c := range b {
			// Bytes beyond the last whole multiple would make some characters likelier.
			if int(c) < 256/len(alphabet)*len(alphabet) && len(token) < tokenLength {
				token = append(token, alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return string(token)
}

func hash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// isToken compares in constant time. Without a webhook hash is nil, and the answer takes as long.
func isToken(token string, stored []byte) bool {
	if stored == nil {
		stored = make([]byte, sha256.Size)
	}
	return subtle.ConstantTimeCompare(hash(token), stored) == 1
}

func masked(end string) string { return strings.Repeat("*", tokenLength-shown) + end }
