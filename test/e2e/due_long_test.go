//go:build long

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/text"
	people "github.com/agentplatform/agentplatform/pkg/user"
)

// TestTenThousandDueInOneMinute: a hundred tenants have a hundred schedules each, all due at the same instant. The platform
// is killed when a third of them has begun, and started again. Each runs once: one execution, one thread, which is closed, one turn, one reply.
func TestTenThousandDueInOneMinute(t *testing.T) {
	t.Parallel()
	const tenants, each = 100, 100
	p := startPlatform(t)
	conn := p.database(t)
	at, err := url.Parse(conn.Config().ConnString())
	require.NoError(t, err)
	c, err := clock.Open(t.Context(), clock.Config{URL: at.String()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	query := at.Query()
	query.Set("role", "agentplatform_app")
	at.RawQuery = query.Encode()
	db, err := postgres.Open(t.Context(), postgres.Config{URL: at.String(), MaxConns: 4, Name: "test"})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	keeper := &schedule.Keeper{DB: db, Clock: c}
	due := time.Now().UTC().Add(4 * time.Minute).Truncate(time.Minute)
	for range tenants {
		tenantID, agentID := ident.New(), ""
		var made []schedule.Schedule
		require.NoError(t, db.InTenant(t.Context(), tenantID, func(tx pgx.Tx) error {
			made = nil
			_, _, err := people.Found(t.Context(), tx, people.Founding{TenantID: tenantID, Slug: "due-" + tenantID, Name: "Due", Agent: agent.Default{ModelID: "offline.echo-1"}})
			if err == nil {
				err = tx.QueryRow(t.Context(), `select id from agents`).Scan(&agentID)
			}
			for n := 0; n < each && err == nil; n++ {
				var s schedule.Schedule
				s, err = schedule.Create(t.Context(), tx, tenantID, ident.New(), schedule.Fields{Name: given(fmt.Sprint("Due ", n)), AgentID: given(agentID),
					Prompt: given("/say Done."), Expression: given(due.Format("at(2006-01-02T15:04:05)")), Missed: given(schedule.MissedRunOnce)})
				made = append(made, s)
			}
			return err
		}))
		for _, s := range made {
			require.NoError(t, keeper.Settle(t.Context(), tenantID, s.ID))
		}
	}
	require.True(t, time.Now().Before(due), "all are there before they are due")

	count := func(what string) (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `select count(*) from executions `+what).Scan(&n))
		return n
	}
	wait := func(what string, n int) {
		for end := time.Now().Add(15 * time.Minute); count(what) < n; {
			require.True(t, time.Now().Before(end), "%d of %d are there: %s", count(what), n, what)
			<-time.After(250 * time.Millisecond)
		}
	}
	wait(``, tenants*each/3)
	p.kill()
	require.NoError(t, conn.Close(t.Context())) // its server has ended with the platform
	db.Close()
	p = p.restart(t)
	conn = p.database(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	wait(`where status <> 'running'`, tenants*each)

	var executions, occurrences, succeeded, threads, turns, replies int
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*), count(distinct e.schedule_id), count(*) filter (where e.status = 'succeeded'),
			count(distinct h.uuid) filter (where h.status = 'closed' and h.channel = 'AUTO' and h.turn_count = 1), count(distinct t.id),
			(select count(*) from messages m where m.role = 'assistant' and m.turn_id in (select turn_id from executions))
		from executions e join thread_turns t on t.tenant_id = e.tenant_id and t.id = e.turn_id join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid`).
		Scan(&executions, &occurrences, &succeeded, &threads, &turns, &replies))
	all := tenants * each
	require.Equal(t, []int{all, all, all, all, all, all}, []int{executions, occurrences, succeeded, threads, turns, replies})
	var lag time.Duration
	require.NoError(t, conn.QueryRow(t.Context(), `select max(t.started_at) - $1 from executions e join thread_turns t on t.tenant_id = e.tenant_id and t.id = e.turn_id`, due).Scan(&lag))
	t.Logf("the last of %d turns was started %s after all were due, with a restart in between", all, lag.Round(time.Second))
}

func given[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }
