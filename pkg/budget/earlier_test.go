package budget_test

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/schema"
)

// A platform that is upgraded knows what its turns used before there was a table for it, tenant by tenant; and goes on with the turns under way.
func TestTurnsOfAnEarlierRelease(t *testing.T) {
	db := *newWorld(t).db
	name := db.Name + "_earlier"
	super := db.Superuser(t)
	_, err := super.Exec(t.Context(), `create database `+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := super.Exec(context.Background(), `drop database `+name+` with (force)`)
		require.NoError(t, err)
	})
	for _, url := range []*string{&db.AppURL, &db.SuperURL} {
		*url = strings.Replace(*url, "/"+db.Name, "/"+name, 1)
	}
	earlier := fstest.MapFS{}
	files, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	for _, file := range files {
		if path.Base(file) < "00006" {
			sql, err := fs.ReadFile(schema.SQL, file)
			require.NoError(t, err)
			earlier[file] = &fstest.MapFile{Data: sql}
		}
	}
	require.NoError(t, migrate.Up(t.Context(), db.SuperURL, earlier))
	db.App = db.Open(t, db.AppURL)
	worlds := make([]*world, 2)
	running := ident.New()
	for i, slug := range []string{"acme", "globex"} {
		w := &world{World: db.World(t, slug), t: t, db: &db, super: db.Superuser(t), at: now}
		worlds[i] = w
		var b pgx.Batch
		thread := ident.New()
		b.Queue(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, $2, 'CHAT', 1, 'CHAT', $3, $4)`, w.TenantID, thread, w.AgentID, w.SpaceID)
		for n := range 3 + i {
			b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, finished_at, input_tokens, cost_micros) values ($1, $2, $3, $4, $5, 'succeeded', $6, 9, 100)`,
				w.TenantID, ident.New(), thread, w.AgentID, n+1, now.AddDate(0, -n, 0))
		}
		if i == 0 {
			b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status) values ($1, $2, $3, $4, 9, 'running')`, w.TenantID, running, thread, w.AgentID)
		}
		require.NoError(t, db.App.Once(t.Context(), w.TenantID, &b))
	}
	require.NoError(t, migrate.Up(t.Context(), db.SuperURL, schema.SQL))

	for i, w := range worlds {
		total := w.usage(budget.Question{From: "2025-12-01", To: "2026-12-31"}).Total
		require.EqualValues(t, []int{3, 4}[i], total.Turns)
		require.EqualValues(t, 9*total.Turns, total.InputTokens)
		require.Equal(t, "0.000100", w.cap(budget.Agent, w.AgentID, 1000).SpentUSD, "this month's")
	}
	worlds[0].ended(running, 50)
	require.Equal(t, "0.000150", worlds[0].budgets()[0].SpentUSD)
}
