package turn

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// person is what follows when somebody decides about a turn.
type person struct {
	db       *postgres.DB
	to       publish.Publisher
	dispatch func(ctx context.Context, payload any) error
	answer   func(ctx context.Context, payload any) error // whoever waits for a turn that ends here; nil: none of these decisions ends one
	signal   func(point string)
}

// decision is a mutation by which somebody decides about a turn.
func decision[A any](p person, decide func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, a A) (turn.Decided, error)) func(ctx context.Context, a A) (turn.Turn, error) {
	return func(ctx context.Context, a A) (turn.Turn, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return turn.Turn{}, err
		}
		return p.decides(ctx, caller.TenantID, func(tx pgx.Tx) (turn.Decided, error) { return decide(ctx, tx, caller, a) })
	}
}

// decides commits the decision, tells the subscribers and dispatches what is due.
func (p person) decides(ctx context.Context, tenantID string, decide func(tx pgx.Tx) (turn.Decided, error)) (turn.Turn, error) {
	var d turn.Decided
	err := p.db.InTenant(ctx, tenantID, func(tx pgx.Tx) (err error) {
		d, err = decide(tx)
		return err
	})
	if err != nil {
		return turn.Turn{}, err
	}
	p.signal("person decided")
	if d.Callback != "" && p.answer != nil {
		if err := p.answer(ctx, callback.Task{TenantID: tenantID, CallbackID: d.Callback}); err != nil {
			slog.WarnContext(ctx, "the workflow that waits for the turn is told later", "tenant_id", tenantID, "turn_id", d.Turn.ID, "error", err)
		}
	}
	if d.Due == "" {
		notify.Deliver(ctx, p.db, p.to, tenantID, d.Notices...)
		return d.Turn, nil
	}
	published := notify.Publish(ctx, p.to, tenantID, d.Notices...) // whoever claims the turn deletes them along the way
	if err := p.dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: d.Due, Published: published}); err != nil {
		slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", tenantID, "turn_id", d.Due, "error", err)
	}
	return d.Turn, nil
}
