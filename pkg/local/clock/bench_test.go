package clock

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// fill puts n schedules, due from a moment on, each so much after the one before; then daily.
func fill(b *testing.B, db *pgtest.DB, c *Clock, n int, from time.Time, apart time.Duration) {
	require.NoError(b, c.Put(b.Context(), clock.Schedule{Name: "template", Expression: "rate(1 day)", Input: []byte(`{"scheduleId":"019a1f7e-8d5c-7b3a-9f10-aabbccddeeff"}`)}))
	conn := db.Superuser(b)
	_, err := conn.Exec(b.Context(), `insert into local_clock.schedules (name, expression, time_zone, start_at, enabled, input, made, occurrence, wake)
		select 's-' || n, expression, time_zone, at, true, input, made, at, at from local_clock.schedules, generate_series(1, $1::int) n, lateral (select $2::timestamptz + n * $3::interval) as due (at)`, n, from, apart)
	require.NoError(b, err)
	_, err = conn.Exec(b.Context(), `analyze local_clock.schedules`)
	require.NoError(b, err)
}

// BenchmarkDue is how long after it is due an occurrence is fired: alone, 5 ms apart; together, all at one instant, where it is a matter of how many
// a second. The floor claims, and writes what was delivered, with bare SQL one after the other.
func BenchmarkDue(b *testing.B) {
	for _, apart := range []time.Duration{5 * time.Millisecond, 0} {
		name := map[bool]string{true: "together", false: "alone"}[apart == 0]
		b.Run(name, func(b *testing.B) {
			db := pgtest.New(b)
			c, err := Open(b.Context(), Config{URL: db.SuperURL})
			require.NoError(b, err)
			defer c.Close()
			fill(b, db, c, b.N, time.Now().Add(time.Second), apart)
			lags := make(chan time.Duration, b.N)
			ctx, cancel := context.WithCancel(b.Context())
			over := make(chan struct{})
			go func() {
				defer close(over)
				_ = c.Run(ctx, func(_ context.Context, _ clock.Schedule, at time.Time) error {
					lags <- time.Since(at)
					return nil
				})
			}()
			all := make([]time.Duration, b.N)
			all[0] = <-lags
			b.ResetTimer()
			for i := range b.N - 1 {
				all[i+1] = <-lags
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fired/s")
			cancel()
			<-over
			slices.Sort(all)
			for _, p := range []int{50, 95, 100} {
				b.ReportMetric(float64(all[max(0, b.N*p/100-1)].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
			}
		})
	}
	b.Run("floor", func(b *testing.B) {
		db := pgtest.New(b)
		c, err := Open(b.Context(), Config{URL: db.SuperURL})
		require.NoError(b, err)
		defer c.Close()
		fill(b, db, c, b.N, time.Now(), 0)
		conn := db.Superuser(b)
		_, err = conn.Exec(b.Context(), `set synchronous_commit = off`)
		require.NoError(b, err)
		b.ResetTimer()
		for range b.N {
			var name string
			var count int64
			require.NoError(b, conn.QueryRow(b.Context(), `update local_clock.schedules s set wake = now() + interval '1 minute', claim = claim + 1
				from (select name from local_clock.schedules where wake < now() order by wake limit 1 for update skip locked) due where s.name = due.name returning s.name, claim`).Scan(&name, &count))
			_, err := conn.Exec(b.Context(), `update local_clock.schedules set wake = now() + interval '1 day' where name = $1 and claim = $2`, name, count)
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fired/s")
	})
}

// BenchmarkIdle is what 10,000 schedules cost while none is due, in percent of a core, with the database's processes that serve the clock. It takes
// 65 s whatever benchtime says, so that a look without a reason is among it.
func BenchmarkIdle(b *testing.B) {
	db := pgtest.New(b)
	c, err := Open(b.Context(), Config{URL: db.SuperURL})
	require.NoError(b, err)
	defer c.Close()
	fill(b, db, c, 10_000, time.Now().Add(time.Hour), time.Second)
	ctx, cancel := context.WithCancel(b.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Run(ctx, nil)
	}()
	conn := db.Superuser(b)
	listening := func() bool {
		var n int
		require.NoError(b, conn.QueryRow(b.Context(), `select count(*) from pg_stat_activity where datname = current_database() and query = 'listen local_clock'`).Scan(&n))
		return n == 1
	}
	require.Eventually(b, listening, time.Minute, 10*time.Millisecond)
	pids := []string{"self"}
	rows, err := conn.Query(b.Context(), `select pid::text from pg_stat_activity where datname = current_database() and application_name = 'agentplatform clock'`)
	require.NoError(b, err)
	backends, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b, err)
	pids = append(pids, backends...)
	began, before := time.Now(), ticks(b, pids)
	<-time.After(65 * time.Second)
	const perSecond = 100 // USER_HZ
	b.ReportMetric(float64(ticks(b, pids)-before)/perSecond/time.Since(began).Seconds()*100, "%-of-a-core")
	cancel()
	<-over
}

// ticks is the processor time of processes.
func ticks(b *testing.B, pids []string) (sum int) {
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		require.NoError(b, err)
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
		for _, n := range fields[11:13] {
			spent, err := strconv.Atoi(n)
			require.NoError(b, err)
			sum += spent
		}
	}
	return sum
}
