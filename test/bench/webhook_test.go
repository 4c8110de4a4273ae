package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// BenchmarkWebhook: n clients, each calling a webhook again as soon as it has its 202, with an instant model. Turns run meanwhile, on the same
// processors; with queued they wait until the last call is answered, as on machines of their own. After that everything is counted: accepted =
// runs = threads = turns that succeeded = the webhooks' own count. The floor is a call's rows written by bare SQL in one commit, behind the
// counters that a call takes.
func BenchmarkWebhook(b *testing.B) {
	w := open(b)
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { calls(b, w, clients, false) })
		b.Run(fmt.Sprintf("queued/clients=%d", clients), func(b *testing.B) { calls(b, w, clients, true) })
		b.Run(fmt.Sprintf("floor/clients=%d", clients), func(b *testing.B) { floorCalls(b, w, clients) })
	}
}

// hook is a webhook of the world; several, for one takes at most 1,667 calls a second.
type hook struct{ ID, Token string }

const hooks = 4

func (w *world) openHooks() (all [hooks]hook, err error) {
	var agents struct {
		ListAgents struct{ Items []struct{ ID string } }
	}
	if err := w.query(request(`{ listAgents(limit: 1) { items { id } } }`, nil), &agents); err != nil {
		return all, err
	}
	for i := range all {
		raw, status, err := w.post("/api/webhooks", w.token, fmt.Appendf(nil, `{"name":"bench","agent_id":%q,"rate_limit":100000}`, agents.ListAgents.Items[0].ID))
		if err != nil || status != http.StatusCreated {
			return all, fmt.Errorf("%d %s %w", status, raw, err)
		}
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (w *world) post(path, bearer string, body []byte) (raw []byte, status int, err error) {
	return w.exchange(w.platform.Outputs.APIURL+path, http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + bearer}}, body)
}

func calls(b *testing.B, w *world, clients int, queued bool) {
	w.settle(b)
	all, err := w.openHooks()
	must(b, err)
	if queued {
		w.gate.shut()
	}
	body := []byte(`{"message":"Disk almost full on db-3","context":{"host":"db-3","used":0.97,"region":"eu-west-1","alert":"disk"}}`)
	took := each(b, clients, func(client, n int) error {
		h := all[(client+n)%hooks]
		raw, status, err := w.post("/webhooks/"+h.ID, h.Token, body)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("%d %s", status, raw)
		}
		return err
	})
	if queued {
		w.gate.release()
	}
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "accepted/s")
	w.countRuns(b, all, len(took))
}

// countRuns waits for the turns and holds them against what was accepted.
func (w *world) countRuns(b *testing.B, all [hooks]hook, accepted int) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ids := []string{all[0].ID, all[1].ID, all[2].ID, all[3].ID}
	var runs, threads, succeeded, unfinished int
	for began := time.Now(); ; {
		must(b, pool.QueryRow(context.Background(), `select count(*), count(distinct thread_uuid), count(*) filter (where status = 'succeeded'),
			count(*) filter (where status in ('queued', 'running')) from thread_turns where webhook_id = any($1::uuid[])`, ids).Scan(&runs, &threads, &succeeded, &unfinished))
		if unfinished == 0 {
			break
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("%d turns do not end", unfinished)
		}
		<-time.After(50 * time.Millisecond)
	}
	var counted int
	must(b, pool.QueryRow(context.Background(), `select sum(invocation_count) from webhooks where id = any($1::uuid[])`, ids).Scan(&counted))
	if runs != accepted || threads != accepted || succeeded != accepted || counted != accepted {
		b.Fatalf("accepted %d, runs %d, threads %d, succeeded %d, counted %d", accepted, runs, threads, succeeded, counted)
	}
}

// each has clients do b.N things between them, one after the other each, and gives what each thing took.
func each(b *testing.B, clients int, do func(client, n int) error) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		group.Go(func() {
			for n := 0; left.Add(-1) >= 0; n++ {
				began := time.Now()
				if err := do(c, n); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	b.StopTimer()
	return took
}

func floorCalls(b *testing.B, w *world, clients int) {
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	_, err = pool.Exec(context.Background(), `create table if not exists floor_calls (id bigserial primary key, kind text, body text);
		create table if not exists floor_counters (id int primary key, n bigint); insert into floor_counters select n, 0 from generate_series(0, 4) n on conflict do nothing`)
	must(b, err)
	took := each(b, clients, func(client, n int) error { return floorCall(pool, (client+n)%hooks) })
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "accepted/s")
}

// floorCall writes thread, turn with its payload and message, behind the tenant's and the webhook's counter.
func floorCall(pool *pgxpool.Pool, hook int) error {
	var b pgx.Batch
	b.Queue(`update floor_counters set n = n + 1 where id = 4`)
	for _, kind := range []string{"thread", "turn", "message"} {
		b.Queue(`insert into floor_calls (kind, body) values ($1, '{"message":"Disk almost full on db-3","context":{"host":"db-3","used":0.97}}')`, kind)
	}
	b.Queue(`update floor_counters set n = n + 1 where id = $1`, hook)
	return pool.SendBatch(context.Background(), &b).Close()
}
