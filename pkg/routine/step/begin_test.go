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
