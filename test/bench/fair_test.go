package bench

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/user"
)

const (
	fairTenants = 100
	fairTurns   = 1000
	fairRounds  = 5
)

// BenchmarkFairness: 1,000 turns of 100 tenants are dispatched at once, those of the tenant with the most first. A tenant's fair share of the time is
// when its last turn would end if the tenants took turns; the figure is the longest wait of any tenant in those. Even: ten turns each. Uneven: one
// tenant has 901, the others one. The floor is the same without a tenant's number of turns at once: first come, first served.
func BenchmarkFairness(b *testing.B) {
	w := open(b)
	w.settle(b)
	db, err := w.app()
	must(b, err)
	defer db.Close()
	even, uneven := make([]int, fairTenants), make([]int, fairTenants)
	for i := range fairTenants {
		even[i], uneven[i] = fairTurns/fairTenants, 1
	}
	uneven[0] = fairTurns - fairTenants + 1
	for _, c := range []struct {
		name   string
		turns  []int
		atOnce int
	}{{"even", even, 50}, {"uneven", uneven, 50}, {"uneven/floor", uneven, 10_000}} {
		b.Run(c.name, func(b *testing.B) {
			if b.N == 1 { // only to see how long it takes; what is measured is some rounds, whatever N is
				return
			}
			var worst []time.Duration // as many times the fair share, in place of seconds
			var took []time.Duration
			for range fairRounds {
				share, all := fairly(b, w, db, c.turns, c.atOnce)
				worst, took = append(worst, share), append(took, all)
			}
			b.ReportMetric(percentile(worst, 50)/1000, "longest-wait/fair-share")
			b.ReportMetric(percentile(took, 50), "all-ms")
		})
	}
}

// fairly drains so many turns of each of new tenants. It tells how often its fair share of the time the worst-off tenant waited, as seconds, and how long
// all took.
func fairly(b *testing.B, w *world, db *postgres.DB, turns []int, atOnce int) (worst, all time.Duration) {
	b.StopTimer()
	ctx := context.Background()
	tenants := make([]string, len(turns))
	var due []turn.Dispatch
	for i, n := range turns {
		tenants[i] = ident.New()
		must(b, db.InTenant(ctx, tenants[i], func(tx pgx.Tx) error {
			if _, _, err := user.Found(ctx, tx, user.Founding{TenantID: tenants[i], Slug: "fair-" + tenants[i], Name: "Fair", Agent: agent.Default{ModelID: "offline.echo-1"}}); err != nil {
				return err
			}
			if _, err := user.UpdateTenant(ctx, tx, user.TenantChange{TurnsAtOnce: &atOnce}); err != nil {
				return err
			}
			for range n {
				th, err := thread.Create(ctx, tx, tenants[i], thread.New{})
				if err != nil {
					return err
				}
				asked, err := turn.Request(ctx, tx, tenants[i], turn.Ask{ThreadID: th.ID, Body: "Hello", UserID: ident.New()})
				if err != nil {
					return err
				}
				due = append(due, turn.Dispatch{TenantID: tenants[i], TurnID: asked.TurnID})
			}
			return nil
		}))
	}
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	_, err = pool.Exec(ctx, `analyze thread_turns, threads, messages`)
	must(b, err)
	b.StartTimer()

	began := time.Now()
	var group errgroup.Group
	for _, d := range due { // as the platform invokes: each in a goroutine of its own
		payload, err := json.Marshal(d)
		must(b, err)
		group.Go(func() error {
			_, err := w.dispatch.Invoke(ctx, payload)
			return err
		})
	}
	must(b, group.Wait())
	var unfinished int
	for unfinished = 1; unfinished > 0; { // what was put off
		must(b, pool.QueryRow(ctx, `select count(*) from thread_turns where tenant_id = any($1::uuid[]) and finished_at is null`, tenants).Scan(&unfinished))
	}
	b.StopTimer()
	defer b.StartTimer()
	ended := make(map[string]time.Duration, len(tenants))
	rows, err := pool.Query(ctx, `select tenant_id::text, max(finished_at) from thread_turns where tenant_id = any($1::uuid[]) group by 1`, tenants)
	must(b, err)
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		ended[id] = at.Sub(began)
		all = max(all, ended[id])
		return nil
	})
	must(b, err)
	for i, n := range turns {
		before := 0 // turns that end before this tenant's last one does, when the tenants take turns
		for _, other := range turns {
			before += min(n, other)
		}
		fair := float64(all) * float64(before) / fairTurns
		worst = max(worst, time.Duration(float64(ended[tenants[i]])/fair*float64(time.Second)))
	}
	return worst, all
}
