package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/user"
)

const (
	dueSeconds = 20 // that schedules are due in
	dueAtOnce  = 5  // each second
)

// BenchmarkScheduledTurn: schedules that are due, 5 at the same instant each second for 20 s, until their turns are started: through the clock, the state
// machine, the thread that is opened and the dispatch. The floor is what the database needs at least for that: the execution, thread, message and turn
// in one transaction, and the claim of the turn in another.
func BenchmarkScheduledTurn(b *testing.B) {
	if b.N == 1 { // only to see how long it takes; what is measured takes 20 s, whatever N is
		return
	}
	w := open(b)
	w.settle(b)
	db, err := w.app()
	must(b, err)
	defer db.Close()
	u, err := w.superuserURL()
	must(b, err)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	c, err := clock.Open(b.Context(), clock.Config{URL: u.String()}) // of the same database as the platform's, which it tells
	must(b, err)
	defer c.Close()
	tenantID, agentID := founded(b, db)
	keeper := &schedule.Keeper{DB: db, Clock: c}
	first := time.Now().UTC().Truncate(time.Second).Add(5 * time.Second)
	for n := range dueSeconds * dueAtOnce {
		dueAt(b, db, keeper, tenantID, agentID, first.Add(time.Duration(n/dueAtOnce)*time.Second))
	}
	waits := started(b, pool, tenantID, dueSeconds*dueAtOnce)
	b.ReportMetric(percentile(waits, 50), "p50-ms")
	b.ReportMetric(percentile(waits, 95), "p95-ms")
	b.ReportMetric(percentile(waits, 100), "max-ms")

	var floor []time.Duration
	for n := range dueSeconds * dueAtOnce {
		floor = append(floor, bareTurn(b, pool, tenantID, agentID, 1_000_000+n))
	}
	b.ReportMetric(percentile(floor, 50), "floor-p50-ms")
	b.ReportMetric(percentile(floor, 95), "floor-p95-ms")
}

// founded is a tenant of its own with an agent.
func founded(b *testing.B, db *postgres.DB) (tenantID, agentID string) {
	tenantID = ident.New()
	must(b, db.InTenant(b.Context(), tenantID, func(tx pgx.Tx) error {
		_, _, err := user.Found(b.Context(), tx, user.Founding{TenantID: tenantID, Slug: "due-" + tenantID, Name: "Due", Agent: agent.Default{ModelID: "offline.echo-1"}})
		if err != nil {
			return err
		}
		return tx.QueryRow(b.Context(), `select id from agents`).Scan(&agentID)
	}))
	return tenantID, agentID
}

// dueAt makes a schedule that runs once.
func dueAt(b *testing.B, db *postgres.DB, keeper *schedule.Keeper, tenantID, agentID string, at time.Time) {
	var s schedule.Schedule
	must(b, db.InTenant(b.Context(), tenantID, func(tx pgx.Tx) (err error) {
		s, err = schedule.Create(b.Context(), tx, tenantID, ident.New(), schedule.Fields{Name: given("Due"), AgentID: given(agentID), Prompt: given("Hello"),
			Expression: given(at.Format("at(2006-01-02T15:04:05)"))})
		return err
	}))
	must(b, keeper.Settle(b.Context(), tenantID, s.ID))
}

func given[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

// started waits until so many executions are over, and tells how long after its occurrence the turn of each was started.
func started(b *testing.B, pool *pgxpool.Pool, tenantID string, n int) (waits []time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for over := 0; over < n; {
		must(b, pool.QueryRow(ctx, `select count(*) from executions where tenant_id = $1 and status <> 'running'`, tenantID).Scan(&over))
		<-time.After(50 * time.Millisecond) // the platform is to have the processors
	}
	rows, err := pool.Query(ctx, `select t.started_at - e.occurrence from executions e join thread_turns t on t.tenant_id = e.tenant_id and t.id = e.turn_id
		where e.tenant_id = $1 and e.status = 'succeeded'`, tenantID)
	must(b, err)
	waits, err = pgx.CollectRows(rows, pgx.RowTo[time.Duration])
	must(b, err)
	if len(waits) != n {
		b.Fatalf("%d of %d schedules had their turn", len(waits), n)
	}
	return waits
}

// bareTurn is the SQL that no scheduled turn can do without.
func bareTurn(b *testing.B, pool *pgxpool.Pool, tenantID, agentID string, number int) time.Duration {
	execution, threadID, turnID := ident.New(), ident.New(), ident.New()
	began := time.Now()
	var write, claim pgx.Batch
	write.Queue(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) select $1, $2, 'AUTO', $4, 'AUTO', $3, s.id from spaces s where s.tenant_id = $1 limit 1`,
		tenantID, threadID, agentID, number)
	write.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number) values ($1, $2, $3, $4, 1)`, tenantID, turnID, threadID, agentID)
	write.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id) values ($1, $2, $3, 1, 'user', 'Hello', $4)`, tenantID, ident.New(), threadID, turnID)
	write.Queue(`insert into executions (tenant_id, id, arn, turn_id) values ($1, $2, $3, $4)`, tenantID, execution, fmt.Sprint("bare-", execution), turnID)
	claim.Queue(`update thread_turns set status = 'running', started_at = clock_timestamp() where tenant_id = $1 and id = $2`, tenantID, turnID)
	for _, batch := range []*pgx.Batch{&write, &claim} {
		must(b, pool.SendBatch(b.Context(), batch).Close())
	}
	return time.Since(began)
}
