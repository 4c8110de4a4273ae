package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const acme = "01900000-0000-7000-8000-00000000a000"

// BenchmarkThreads: 32 clients, each asking for 20 threads with their agent and last 5 messages. The floor is three bare queries for the same rows.
func BenchmarkThreads(b *testing.B) {
	w := open(b)
	pool := w.fill(b)
	defer pool.Close()
	body := request(`{ listThreads(limit: 20) { items { id title status updatedAt agent { id name } messages(limit: 5, order: NEWEST_FIRST) { items { id role body createdAt } } } } }`, nil)
	b.Run("api", func(b *testing.B) { clients(b, 32, func(int) error { return w.query(body, nil) }) })
	b.Run("floor", func(b *testing.B) {
		clients(b, 32, func(int) error {
			if err := drain(pool, `select uuid, prefix, number, title, status, updated_at from threads where tenant_id = $1 order by updated_at desc, uuid desc limit 20`, acme); err != nil {
				return err
			}
			if err := drain(pool, `select id, name from agents where tenant_id = $1`, acme); err != nil {
				return err
			}
			return drain(pool, `select m.id, m.role, m.body, m.created_at from (select uuid from threads where tenant_id = $1 order by updated_at desc, uuid desc limit 20) t
				cross join lateral (select * from messages m where m.tenant_id = $1 and m.thread_uuid = t.uuid order by position desc limit 5) m`, acme)
		})
	})
}

// BenchmarkThread: 32 clients, each asking for one thread by id.
func BenchmarkThread(b *testing.B) {
	w := open(b)
	pool := w.fill(b)
	defer pool.Close()
	bodies := make([][]byte, 256)
	for i := range bodies {
		bodies[i] = request(`query ($id: ID!) { getThread(id: $id) { id title status agentId createdAt updatedAt } }`, map[string]any{"id": fmt.Sprintf("EVAL-%d", i*300+1)})
	}
	b.Run("api", func(b *testing.B) { clients(b, 32, func(n int) error { return w.query(bodies[n%len(bodies)], nil) }) })
	b.Run("floor", func(b *testing.B) {
		clients(b, 32, func(n int) error {
			return drain(pool, `select prefix, number, title, status, agent_id, created_at, updated_at from threads where tenant_id = $1 and prefix = 'EVAL' and number = $2`, acme, n%256*300+1)
		})
	})
}

// BenchmarkListThreads: one client, 50 threads with 8 fields out of 100,000 in the tenant, among 1,000 tenants; the first page and the thousandth.
func BenchmarkListThreads(b *testing.B) {
	w := open(b)
	pool := w.fill(b)
	defer pool.Close()
	const query = `query ($t: String) { listThreads(limit: 50, nextToken: $t) { items { id title status channel agentId tokenCount createdAt updatedAt } nextToken } }`
	var token *string
	var out struct{ ListThreads struct{ NextToken *string } }
	for page := range 1000 {
		if page%999 == 0 {
			body := request(query, map[string]any{"t": token})
			b.Run(fmt.Sprintf("api/page=%d", page+1), func(b *testing.B) { clients(b, 1, func(int) error { return w.query(body, nil) }) })
		}
		if err := w.query(request(query, map[string]any{"t": token}), &out); err != nil {
			b.Fatal(err)
		}
		token = out.ListThreads.NextToken
	}
	b.Run("floor/page=1", func(b *testing.B) {
		clients(b, 1, func(int) error {
			return drain(pool, `select uuid, prefix, number, title, status, channel, agent_id, token_count, created_at, updated_at from threads
				where tenant_id = $1 order by updated_at desc, uuid desc limit 51`, acme)
		})
	})
}

// clients runs b.N calls from n clients and reports calls a second and latencies.
func clients(b *testing.B, n int, call func(n int) error) {
	var next atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	b.ResetTimer()
	for range n {
		group.Go(func() {
			var mine []time.Duration
			for {
				i := int(next.Add(1)) - 1
				if i >= b.N {
					break
				}
				began := time.Now()
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "queries/s")
}

func drain(pool *pgxpool.Pool, sql string, args ...any) error {
	rows, err := pool.Query(context.Background(), sql, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return err
		}
	}
	return rows.Err()
}

var filled sync.Once

// fill makes 1,000 tenants with 100 threads each, and 100,000 threads of the channel EVAL in acme, the newest hundred with ten messages.
func (w *world) fill(b *testing.B) *pgxpool.Pool {
	b.Helper()
	pool, err := w.superuser()
	if err != nil {
		b.Fatal(err)
	}
	filled.Do(func() {
		for _, sql := range []string{
			`insert into tenants (id, slug, name) select gen_random_uuid(), 'tenant-' || n, 'Tenant' from generate_series(1, 1000) n`,
			`insert into agent_templates (tenant_id, id, name, model_id, is_default) select id, gen_random_uuid(), 'Default', 'none', true from tenants where slug like 'tenant-%'`,
			`insert into agents (tenant_id, id, name, template_id) select tenant_id, gen_random_uuid(), 'Bot', id from agent_templates where model_id = 'none'`,
			`insert into spaces (tenant_id, id, name, is_default) select id, gen_random_uuid(), 'Default', true from tenants where slug like 'tenant-%'`,
			`insert into threads (tenant_id, uuid, prefix, number, channel, title, agent_id, space_id) select s.tenant_id, gen_random_uuid(), 'CHAT', n, 'CHAT', 'Thread ' || n, a.id, s.id
				from spaces s join agents a on a.tenant_id = s.tenant_id and a.name = 'Bot' cross join generate_series(1, 100) n`,
			`insert into threads (tenant_id, uuid, prefix, number, channel, title, agent_id, space_id, message_count, updated_at)
				select s.tenant_id, gen_random_uuid(), 'EVAL', n, 'EVAL', 'Evaluation ' || n, s.default_agent_id, s.id, 10, now() + n * interval '1 ms'
				from spaces s cross join generate_series(1, 100000) n where s.tenant_id = '` + acme + `'`,
			`insert into messages (tenant_id, id, thread_uuid, position, role, body, token_count)
				select t.tenant_id, gen_random_uuid(), t.uuid, n, case n % 2 when 1 then 'user' else 'assistant' end, repeat('A sentence of a conversation. ', 5), 36
				from threads t cross join generate_series(1, 10) n where t.prefix = 'EVAL' and t.number > 99900`,
			`vacuum analyze`,
		} {
			if _, err := pool.Exec(context.Background(), sql); err != nil {
				b.Fatal(err)
			}
		}
	})
	return pool
}
