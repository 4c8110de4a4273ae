package webhook

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// start makes the run, dispatches it and answers: 202 for a run that this call started, 200 for an earlier one with the same key.
func start(ctx context.Context, db *postgres.DB, dispatch func(context.Context, any) error, signal func(string), tenantID string, i webhook.Invocation) (handler.Reply, error) {
	invoked, err := webhook.Invoke(ctx, db, tenantID, i)
	if err != nil {
		return handler.Reply{}, err
	}
	if invoked.Deduplicated {
		return handler.Reply{Body: invoked}, nil
	}
	signal("run requested")
	if err := dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: invoked.RunID}); err != nil {
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
