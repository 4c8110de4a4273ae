package routine

import (
	"context"
	"errors"
	"log/slog"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/routine"
)

// prepare gives the engine a version that is written. What the engine refuses is the caller's to hear; with any other error the version stands, and
// whoever starts it prepares it.
func prepare(ctx context.Context, e *routine.Engine, tenantID string, r routine.Routine) error {
	err := e.Prepare(ctx, tenantID, r.ID, r.CurrentVersion)
	if refused := (*routine.Refusal)(nil); errors.As(err, &refused) {
		return fault.Invalid("%s", refused.Reason)
	}
	if err != nil {
		slog.WarnContext(ctx, "a routine's state machine was not made", "routine_id", r.ID, "version", r.CurrentVersion, "error", err)
	}
	return nil
}
