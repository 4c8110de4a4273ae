//go:build long

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
)

// underWay is what goes on by the platform's database, or waits to be told, of any tenant.
const underWay = `select what from (
	select 'callbacks', count(*) from callbacks union all
	select 'executions', count(*) from executions where status = 'running' union all
	select 'routine runs', count(*) from routine_runs where finished_at is null union all
	select 'steps', count(*) from routine_steps where finished_at is null or lease_until is not null union all
	select 'replies', count(*) from integration_replies where next_at is not null union all
	select 'task events', count(*) from task_events where next_at is not null union all
	select 'turns', count(*) from thread_turns where finished_at is null union all
	select 'runs of the engine', count(*) from local_workflow.runs where ended is null
) found (what, n) where n > 0`

// nothingLeft holds when all is over: nothing goes on, and nobody waits to be told of anything, which the API does not show.
func (l *lane) nothingLeft(t *testing.T) {
	t.Helper()
	conn := l.database(t)
	defer conn.Close(t.Context())
	left := "nothing"
	defer func() { require.Equal(t, "nothing", left) }()
	soon(t, "all is over", func() bool {
		rows, err := conn.Query(t.Context(), underWay)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		if left = strings.Join(found, ", "); left == "" {
			left = "nothing"
		}
		return left == "nothing"
	})
}

// database is the platform's, without its policies.
func (l *lane) database(t *testing.T) *pgx.Conn {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(l.data(), "secrets.env"))
	require.NoError(t, err)
	password := regexp.MustCompile(`(?m)^POSTGRES_PASSWORD='?([^'\n]*)`).FindSubmatch(raw)
	require.NotNil(t, password)
	at, err := url.Parse(l.up.Outputs.DatabaseReaderURL)
	require.NoError(t, err)
	at.User = url.UserPassword(embedded.Superuser, string(password[1]))
	conn, err := pgx.Connect(t.Context(), at.String())
	require.NoError(t, err)
	return conn
}

// soon waits until something holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTime); !holds(); pause(t.Context(), 30*time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not in time: %s", what)
	}
}
