// Package tamper_test cheats: it does to a deployment's database and bucket what docs/design/audit.md says that somebody could, at random
// places, and requires that the verifier finds it, calls it by its name, and accuses nobody else; and that it finds nothing where
// nobody cheated.
//
// The parts are real: PostgreSQL with the platform's roles, the S3 server of local mode, worlds written by the real writer through the
// outbox, drained, beaconed, anchored and witnessed. Only the clock is the tests' own, the storage's with it. A world is made once and
// copied for each trial.
//
// What a trial does is decided by the seed of its world and its number; a failure names both. More of them:
// go test ./test/tamper -args -trials 60 -clean 600 -table table.md
package tamper_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

var (
	trials = flag.Int("trials", defaultTrials, "trials of each class")
	clean  = flag.Int("clean", defaultClean, "worlds without tampering")
	seed   = flag.Uint64("seed", 1, "of the first world")
	table  = flag.String("table", "", "file to write what was caught to, as Markdown")
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the writer is loud when somebody cheats
	pgtest.Main(m)
}

// perWorld is how many trials of a class are made with copies of one world.
const perWorld = 5

func classes() []class {
	all := slices.Concat(anchoredChains, pendingChains, buckets, insiders, files)
	slices.SortStableFunc(all, func(a, b class) int { return order(a) - order(b) })
	return all
}

// order is the list's, then what is beyond it.
func order(c class) int {
	if c.number == 0 {
		return 1000
	}
	return c.number
}

func TestEveryClassIsThere(t *testing.T) {
	var numbers []int
	for _, c := range classes() {
		if c.number > 0 {
			numbers = append(numbers, c.number)
		}
	}
	for n := 1; n <= 33; n++ {
		require.Equal(t, n, numbers[n-1])
	}
	require.Len(t, numbers, 33)
}

func TestTampering(t *testing.T) {
	l := newLaboratory(t)
	score := newScore(t)
	for base := range (*trials + perWorld - 1) / perWorld {
		t.Run(fmt.Sprintf("seed=%d", *seed+uint64(base)), func(t *testing.T) {
			var worlds [kinds]*world
			for k := range worlds {
				worlds[k] = l.build(t, *seed+uint64(base), plan{backup: true, silent: kind(k) == silent, downtime: kind(k) == downtime})
			}
			for _, c := range classes() {
				for n := base * perWorld; n < min(*trials, (base+1)*perWorld); n++ {
					t.Run(fmt.Sprintf("%d %s/%d", c.number, c.what, n), func(t *testing.T) {
						score.tried(c)
						score.caught(c, c.try(t, worlds[c.world], uint64(n)))
					})
				}
			}
		})
	}
}

// Who forges the truth writes what is there already: so what forgeries are caught by is their lie.
func TestAForgeryOfTheTruthChangesNothing(t *testing.T) {
	l := newLaboratory(t)
	w := l.build(t, *seed, plan{})
	x := newTrial(t, w.clone(t, 0))
	require.Empty(t, x.forge(t, x.administrator, x.signer).changed())
	x.cover(sealed, where(x.chains, func([]row) bool { return true })...)
	require.True(t, x.verify(t).OK())
}

// try is one trial: what it was caught by.
func (c class) try(t *testing.T, w *world, trial uint64) []verify.Class {
	t.Helper()
	x := newTrial(t, w.clone(t, trial*100+uint64(c.number)))
	want := c.do(x)
	if want.found != nil {
		return x.judge(want, verify.Report{Complete: true, Findings: want.found})
	}
	if want.with == nil {
		want.with = func(*verify.Config) {}
	}
	return x.judge(want, x.verify(t, want.with))
}

// score is what was tried and caught.
type score struct {
	mu  sync.Mutex
	of  map[string]int
	got map[string]int
	by  map[string]map[verify.Class]int
}

func newScore(t *testing.T) *score {
	s := &score{of: map[string]int{}, got: map[string]int{}, by: map[string]map[verify.Class]int{}}
	t.Cleanup(func() {
		if *table != "" {
			require.NoError(t, os.WriteFile(*table, s.markdown(), 0o644))
		}
	})
	return s
}

func (s *score) tried(c class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[c.what]++
}

func (s *score) caught(c class, by []verify.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got[c.what]++
	if s.by[c.what] == nil {
		s.by[c.what] = map[verify.Class]int{}
	}
	for _, class := range by {
		s.by[c.what][class]++
	}
}

func (s *score) markdown() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bytes.Buffer
	fmt.Fprintln(&out, "| # | What was done | Trials | Caught | By |\n|---|---|---|---|---|")
	for _, c := range classes() {
		number := ""
		if c.number > 0 {
			number = fmt.Sprint(c.number)
		}
		var by []string
		for _, class := range slices.Sorted(maps.Keys(s.by[c.what])) {
			by = append(by, "`"+string(class)+"`")
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %d | %s |\n", number, c.what, s.of[c.what], s.got[c.what], strings.Join(by, ", "))
	}
	return out.Bytes()
}

// Worlds in which nobody cheats, but the writer's life is hard.
func TestCleanWorlds(t *testing.T) {
	l := newLaboratory(t)
	for n := range *clean {
		world := *seed + 1000 + uint64(n)
		t.Run(fmt.Sprintf("seed=%d", world), func(t *testing.T) {
			w := l.build(t, world, plan{crashes: n%2 == 1, downtime: n%3 == 0})
			r := w.verify(t, func(c *verify.Config) {
				c.WitnessKeys = append(c.WitnessKeys, w.witness.Key())
				c.Receipts, c.EmissionKey = w.kept, emission
			})
			require.Empty(t, r.Findings)
			require.True(t, r.OK(), "%+v", r)
			require.NotZero(t, r.Counts.Events)
		})
	}
}

// docs/design/audit.md shows the table of a whole run, in which nothing was missed, with the classes that there are.
func TestTheDocumentShowsTheTable(t *testing.T) {
	document, err := os.ReadFile("../../docs/design/audit.md")
	require.NoError(t, err)
	for _, c := range classes() {
		number := ""
		if c.number > 0 {
			number = fmt.Sprint(c.number)
		}
		require.Contains(t, string(document), fmt.Sprintf("| %s | %s | 60 | 60 |", number, c.what))
	}
}
