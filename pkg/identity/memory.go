package identity

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// memory remembers verified tokens by their SHA-256: of constant size, the least recently used goes first.
type memory struct {
	size  int
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order *list.List // of *remembered, most recently used first
}

type remembered struct {
	key     [sha256.Size]byte
	set     *keySet // the keys it was verified with; another set = not remembered
	expires time.Time
	claims  tenant.Claims
}

func newMemory(size int) *memory {
	return &memory{size: size, byKey: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// get is the claims of a token that was verified with these keys and has not expired.
func (m *memory) get(key [sha256.Size]byte, set *keySet, now time.Time) (tenant.Claims, bool) {
	if m.size < 0 {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.byKey[key]
	if !ok {
		return nil, false
	}
	r := at.Value.(*remembered)
	if !r.set.same(set) || !now.Before(r.expires) {
		m.forget(at)
		return nil, false
	}
	m.order.MoveToFront(at)
	return r.claims, true
}

func (m *memory) put(key [sha256.Size]byte, set *keySet, expires time.Time, claims tenant.Claims) {
	if m.size < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.byKey[key]; ok {
		m.forget(at)
	}
	m.byKey[key] = m.order.PushFront(&remembered{key: key, set: set, expires: expires, claims: claims})
	if m.order.Len() > m.size {
		m.forget(m.order.Back())
	}
}

func (m *memory) forget(at *list.Element) {
	delete(m.byKey, at.Value.(*remembered).key)
	m.order.Remove(at)
}
