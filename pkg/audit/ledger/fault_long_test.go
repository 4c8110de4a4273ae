//go:build long

package ledger_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
)

func some[T any](all []T) []T { return all }

var calls = map[string]func(*ledger.Ledger, context.Context) error{"drain": (*ledger.Ledger).Drain, "anchor": (*ledger.Ledger).PublishAnchor}

// A connection to the database that is lost at any point costs one run: the next one finishes the work.
func TestConnectionLostAtEveryPoint(t *testing.T) {
	w := newWorld(t, 2)
	for _, do := range calls {
		points := 0
		for at := 1; ; at++ {
			w.recordAll(1)
			w.pass(interval)
			seen := 0
			_ = do(w.ledger(func(c *ledger.Config) {
				c.Uploads = 1
				c.Signal = func(string) {
					if seen++; seen == at {
						w.disconnect()
					}
				}
			}), t.Context())
			w.drain()
			require.NoError(t, w.ledger().PublishAnchor(t.Context()))
			if seen < at {
				break
			}
			points++
		}
		w.consistent()
		require.GreaterOrEqual(t, points, 9)
	}
}

// disconnect ends the ledger's connections to the database, as a restart of it does.
func (w *world) disconnect() {
	w.super(`select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = 'agentplatform_ledger' and datname = current_database()`)
}

// A thousand faults at random: processes killed, connections lost, requests to the bucket that fail before or after they are done, some of them upon what another has
// left. Nothing is lost, nothing is doubled, and whenever the writer has come round the verifier finds nothing.
func TestAThousandFaults(t *testing.T) {
	const worlds, each = 40, 25 // small worlds: the verifier reads all of one each time
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := &faulter{random: rand.New(rand.NewPCG(seed, 0)), injected: map[string]int{}}
	for range worlds {
		t.Run("", func(t *testing.T) {
			f.world = newWorld(t, 5)
			f.proxy = newProxy(t, f.endpoint)
			for n := 0; n < each; {
				for range 1 + f.random.IntN(6) {
					f.record(f.tenants[f.random.IntN(len(f.tenants))], 1+f.random.IntN(3))
				}
				if f.random.IntN(3) > 0 {
					f.pass(time.Duration(f.random.Int64N(int64(2 * interval))))
				}
				if what := f.inject(); what != "" {
					f.injected[what]++
					n++
				}
				if f.random.IntN(4) > 0 {
					f.drain()
					require.NoError(t, f.ledger().PublishAnchor(t.Context()))
					f.verified()
					f.verifications++
				}
			}
			f.drain()
			f.anchor()
			f.consistent()
		})
	}
	total := 0
	for _, what := range slices.Sorted(maps.Keys(f.injected)) {
		t.Logf("%5d %s", f.injected[what], what)
		total += f.injected[what]
	}
	t.Logf("%d faults, %d verifications on the way, %d full comparisons", total, f.verifications, worlds)
	require.GreaterOrEqual(t, total, worlds*each)
}

// faulter lets things go wrong at random in one world after the other.
type faulter struct {
	*world
	proxy         *proxy
	random        *rand.Rand
	injected      map[string]int // by what and where
	verifications int
}

// inject lets the writer run, and something happen to it. what is empty when its work was done before that.
func (f *faulter) inject() (what string) {
	name, at := []string{"drain", "anchor"}[f.random.IntN(2)], 1+f.random.IntN(12)
	switch f.random.IntN(4) {
	case 0, 1:
		if died := f.kill(name, at); died != "" {
			what = "killed at " + died
		}
	case 2:
		seen := 0
		_ = calls[name](f.ledger(func(c *ledger.Config) {
			c.Uploads, c.Batch = 1, 4
			c.Signal = func(point string) {
				if seen++; seen == at {
					f.disconnect()
					what = "connection lost at " + point
				}
			}
		}), f.t.Context())
	default:
		how := faults[f.random.IntN(len(faults))]
		f.proxy.failing(func(n int64, r *http.Request) *fault {
			if n != int64(at) {
				return nil
			}
			what = strings.ToLower(r.Method) + " " + how.name
			return &how
		})
		_ = calls[name](f.ledger(func(c *ledger.Config) { c.Bucket, c.Uploads = store(f.proxy.URL).In(f.name), 1 }), f.t.Context())
		f.proxy.failing(nil)
	}
	return what
}
