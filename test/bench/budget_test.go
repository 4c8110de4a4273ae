package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	acmeSpace = "01900000-0000-7000-8000-00000000a001"
	acmeAgent = "01900000-0000-7000-8000-00000000a003"
	plenty    = 1_000_000_000_000_000 // micros: no turn is refused
)

// BenchmarkSend: from sendMessage to its answer, each message to a thread of its own so that it starts a turn; turns wait, and end when it is
// measured. Without a budget, with the agent's, with three (the tenant's, the space's and the agent's), and with three of which 1,000 other turns
// hold a share. The floor is the message and the turn written by bare SQL in one commit; and the same behind one row's lock.
func BenchmarkSend(b *testing.B) {
	w := open(b)
	w.settle(b)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ctx := context.Background()
	_, err = pool.Exec(ctx, `create table if not exists floor (id bigserial primary key, client int, kind text, body text, state text);
		create table if not exists floor_lock (one boolean primary key); insert into floor_lock values (true) on conflict do nothing`)
	must(b, err)
	for _, n := range []int{1, 32} {
		for _, c := range []struct {
			name   string
			scopes []string
			others int
		}{{"none", nil, 0}, {"agent", []string{acmeAgent}, 0}, {"three", []string{acme, acmeSpace, acmeAgent}, 0}, {"three,1000-waiting", []string{acme, acmeSpace, acmeAgent}, 1000}} {
			b.Run(fmt.Sprintf("budgets=%s/clients=%d", c.name, n), func(b *testing.B) {
				clear := budgets(b, pool, c.scopes, c.others)
				defer clear()
				sends(b, w, pool, n)
			})
		}
		for _, locked := range []bool{false, true} {
			b.Run(fmt.Sprintf("floor,locked=%v/clients=%d", locked, n), func(b *testing.B) {
				took := each(b, n, func(client, _ int) error {
					var first pgx.Batch
					first.Queue(`insert into floor (client, kind, body) values ($1, 'message', 'How are you?')`, client)
					first.Queue(`insert into floor (client, kind, state) values ($1, 'turn', 'queued')`, client)
					if locked {
						first.Queue(`select from floor_lock for no key update`)
					}
					return pool.SendBatch(ctx, &first).Close()
				})
				b.ReportMetric(percentile(took, 50), "p50-ms")
				b.ReportMetric(percentile(took, 95), "p95-ms")
			})
		}
	}
}

// budgets sets them, with so many other turns that hold a share, until clear.
func budgets(b *testing.B, pool *pgxpool.Pool, scopes []string, others int) (clear func()) {
	ctx := context.Background()
	for _, id := range scopes {
		scope := map[string]string{acme: "tenant", acmeSpace: "space", acmeAgent: "agent"}[id]
		_, err := pool.Exec(ctx, `insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, $2, $3, $4)`, acme, scope, id, plenty)
		must(b, err)
	}
	if others > 0 {
		must(b, turnsOf(ctx, pool, others, "others"))
		_, err := pool.Exec(ctx, `insert into budget_reservations (tenant_id, turn_id, agent_id, space_id, reserved_micros)
			select tenant_id, id, agent_id, $1, 300000 from thread_turns where tenant_id = $2 and error = 'others'`, acmeSpace, acme)
		must(b, err)
		_, err = pool.Exec(ctx, `analyze budget_reservations`)
		must(b, err)
	}
	return func() {
		_, err := pool.Exec(ctx, `update thread_turns set status = 'failed', finished_at = now(), error = null where error = 'others'`)
		must(b, err)
		_, err = pool.Exec(ctx, `delete from budgets`)
		must(b, err)
	}
}

// turnsOf writes n threads with a queued turn each, marked.
func turnsOf(ctx context.Context, pool *pgxpool.Pool, n int, mark string) error {
	_, err := pool.Exec(ctx, `with made as (
			insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id)
			select $1, gen_random_uuid(), gen_random_uuid()::text, n, 'EVAL', $2, $3 from generate_series(1, $4) n returning tenant_id, uuid, agent_id)
		insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, error) select tenant_id, gen_random_uuid(), uuid, agent_id, 1, $5 from made`,
		acme, acmeAgent, acmeSpace, n, mark)
	return err
}

func sends(b *testing.B, w *world, pool *pgxpool.Pool, clients int) {
	threads := make([]string, b.N)
	for i := range threads {
		var err error
		threads[i], err = w.openThread()
		must(b, err)
	}
	w.gate.shut()
	defer w.gate.release()
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range clients {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				var out struct{ SendMessage struct{ TurnID string } }
				began := time.Now()
				if err := w.query(request(`mutation ($t: ID!) { sendMessage(input: {threadId: $t, body: "How are you?"}) { turnId } }`, map[string]any{"t": threads[i]}), &out); err != nil {
					b.Error(err)
					return
				}
				t := time.Since(began)
				if err := endTurn(pool, `status = 'failed'`, out.SendMessage.TurnID, nil); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, t)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(percentile(took, 50), "p50-ms")
	b.ReportMetric(percentile(took, 95), "p95-ms")
}

// endTurn ends a turn of acme's as the platform does, bound to its tenant and in one commit.
func endTurn(pool *pgxpool.Pool, set string, id any, more func(b *pgx.Batch)) error {
	var end pgx.Batch
	end.Queue(`select set_config('app.tenant_id', $1, true)`, acme)
	end.Queue(`update thread_turns set `+set+`, finished_at = now(), lease_until = null where tenant_id = $1 and id = $2`, acme, id)
	if more != nil {
		more(&end)
	}
	return pool.SendBatch(context.Background(), &end).Close()
}

// BenchmarkTurnEnd: 32 turns of one agent at a time end, by bare SQL in a commit each: metered as the platform does it; with a counter of the day
// instead, which all of them change; and, the floor, not counted at all.
func BenchmarkTurnEnd(b *testing.B) {
	w := open(b)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	ctx := context.Background()
	_, err = pool.Exec(ctx, `create table if not exists floor_days (day date, agent_id uuid, turns bigint, cost bigint, primary key (day, agent_id))`)
	must(b, err)
	for _, how := range []string{"metered", "counter", "floor"} {
		b.Run(how, func(b *testing.B) {
			if how != "metered" {
				_, err := pool.Exec(ctx, `alter table thread_turns disable trigger metered`)
				must(b, err)
				defer func() {
					_, err := pool.Exec(ctx, `alter table thread_turns enable trigger metered`)
					must(b, err)
				}()
			}
			must(b, turnsOf(ctx, pool, b.N, how))
			rows, err := pool.Query(ctx, `select id from thread_turns where tenant_id = $1 and error = $2 and finished_at is null`, acme, how)
			must(b, err)
			ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
			must(b, err)
			var next atomic.Int64
			took := each(b, 32, func(_, _ int) error {
				return endTurn(pool, `status = 'succeeded', cost_micros = 20, input_tokens = 100, output_tokens = 10`, ids[next.Add(1)-1], func(b *pgx.Batch) {
					if how == "counter" {
						b.Queue(`insert into floor_days as d values (current_date, $1, 1, 20) on conflict (day, agent_id) do update set turns = d.turns + 1, cost = d.cost + 20`, acmeAgent)
					}
				})
			})
			b.ReportMetric(percentile(took, 50), "p50-ms")
			b.ReportMetric(percentile(took, 95), "p95-ms")
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "turns/s")
		})
	}
}

const million = 1_000_000

var spent sync.Once

// BenchmarkUsage: charts of a tenant with 1,000,000 turns of a year, by 50 agents with 2 models in 5 spaces; and the adding up of all of them. Beside it
// the same by bare SQL of one row a turn, with an index that has all that is asked for.
func BenchmarkUsage(b *testing.B) {
	w := open(b)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	spent.Do(func() { fillUsage(b, pool) })
	for _, c := range []struct{ name, question, floor string }{
		{"year,by-day", `from: "2024-01-01", to: "2024-12-31", groupBy: [DAY]`, `select day, count(*), sum(input_tokens), sum(output_tokens), sum(cost_micros) from floor_usage
			where tenant_id = $1 and day between '2024-01-01' and '2024-12-31' group by day`},
		{"year,by-agent-and-model", `from: "2024-01-01", to: "2024-12-31", groupBy: [AGENT, MODEL]`, `select agent_id, model, count(*), sum(input_tokens), sum(output_tokens), sum(cost_micros) from floor_usage
			where tenant_id = $1 and day between '2024-01-01' and '2024-12-31' group by agent_id, model`},
		{"month,by-day-and-agent", `from: "2024-06-01", to: "2024-06-30", groupBy: [DAY, AGENT]`, `select day, agent_id, count(*), sum(input_tokens), sum(output_tokens), sum(cost_micros) from floor_usage
			where tenant_id = $1 and day between '2024-06-01' and '2024-06-30' group by day, agent_id`},
	} {
		body := request(`{ usage(`+c.question+`) { items { day agentId model turns inputTokens outputTokens costUsd } total { turns costUsd } } }`, nil)
		b.Run("api/"+c.name, func(b *testing.B) { clients(b, 1, func(int) error { return w.query(body, nil) }) })
		b.Run("rows/"+c.name, func(b *testing.B) {
			var took []time.Duration
			for range min(b.N, 20) { // each of them reads up to a million rows
				began := time.Now()
				must(b, drain(pool, c.floor, acme))
				took = append(took, time.Since(began))
			}
			b.ReportMetric(percentile(took, 50), "p50-ms")
			b.ReportMetric(percentile(took, 95), "p95-ms")
		})
	}
}

// fillUsage has a million turns end, and adds them up.
func fillUsage(b *testing.B, pool *pgxpool.Pool) {
	ctx := context.Background()
	const turns = `select $1::uuid, now(), '2024-01-01'::date + n % 366, ('01900000-0000-7000-8000-' || lpad((n * 7 % 50)::text, 12, '0'))::uuid,
		('01900000-0000-7000-8000-' || lpad((n * 11 % 5)::text, 12, '0'))::uuid, 'model-' || n % 2, 1, 0, 1000 + n % 100, 100, 0, 0, n % 5000 from generate_series(1, $2::int) n`
	_, err := pool.Exec(ctx, `insert into usage_unmetered (tenant_id, ended_at, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens,
		cache_read_tokens, cache_write_tokens, cost_micros) `+turns, acme, million)
	must(b, err)
	_, err = pool.Exec(ctx, `create table floor_usage (like usage_unmetered); create index on floor_usage (tenant_id, day) include (agent_id, model, input_tokens, output_tokens, cost_micros);
		insert into floor_usage select * from usage_unmetered`)
	must(b, err)
	_, err = pool.Exec(ctx, `vacuum analyze floor_usage`)
	must(b, err)
	began := time.Now()
	tx, err := pool.Begin(ctx)
	must(b, err)
	_, err = tx.Exec(ctx, `select set_config('app.tenant_id', $1, true)`, acme)
	must(b, err)
	for rows := 1; rows > 0; {
		must(b, tx.QueryRow(ctx, `select meter_usage(10000)`).Scan(&rows))
	}
	must(b, tx.Commit(ctx))
	b.Logf("%d turns were added up in %v", million, time.Since(began).Round(time.Millisecond))
	_, err = pool.Exec(ctx, `vacuum analyze usage_unmetered, usage_days, usage_months`)
	must(b, err)
}
