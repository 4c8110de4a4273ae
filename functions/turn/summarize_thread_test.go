package turn_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

// Who ends a turn of a thread that has grown long invokes the function, which summarises it.
func TestAThreadThatHasGrownLong(t *testing.T) {
	s := newSite(t, nil)
	th, first := s.ask("default")
	require.NoError(t, s.dispatch(first))
	require.NotContains(t, s.invoked, turn.SummarizeFunction)

	require.NoError(t, s.db.App.InTenant(t.Context(), s.TenantID, func(tx pgx.Tx) error {
		_, err := turn.Request(t.Context(), tx, s.TenantID, turn.Ask{ThreadID: th.ID, Body: "More", OnBusy: turn.Enqueue, UserID: s.UserID})
		return err
	}))
	super := s.db.Superuser(t)
	_, err := super.Exec(t.Context(), `update messages set token_count = 40000 where position < 3`)
	require.NoError(t, err)
	var second string
	require.NoError(t, super.QueryRow(t.Context(), `select id from thread_turns where status = 'queued'`).Scan(&second))
	require.NoError(t, s.dispatch(second))
	require.Equal(t, turn.Succeeded, s.turn(second).Status)
	require.Contains(t, s.invoked, turn.SummarizeFunction)

	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	row, ok := rows.Row(turn.SummarizeFunction)
	require.True(t, ok)
	payload, err := json.Marshal(turn.SummaryTask{TenantID: s.TenantID, ThreadUUID: th.UUID})
	require.NoError(t, err)
	summarize := functions.SummarizeThread(handler.NewEnv(row, &handler.Ports{DB: func() *postgres.DB { return s.db.App }, Model: func() model.Model { return s }}))
	for range 2 { // once
		_, err = summarize.Invoke(t.Context(), payload)
		require.NoError(t, err)
	}
	var body string
	require.NoError(t, super.QueryRow(t.Context(), `select body from thread_summaries where thread_uuid = $1`, th.UUID).Scan(&body))
	require.Equal(t, "Done.", body)
}
