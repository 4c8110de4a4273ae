package offline

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// failures counts how often a request with /fail N has failed. It forgets a request when it is answered, and the oldest when full.
type failures struct {
	mu     sync.Mutex
	max    int
	counts map[[sha256.Size]byte]int
	order  [][sha256.Size]byte // keys of counts, oldest first
}

func newFailures(max int) *failures {
	return &failures{max: max, counts: make(map[[sha256.Size]byte]int)}
}

// next reports whether this attempt fails; times 0 = always.
func (f *failures) next(model string, body []byte, times int) bool {
	if times == 0 {
		return true
	}
	key := hash(model, body)
	f.mu.Lock()
	defer f.mu.Unlock()
	count, known := f.counts[key]
	if count >= times {
		delete(f.counts, key)
		f.order = slices.DeleteFunc(f.order, func(k [sha256.Size]byte) bool { return k == key })
		return false
	}
	if !known {
		if len(f.order) >= f.max {
			delete(f.counts, f.order[0])
			f.order = f.order[1:]
		}
		f.order = append(f.order, key)
	}
	f.counts[key] = count + 1
	return true
}

// hash identifies a request: a repeated attempt has the same bytes.
func hash(model string, body []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(model))
	h.Write([]byte{0})
	h.Write(body)
	return [sha256.Size]byte(h.Sum(nil))
}
