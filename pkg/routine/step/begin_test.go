package step_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
)

// A machine begins steps of its own tenant's, routine's and version's runs, and of no others.
func TestATaskOfAnotherMachine(t *testing.T) {
	w := newWorld(t)
	other := w.db.World(t, "globex")
	for name, change := range map[string]func(c *routine.Call){
		"another tenant's":  func(c *routine.Call) { c.TenantID = other.TenantID },
		"another routine's": func(c *routine.Call) { c.RoutineID = ident.New() },
		"another version's": func(c *routine.Call) { c.Version = 2 },
	} {
		c := w.task(routine.WaitForApproval, json.RawMessage(`{"prompt":"May I?"}`))
		change(&c)
		_, err := step.Begin(t.Context(), w.db.App, c)
		require.Equal(t, fault.NotFound, fault.From(err).Type, name)
	}
	var steps int
	require.NoError(t, w.super.QueryRow(t.Context(), `select count(*) from routine_steps`).Scan(&steps))
	require.Zero(t, steps)
}

// What a tenant has open is bounded: one more is refused, and leaves nothing.
func TestAsManyStepsAsATenantMayHaveOpen(t *testing.T) {
	w := newWorld(t)
	w.change(`insert into routine_steps (tenant_id, id, run_id, state, entered_at, attempt, verb, token_hash, status, input)
		select $1, gen_random_uuid(), $2, 'B', now(), 0, 'wait_for_approval', sha256(n::text::bytea), case when n > $3 then 'succeeded' else 'waiting' end, '{}' from generate_series(1, $3 + 100) n`,
		w.TenantID, w.run.ID, step.MaxOpen-1)
	last := w.task(routine.WaitForApproval, json.RawMessage(`{"prompt":"May I?"}`))
	_, err := step.Begin(t.Context(), w.db.App, last)
	require.NoError(t, err)
	_, err = step.Begin(t.Context(), w.db.App, w.task(routine.WaitForApproval, json.RawMessage(`{"prompt":"May I?"}`)))
	require.Equal(t, fault.RateLimitExceeded, fault.From(err).Type)
	_, err = step.Begin(t.Context(), w.db.App, last)
	require.NoError(t, err, "what was begun is answered")
	var rows int
	require.NoError(t, w.super.QueryRow(t.Context(), `select count(*) from routine_steps`).Scan(&rows))
	require.Equal(t, step.MaxOpen+100, rows)
	w.change(`update routine_steps set status = 'cut' where id in (select id from routine_steps where status = 'waiting' limit 1)`)
	_, err = step.Begin(t.Context(), w.db.App, w.task(routine.WaitForApproval, json.RawMessage(`{"prompt":"May I?"}`)))
	require.NoError(t, err, "one that is over makes room")
}

// A question to a person is told of less often than what the platform works on.
func TestHeartbeatsOfSteps(t *testing.T) {
	w := newWorld(t)
	for verb, beats := range map[routine.Verb]bool{routine.WaitForApproval: false, routine.SendMail: true} {
		id := w.begin(verb, map[routine.Verb]any{routine.WaitForApproval: object{"prompt": "p"}, routine.SendMail: object{"to": "a@b.test", "subject": "s", "text": "t"}}[verb]).StepID
		var heartbeat, soon bool
		require.NoError(t, w.super.QueryRow(t.Context(), `select c.heartbeat, c.next_at < clock_timestamp() + interval '2 minutes' from callbacks c join routine_steps s on s.callback_id = c.id where s.id = $1`, id).
			Scan(&heartbeat, &soon))
		require.Equal(t, []bool{beats, beats}, []bool{heartbeat, soon}, verb)
	}
}
