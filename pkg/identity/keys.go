package identity

import (
	"context"
	"crypto/rsa"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
)

const (
	maxJWKS    = 1 << 20         // bytes read of a key set
	minRSABits = 2048            // a shorter key is not used
	firstGap   = time.Second     // least time between two tries while there are no keys at all
	fetchLimit = 5 * time.Second // longest wait for the pool
)

// keySet is one fetched state of the pool's keys. It never changes.
type keySet struct {
	byID    map[string]*rsa.PublicKey
	fetched time.Time
	version int // grows when the keys differ from those fetched before
}

func (s *keySet) same(o *keySet) bool { return s == o || s.version == o.version }

// keys fetches the pool's key set when it is needed: on first use, when it is old, and, at most once in a gap, for a key id
// that it does not hold (the pool has rotated). There is no background refresh: a frozen Lambda would not run it.
// A fetch that fails keeps the keys there are.
type keys struct {
	url         string
	client      *http.Client
	clock       func() time.Time
	maxAge, gap time.Duration

	now   atomic.Pointer[keySet]
	turn  chan struct{} // held by the one who fetches
	tried time.Time     // last fetch, successful or not; under turn
	err   error         // of the last fetch; under turn
}

func newKeys(c Config) *keys {
	k := &keys{url: c.JWKSURL, client: c.HTTPClient, clock: c.Clock, maxAge: c.KeysMaxAge, gap: c.RefetchGap, turn: make(chan struct{}, 1)}
	if k.client == nil {
		k.client = &http.Client{Timeout: fetchLimit}
	}
	if k.maxAge <= 0 {
		k.maxAge = time.Hour
	}
	if k.gap <= 0 {
		k.gap = 10 * time.Second
	}
	return k
}

// current is the key set; it waits for the network only while there is none, or when this caller is the one to renew an old one.
func (k *keys) current(ctx context.Context) (*keySet, error) {
	set := k.now.Load()
	if set != nil && k.clock().Sub(set.fetched) < k.maxAge {
		return set, nil
	}
	if set != nil {
		select {
		case k.turn <- struct{}{}:
			defer func() { <-k.turn }()
			return k.fetch(ctx, k.gap)
		default:
			return set, nil
		}
	}
	if err := k.wait(ctx); err != nil {
		return nil, err
	}
	defer func() { <-k.turn }()
	if set = k.now.Load(); set != nil {
		return set, nil
	}
	return k.fetch(ctx, firstGap)
}

// holding is a key set that holds kid if the pool has it: set itself, else one fetched now if the gap allows.
func (k *keys) holding(ctx context.Context, kid string, set *keySet) (*keySet, error) {
	if _, ok := set.byID[kid]; ok {
		return set, nil
	}
	if err := k.wait(ctx); err != nil {
		return nil, err
	}
	defer func() { <-k.turn }()
	if now := k.now.Load(); now.byID[kid] != nil { // somebody fetched while this caller waited
		return now, nil
	}
	return k.fetch(ctx, k.gap)
}

func (k *keys) wait(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch gets the key set, unless the last try was less than gap ago. The caller holds turn.
func (k *keys) fetch(ctx context.Context, gap time.Duration) (*keySet, error) {
	old := k.now.Load()
	start := k.clock()
	if k.tried.IsZero() || start.Sub(k.tried) >= gap {
		k.tried = start
		var byID map[string]*rsa.PublicKey
		// A caller that hangs up must not spend the one fetch that others wait for.
		if byID, k.err = k.get(context.WithoutCancel(ctx)); k.err == nil {
			set := &keySet{byID: byID, fetched: start, version: 1}
			if old != nil {
				set.version = old.version
				if !sameKeys(old.byID, byID) {
					set.version++
				}
			}
			k.now.Store(set)
			return set, nil
		}
	}
	if old == nil {
		return nil, fmt.Errorf("the identity pool's keys can not be had: %w", k.err)
	}
	return old, nil
}

func (k *keys) get(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", k.url, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxJWKS))
	if err != nil {
		return nil, err
	}
	return parseKeys(ctx, raw)
}

// parseKeys is the signing keys in a JWKS: RSA, long enough, and not said to be for something else.
func parseKeys(ctx context.Context, raw []byte) (map[string]*rsa.PublicKey, error) {
	parsed, err := keyfunc.NewJWKSetJSON(raw)
	if err != nil {
		return nil, err
	}
	all, err := parsed.Storage().KeyReadAll(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[string]*rsa.PublicKey{}
	for _, jwk := range all {
		m := jwk.Marshal()
		key, ok := jwk.Key().(*rsa.PublicKey)
		if !ok || m.KID == "" || key.N.BitLen() < minRSABits || (m.USE != "" && m.USE != jwkset.UseSig) || (m.ALG != "" && m.ALG != jwkset.AlgRS256) {
			continue
		}
		byID[m.KID] = key
	}
	if len(byID) == 0 {
		return nil, fmt.Errorf("no RS256 signing key among %d keys", len(all))
	}
	return byID, nil
}

func sameKeys(a, b map[string]*rsa.PublicKey) bool {
	if len(a) != len(b) {
		return false
	}
	for kid, key := range a {
		if other, ok := b[kid]; !ok || !key.Equal(other) {
			return false
		}
	}
	return true
}
