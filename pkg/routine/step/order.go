package step

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// StartForTurn writes the run that a call of the tool start_routine asks for: once a call. In a turn that is itself a step of a run, the run is one deeper
// than that, so that agents and routines cannot start one another for ever.
func StartForTurn(ctx context.Context, tx pgx.Tx, o tool.RunOrder) (routine.Run, error) {
	if !ident.Valid(o.TurnID) || o.CallID == "" {
		return routine.Run{}, fault.Invalid("only a turn starts a routine: use the verb start_routine")
	}
	parent, err := ParentOfTurn(ctx, tx, o.TurnID)
	if err != nil {
		return routine.Run{}, err
	}
	n := routine.NewRun{Name: o.Routine, Input: o.Input, StartedBy: routine.StartedBy{Type: routine.ByAgent, ID: o.TurnID}, ParentRunID: parent,
		RunID: ident.Derive(o.TurnID, "start_routine", o.CallID, o.Routine, compact(o.Input))} // a model may give two calls one id
	if ident.Valid(o.Routine) {
		n.RoutineID, n.Name = o.Routine, ""
	}
	return routine.Start(ctx, tx, o.TenantID, n)
}

func compact(input json.RawMessage) string {
	if len(input) == 0 {
		return `{}`
	}
	return text.CompactJSON(string(input))
}
