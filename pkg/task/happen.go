package task

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// process does all that is to be done. Doing it again does nothing twice. An event that fails stands in no other's way; again says that it may not fail next time.
func (p *Processor) process(ctx context.Context, c claimed) (again bool, err error) {
	provider, is := tracker.Of(c.provider)
	if !is {
		return false, fault.Invalid("the provider is not known")
	}
	events, err := provider.Normalize(c.body)
	if err != nil {
		return internal(err), err
	}
	q := inquiry{p: p, c: c, provider: provider, each: cmp.Or(p.Patience, oneTime), until: time.Now().Add(askTime), known: map[string]tracker.Envelope{}}
	for _, e := range events {
		if ctx.Err() != nil {
			return true, errors.Join(err, ctx.Err())
		}
		if latest := c.createdAt.Add(maxAhead); e.At.After(latest) { // a clock that is ahead, or a stranger's, must not keep later ones out
			e.At = latest
		}
		if failed := p.happened(ctx, &q, e); failed != nil {
			err, again = errors.Join(err, failed), again || internal(failed)
		}
	}
	return again, err
}

// happened puts an event into its thread and tells people.
func (p *Processor) happened(ctx context.Context, q *inquiry, e tracker.Event) error {
	task := e.Envelope
	there, err := p.there(ctx, q.c, e)
	if err != nil {
		return err
	}
	if !there {
		task = q.live(ctx, &e)
	}
	t, err := p.put(ctx, q.c, e, task)
	if err != nil {
		return err
	}
	return p.tell(ctx, q.c, t)
}

const eventKey = "e:" // before an event's id, among the keys of what was taken in

// source is what an event's id is of: its webhook, or, where other webhooks tell of it too, the tenant's account at the provider. What is verified is apart
// from what is not, which nobody else's event must give way to.
func (c claimed) source(e tracker.Event) string {
	switch {
	case !e.Shared:
		return c.webhookID
	case c.verified:
		return ident.Derive(c.TenantID, c.provider, "verified")
	}
	return ident.Derive(c.TenantID, c.provider, "unverified")
}

// there reports whether an event is in its thread already, so that nobody has to be asked for its task.
func (p *Processor) there(ctx context.Context, c claimed, e tracker.Event) (there bool, err error) {
	err = p.DB.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select exists (select from delivery_keys where source_id = $1 and key = $2)`, c.source(e), eventKey+e.ID).Scan(&there)
	})
	return there, err
}

// internal reports whether an error is of the platform's, and may not come again.
func internal(err error) bool { return fault.From(err).Type == fault.InternalError }

// maxAhead is how far ahead of the platform's clock a provider's may be.
const maxAhead = time.Minute
