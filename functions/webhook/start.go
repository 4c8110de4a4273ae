package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// launchTime is how long a call of a routine's webhook waits for the workflow engine: the run is accepted, whenever that begins with it.
const launchTime = 4 * time.Second

// starter starts what calls ask for.
type starter struct {
	db       *postgres.DB
	dispatch func(ctx context.Context, payload any) error
	launch   invoke.Function // tool.StartRun
	signal   func(point string)
}

// start makes the run, has it dispatched or launched, and answers: 202 for a run that this call started, 200 for an earlier one with the same key.
func (s starter) start(ctx context.Context, tenantID string, i webhook.Invocation) (handler.Reply, error) {
	invoked, err := webhook.Invoke(ctx, s.db, tenantID, i)
	if err != nil {
		return handler.Reply{}, err
	}
	if invoked.Deduplicated {
		return handler.Reply{Body: invoked}, nil
	}
	s.signal("run requested")
	if invoked.Target == webhook.Routine {
		within, cancel := context.WithTimeout(ctx, launchTime)
		started, err := invoke.Ask[tool.RunStarted](within, s.launch, tool.RunOrder{TenantID: tenantID, RunID: invoked.RunID})
		cancel()
		if err != nil {
			slog.WarnContext(ctx, "a routine's run was not launched; the sweep does it", "tenant_id", tenantID, "routine_run_id", invoked.RunID, "error", err)
		}
		invoked.ExecutionARN = started.ExecutionARN
		return handler.Reply{Status: http.StatusAccepted, Body: invoked}, nil
	}
	if err := s.dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: invoked.RunID}); err != nil {
		slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", tenantID, "turn_id", invoked.RunID, "error", err)
	}
	return handler.Reply{Status: http.StatusAccepted, Body: invoked}, nil
}

// payload reads a call's body: JSON, or instead of nothing the sample. Its size (413) comes before its type (415).
func payload(r *handler.Request, sample string) (webhook.Payload, error) {
	body, err := r.Body()
	switch {
	case err != nil:
	case len(body) == 0:
		body = []byte(sample)
	default:
		body, err = r.JSON()
	}
	if err != nil {
		return nil, err
	}
	return webhook.ReadPayload(body)
}
