package pool

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"
)

// grant is what an authorization code stands for.
type grant struct {
	asked
	sub      string
	authTime int64 // unix seconds
	expires  time.Time
	used     bool
	origin   string // the session that it became
}

// codes are the authorization codes given out: single use, codeLife, in memory only (a restart asks to sign in again).
type codes struct {
	clock  func() time.Time
	mu     sync.Mutex
	byHash map[string]*grant
}

func newCodes(clock func() time.Time) *codes {
	return &codes{clock: clock, byHash: map[string]*grant{}}
}

// issue is a fresh code for g.
func (c *codes) issue(g grant) string {
	code := base64.RawURLEncoding.EncodeToString(randomBytes(32))
	now := c.clock()
	g.expires = now.Add(codeLife)
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, old := range c.byHash {
		if !now.Before(old.expires) {
			delete(c.byHash, hash)
		}
	}
	c.byHash[hashToken(code)] = &g
	return code
}

// take uses the code up, whatever the outcome. A code that comes a second time from one who knows its verifier was stolen or
// sent twice: replayed is then the session that it became, for the caller to end (RFC 6749 §4.1.2).
func (c *codes) take(code, redirectURI, verifier string) (g grant, ok bool, replayed string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.byHash[hashToken(code)]
	if found == nil || !c.clock().Before(found.expires) {
		return grant{}, false, ""
	}
	sum := sha256.Sum256([]byte(verifier))
	fits := subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(found.challenge)) == 1 && redirectURI == found.redirectURI
	if found.used {
		if fits {
			replayed = found.origin
		}
		return grant{}, false, replayed
	}
	found.used = true
	return *found, fits, ""
}

// became notes the session that a code was exchanged for.
func (c *codes) became(code, origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.byHash[hashToken(code)]; g != nil {
		g.origin = origin
	}
}
