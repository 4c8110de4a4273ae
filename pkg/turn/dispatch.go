package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// Dispatcher starts a queued turn in the runtime that its agent selects, or else its template.
type Dispatcher struct {
	Runner   *Runner            // of this process: runs what no runtime is configured for
	Runtimes agentcore.Runtimes // by selector
}

// Dispatch returns when a runtime holds the turn, or at the turn's end when this process ran it. The default selector needs no runtime: its
// turns run here. A selector that means nothing in this deployment fails the turn, with a reason in its record.
//
// After an error the turn is as it was, and the reaper dispatches it again.
func (d *Dispatcher) Dispatch(ctx context.Context, p Dispatch) error {
	if len(d.Runtimes) == 0 { // nothing to choose from, nothing to ask
		return d.Runner.Run(ctx, p)
	}
	at, err := selected(ctx, d.Runner.DB, p)
	if err != nil || at.session == "" {
		return err
	}
	runtime, ok := d.Runtimes[at.selector]
	if !ok {
		return d.Runner.Run(ctx, p)
	}
	p.RequestID = trace.From(ctx).RequestID
	payload, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := runtime.Start(ctx, at.session, payload); err != nil {
		slog.ErrorContext(ctx, "the runtime did not take the turn; the reaper dispatches it again", "tenant_id", p.TenantID, "turn_id", p.TurnID,
			"runtime", at.selector, "error", err)
		return fmt.Errorf("runtime %s: %w", at.selector, err)
	}
	return nil
}

// selection is what a turn's agent selects, or else its template.
type selection struct {
	selector string
	session  string // the thread's UUID; empty: the turn has ended, or there is none
}

func selected(ctx context.Context, db *postgres.DB, p Dispatch) (s selection, err error) {
	rows, err := db.In(p.TenantID).Query(ctx, `select coalesce(a.runtime, tp.runtime), t.thread_uuid from thread_turns t
		join agents a on a.tenant_id = t.tenant_id and a.id = t.agent_id
		join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
		where t.id = $1 and t.status in ('queued', 'running') and t.thread_uuid is not null`, p.TurnID)
	if err != nil {
		return s, err
	}
	_, err = pgx.ForEachRow(rows, []any{&s.selector, &s.session}, func() error { return nil })
	return s, err
}
