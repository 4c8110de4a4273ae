package pool

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"math/big"
	"sync"
	"time"
)

// hashed is a password as the pool holds it. All users share one, so a start costs one hash (about 16 ms), and so does
// each sign-in, whether the user exists or not.
type hashed struct{ salt, sum []byte }

const iterations = 100_000

func hash(password string) hashed {
	salt := randomBytes(16)
	return hashed{salt, derive(password, salt)}
}

func (h hashed) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.sum, derive(password, h.salt)) == 1
}

func derive(password string, salt []byte) []byte {
	sum, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic(err) // only for lengths that are constants here
	}
	return sum
}

// failures counts wrong passwords per username in memory, and makes a username wait after too many in a row: 1 s, then twice as long
// after each further one, at most maxWait. Nobody else waits. Names of nobody are counted too: waiting says nothing about existence.
type failures struct {
	max   int // in a row before the first wait; negative = no waits
	clock func() time.Time
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]failure
}

type failure struct {
	count       int
	last, until time.Time
}

const (
	maxWait     = 30 * time.Second
	forgetAfter = 15 * time.Minute
	maxNames    = 10_000 // tracked at once, to bound the memory
)

func newFailures(max int, clock func() time.Time) *failures {
	return &failures{max: max, clock: clock, byKey: map[[sha256.Size]byte]failure{}}
}

// waiting reports whether this username has to wait.
func (f *failures) waiting(username string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock().Before(f.byKey[sha256.Sum256([]byte(username))].until)
}

// note counts the outcome of a try.
func (f *failures) note(username string, ok bool) {
	if f.max < 0 {
		return
	}
	key := sha256.Sum256([]byte(username))
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		delete(f.byKey, key)
		return
	}
	now := f.clock()
	x, known := f.byKey[key]
	if !known && len(f.byKey) >= maxNames {
		f.sweep(now)
	}
	if now.Sub(x.last) > forgetAfter {
		x = failure{}
	}
	x.count++
	x.last = now
	if over := x.count - f.max; over >= 0 {
		x.until = now.Add(min(maxWait, time.Second<<min(over, 10)))
	}
	f.byKey[key] = x
}

// sweep drops the names that are quiet, or, when none is, everything.
func (f *failures) sweep(now time.Time) {
	for key, x := range f.byKey {
		if now.Sub(x.last) > forgetAfter {
			delete(f.byKey, key)
		}
	}
	if len(f.byKey) >= maxNames {
		clear(f.byKey)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return b
}

func randomText(n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		k, _ := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet)))) // never fails (crypto/rand)
		b[i] = alphabet[k.Int64()]
	}
	return string(b)
}
