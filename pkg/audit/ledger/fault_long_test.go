//go:build long

package ledger_test

import (
	"context"
	"math/rand/v2"
	"net/http"
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

// A thousand faults at random: processes killed, connections lost, requests to the bucket that fail before or after they are done. Nothing is lost, nothing is doubled.
func TestAThousandFaults(t *testing.T) {
	const worlds, each = 10, 100
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	injected := map[string]int{}
	for range worlds {
		t.Run("", func(t *testing.T) {
			w := newWorld(t, 5)
			p := newProxy(t, w.endpoint)
			through := store(p.URL).In(w.name)
			for n := 0; n < each; {
				for range 1 + random.IntN(6) {
					w.record(w.tenants[random.IntN(len(w.tenants))], 1+random.IntN(3))
				}
				if random.IntN(3) > 0 {
					w.pass(time.Duration(random.Int64N(int64(2 * interval))))
				}
				name := []string{"drain", "anchor"}[random.IntN(2)]
				what, happened := "", false
				switch at, kind := 1+random.IntN(12), random.IntN(4); kind {
				case 0, 1:
					what = "killed at " + w.kill(name, at)
					happened = what != "killed at "
				case 2:
					what, seen := "connection lost", 0
					_ = calls[name](w.ledger(func(c *ledger.Config) {
						c.Uploads, c.Batch = 1, 4
						c.Signal = func(string) {
							if seen++; seen == at {
								w.disconnect()
								happened = true
								injected[what]++
							}
						}
					}), t.Context())
				default:
					f := faults[random.IntN(len(faults))]
					p.failing(func(n int64, r *http.Request) *fault {
						if n != int64(at) {
							return nil
						}
						happened = true
						what = strings.ToLower(r.Method) + " " + f.name
						return &f
					})
					_ = calls[name](w.ledger(func(c *ledger.Config) { c.Bucket, c.Uploads = through, 1 }), t.Context())
					p.failing(nil)
				}
				if happened {
					n++
					if what != "" {
						injected[what]++
					}
				}
				if random.IntN(4) == 0 {
					w.drain()
					require.NoError(t, w.ledger().PublishAnchor(t.Context()))
				}
			}
			w.drain()
			w.pass(interval)
			require.NoError(t, w.ledger().PublishAnchor(t.Context()))
			w.consistent()
		})
	}
	total := 0
	for what, n := range injected {
		t.Logf("%5d %s", n, what)
		total += n
	}
	require.GreaterOrEqual(t, total, worlds*each)
}
