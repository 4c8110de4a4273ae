package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	localclock "github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// What a drift check of 10,000 schedules costs when nothing has drifted: one runs every five minutes.
func BenchmarkReconcile(b *testing.B) {
	db := pgtest.New(b)
	w := db.World(b, "acme")
	c, err := localclock.Open(b.Context(), localclock.Config{URL: db.SuperURL})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	_, err = db.Superuser(b).Exec(b.Context(), `insert into schedules (tenant_id, id, name, agent_id, prompt, expression, time_zone, enabled, missed, since, put_revision, created_by,
			created_at, updated_at)
		select $1, gen_random_uuid(), 'Many', $2, 'Go.', 'cron(0 9 ? * MON-FRI *)', 'Europe/Berlin', true, 'run_once', date_trunc('second', now()), 1, $1, now(), now()
		from generate_series(1, 10000)`, w.TenantID, w.AgentID)
	require.NoError(b, err)
	at := time.Now()
	now := func() time.Time { return at }
	keeper := &schedule.Keeper{DB: db.App, Clock: c, Runs: &started{by: map[string]string{}, are: map[string]workflow.Run{}, now: now}, Now: now}
	_, err = keeper.Reconcile(b.Context()) // the clock has them
	require.NoError(b, err)
	for b.Loop() {
		at = at.Add(5 * time.Minute)
		_, err := keeper.Reconcile(b.Context())
		require.NoError(b, err)
	}
}
