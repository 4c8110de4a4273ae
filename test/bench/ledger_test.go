package bench

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// BenchmarkCanonical: 200 envelopes for each of b.N, on one core: the canonical text is written, then hashed upon the hash before. The floor is the hashing of texts that
// are there already.
func BenchmarkCanonical(b *testing.B) {
	const each = 200
	e, err := act(ident.New()).Envelope()
	must(b, err)
	e.RecordedAt = ident.Now()
	text, err := e.Append(nil)
	must(b, err)
	prev := audit.Genesis
	b.ResetTimer()
	began := time.Now()
	for range each * b.N {
		if text, err = e.Append(text[:0]); err != nil {
			b.Fatal(err)
		}
		prev = audit.Hash(text, prev)
	}
	took := time.Since(began)
	b.StopTimer()
	began = time.Now()
	for range each * b.N {
		sha256.Sum256(text)
	}
	b.ReportMetric(float64(each*b.N)/time.Since(began).Seconds(), "floor-hashes/s")
	b.ReportMetric(float64(each*b.N)/took.Seconds(), "envelopes/s")
	b.ReportMetric(float64(len(text)), "bytes/event")
}

// BenchmarkDrain: 20 events for each of b.N, of 100 tenants, from the outbox into the chains by one writer in batches of 1,000: row-level security, MAC, canonical form,
// hashes. The floor is bare SQL as the superuser: the same rows read, hashed, copied (COPY) into a table with the same indexes and constraints, heads moved, the
// outbox's rows deleted.
func BenchmarkDrain(b *testing.B) {
	b.Run("ledger", func(b *testing.B) {
		k := openBook(b)
		size := k.fill(b, "audit_outbox", ids(100), 20*b.N)
		var end time.Time
		k.config.Signal = func(point string) {
			if point == "drain: committed" {
				end = time.Now() // afterwards a beacon waits for its time
			}
		}
		l := ledger.New(k.config)
		b.ResetTimer()
		began := time.Now()
		must(b, l.Drain(context.Background()))
		b.StopTimer()
		b.ReportMetric(float64(20*b.N)/end.Sub(began).Seconds(), "events/s")
		b.ReportMetric(size, "bytes/event")
		k.expect(b, `select count(*) from audit_events`, 20*b.N)
		fdatasync(b)
	})
	b.Run("floor", func(b *testing.B) {
		k := openBook(b)
		_, err := k.super.Exec(context.Background(), `create table floor_outbox (like audit_outbox including all); create table floor_events (like audit_events including all);
			create table floor_heads (like audit_heads including all)`)
		must(b, err)
		k.fill(b, "floor_outbox", ids(100), 20*b.N)
		heads := map[[16]byte]*floorHead{}
		b.ResetTimer()
		for more := true; more; {
			more, err = k.floorBatch(heads)
			must(b, err)
		}
		b.StopTimer()
		b.ReportMetric(float64(20*b.N)/b.Elapsed().Seconds(), "events/s")
		k.expect(b, `select count(*) from floor_events`, 20*b.N)
		fdatasync(b)
	})
}

func (k *book) expect(b *testing.B, sql string, want int) {
	b.Helper()
	var n int
	must(b, k.super.QueryRow(context.Background(), sql).Scan(&n))
	if n != want {
		b.Fatalf("%s: %d instead of %d", sql, n, want)
	}
}

type floorHead struct {
	length int64
	hash   string
}

func (k *book) floorBatch(heads map[[16]byte]*floorHead) (more bool, err error) {
	ctx := context.Background()
	err = pgx.BeginFunc(ctx, k.super, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select position, tenant_id, event_id, envelope from floor_outbox where state = 'pending' order by position limit 1000`)
		if err != nil {
			return err
		}
		var positions []int64
		var events [][]any
		moved := map[[16]byte]bool{}
		now := time.Now()
		var position int64
		var tenant, event [16]byte
		var text []byte
		_, err = pgx.ForEachRow(rows, []any{&position, &tenant, &event, &text}, func() error {
			h := heads[tenant]
			if h == nil {
				h = &floorHead{hash: audit.Genesis}
				heads[tenant] = h
			}
			prev := h.hash
			h.length, h.hash = h.length+1, audit.Hash(text, prev)
			moved[tenant] = true
			positions = append(positions, position)
			events = append(events, []any{tenant, h.length, event, now, now, "01900000-0000-7000-8000-000000000000", "agent.created", h.hash, prev, int64(1), string(text)})
			return nil
		})
		if err != nil || len(events) == 0 {
			return err
		}
		more = true
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"floor_events"}, []string{"tenant_id", "chain_position", "event_id", "occurred_at", "recorded_at", "actor", "event_type",
			"event_hash", "prev_hash", "cadence", "canonical"}, pgx.CopyFromRows(events)); err != nil {
			return err
		}
		var tenants [][16]byte
		var lengths []int64
		var hashes []string
		for t := range moved {
			tenants, lengths, hashes = append(tenants, t), append(lengths, heads[t].length), append(hashes, heads[t].hash)
		}
		var w pgx.Batch
		w.Queue(`insert into floor_heads (tenant_id, length, event_hash, recorded_at) select *, now() from unnest($1::uuid[], $2::bigint[], $3::text[])
			on conflict (tenant_id) do update set length = excluded.length, event_hash = excluded.event_hash`, tenants, lengths, hashes)
		w.Queue(`delete from floor_outbox where position = any ($1)`, positions)
		return tx.SendBatch(ctx, &w).Close()
	})
	return more, err
}

// BenchmarkRecord: what an audited act costs beyond the act. One client makes agents, one after the other, with their event and without, in turn.
func BenchmarkRecord(b *testing.B) {
	k := openBook(b)
	ctx := context.Background()
	tenant, template := ident.New(), ident.New()
	must(b, k.app.InTenant(ctx, tenant, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into tenants (id, slug, name) values ($1, 'bench', 'Bench')`, tenant); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into agent_templates (tenant_id, id, name, model_id, is_default) values ($1, $2, 'Default', 'none', true)`, tenant, template)
		return err
	}))
	agent := func(recorded bool) (time.Duration, error) {
		began := time.Now()
		err := k.box.InTenant(ctx, k.app, tenant, func(tx pgx.Tx) error {
			id := ident.New()
			if _, err := tx.Exec(ctx, `insert into agents (tenant_id, id, name, template_id) values ($1, $2, $3, $4)`, tenant, id, "Agent "+id, template); err != nil || !recorded {
				return err
			}
			return k.box.Record(ctx, tx, act(tenant))
		})
		return time.Since(began), err
	}
	var bare, recorded []time.Duration
	b.ResetTimer()
	for range b.N {
		d, err := agent(false)
		must(b, err)
		bare = append(bare, d)
		d, err = agent(true)
		must(b, err)
		recorded = append(recorded, d)
	}
	b.StopTimer()
	b.ReportMetric(percentile(bare, 50), "bare-p50-ms")
	b.ReportMetric(percentile(recorded, 50), "recorded-p50-ms")
	b.ReportMetric(percentile(recorded, 50)-percentile(bare, 50), "added-p50-ms")
	b.ReportMetric(percentile(recorded, 99)-percentile(bare, 99), "added-p99-ms")
	fdatasync(b)
}

// BenchmarkLag: 2,000 acts a second are recorded, evenly spread, of 100 tenants; how long after its commit an event is in its chain. The drainer is woken as in the platform:
// by each act, one run after the other.
func BenchmarkLag(b *testing.B) {
	const rate, writers = 2000, 20
	k := openBook(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tenants := ids(100)
	wake := make(chan struct{}, 1)
	k.box = outbox.New(outbox.Config{Key: emissionKey, Wake: func(context.Context) error {
		select {
		case wake <- struct{}{}:
		default:
		}
		return nil
	}})
	var committed []time.Time // of batches, in their order
	k.config.Signal = func(point string) {
		if point == "drain: committed" {
			committed = append(committed, time.Now())
		}
	}
	l := ledger.New(k.config)
	var drainer, acting sync.WaitGroup
	var failed error
	drainer.Go(func() {
		for range wake {
			if failed = l.Drain(ctx); failed != nil {
				return
			}
		}
	})
	var mu sync.Mutex
	done := map[string]time.Time{} // by event
	n := 4 * b.N
	b.ResetTimer()
	began := time.Now()
	for writer := range writers {
		acting.Go(func() {
			for i := writer; i < n; i += writers {
				<-time.After(time.Until(began.Add(time.Duration(i) * time.Second / rate)))
				e := act(tenants[i%len(tenants)])
				e.EventID = ident.New()
				if err := k.box.InTenant(ctx, k.app, e.TenantID, func(tx pgx.Tx) error { return k.box.Record(ctx, tx, e) }); err != nil {
					b.Error(err)
					return
				}
				now := time.Now()
				mu.Lock()
				done[e.EventID] = now
				mu.Unlock()
			}
		})
	}
	acting.Wait()
	b.StopTimer()
	took := time.Since(began)
	close(wake)
	drainer.Wait() // with the last beacon
	must(b, failed)
	b.ReportMetric(float64(n)/took.Seconds(), "recorded/s")
	rows, err := k.super.Query(ctx, `select event_id::text, drained_at from audit_outbox where state = 'drained'`)
	must(b, err)
	var lags []time.Duration
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		i, _ := slices.BinarySearchFunc(committed, at, time.Time.Compare) // the first commit after the batch was written
		lags = append(lags, max(0, committed[i].Sub(done[id])))
		return nil
	})
	must(b, err)
	if len(lags) != n {
		b.Fatalf("%d of %d events are in a chain", len(lags), n)
	}
	b.ReportMetric(percentile(lags, 50), "lag-p50-ms")
	b.ReportMetric(percentile(lags, 99), "lag-p99-ms")
	fdatasync(b)
}

// BenchmarkAnchor: 10,000 tenants have a chain and five of them new events; from the call to the object in the bucket, signed. The floor is the hashing of so many heads.
func BenchmarkAnchor(b *testing.B) {
	const all, some, rounds = 10_000, 5, 20
	k := openBook(b)
	tenants := ids(all)
	now := time.Now()
	var put time.Time
	k.config.Now = func() time.Time { return now }
	k.config.BeaconEvery = -1
	k.config.Signal = func(point string) {
		if point == "anchor: put" {
			put = time.Now()
		}
	}
	l := ledger.New(k.config)
	ctx := context.Background()
	round := func(tenants []string) (toPut, total time.Duration) {
		k.fill(b, "audit_outbox", tenants, len(tenants))
		must(b, l.Drain(ctx))
		now = now.Add(15 * time.Minute)
		began := time.Now()
		must(b, l.PublishAnchor(ctx))
		return put.Sub(began), time.Since(began)
	}
	round(tenants)
	var puts, totals []time.Duration
	b.ResetTimer()
	for i := range min(b.N, rounds) {
		p, t := round(tenants[i*some : (i+1)*some])
		puts, totals = append(puts, p), append(totals, t)
	}
	b.StopTimer()
	b.ReportMetric(percentile(puts, 50), "to-object-p50-ms")
	b.ReportMetric(percentile(puts, 95), "to-object-p95-ms")
	b.ReportMetric(percentile(totals, 50), "in-all-p50-ms")
	heads := make([]anchor.Tenant, all)
	for i := range heads {
		heads[i] = anchor.Tenant{TenantID: tenants[i], Length: 1}
	}
	slices.SortFunc(heads, func(a, b anchor.Tenant) int { return strings.Compare(a.TenantID, b.TenantID) })
	began := time.Now()
	_, _, _, err := anchor.Roots(heads)
	must(b, err)
	b.ReportMetric(percentile([]time.Duration{time.Since(began)}, 50), "floor-hashing-ms")
	fdatasync(b)
}
