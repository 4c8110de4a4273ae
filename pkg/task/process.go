package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
)

const (
	sweepSize  = 200 // events that are looked for at once
	atOnce     = 8
	sweepGrace = 12 * time.Second // of the caller's time that a sweep leaves
	lease      = 2 * time.Minute  // of whoever processes an event; it outlives the function
	maxTries   = 5
	pause      = time.Minute // before an event that failed is tried again, more each time
)

// Processor processes events. It is safe for concurrent use.
type Processor struct {
	DB          *postgres.DB
	Connections *connection.Connections
	Publish     publish.Publisher
	Push        *push.Pusher
	Patience    time.Duration      // with a provider that is asked for one task. Default 10 s
	Signal      func(point string) // tests: called at every point where a crash is tried; nil: none

	resting resting
}

// Process puts an event into its threads, if nobody else does, or, without one, all that are due. An error means that some are to be tried later: the sweep does.
func (p *Processor) Process(ctx context.Context, o Order) error {
	if o.EventID == "" {
		return p.sweep(ctx)
	}
	return p.one(ctx, o)
}

// sweep goes on until nothing is left to look at, or there is no more time.
func (p *Processor) sweep(ctx context.Context) (err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-sweepGrace))
		defer cancel()
	}
	err = p.tellLateness(ctx) // before the work: whatever becomes of that, it is told
	var first Order
	for {
		found, lookErr := postgres.All(ctx, p.DB.Lookup(), pgx.RowToStructByPos[Order], `select tenant_id::text, event_id::text from lookup_task_events($1)`, sweepSize)
		if lookErr != nil {
			return errors.Join(err, lookErr)
		}
		if len(found) > 0 && found[0] == first { // it could not be put off: nor can others
			return err
		}
		err = errors.Join(err, p.all(ctx, found))
		if len(found) < sweepSize || ctx.Err() != nil { // each that was looked at is put off, so this ends
			return err
		}
		first = found[0]
	}
}

func (p *Processor) all(ctx context.Context, orders []Order) error {
	errs := make([]error, len(orders))
	var working sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, o := range orders {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			if ctx.Err() == nil {
				errs[i] = p.one(ctx, o)
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// claimed is an event's row.
type claimed struct {
	Order
	lease     string
	webhookID string
	agentID   string // "": the webhook names none, or is gone
	provider  string
	verified  bool
	body      []byte
	tries     int
	createdAt time.Time
}

// one processes an event under its lease.
func (p *Processor) one(ctx context.Context, o Order) error {
	c, found, err := p.claim(ctx, o)
	if err != nil || !found {
		return err
	}
	p.signal("task event claimed")
	again, err := p.process(ctx, c)
	if err == nil {
		return p.finish(ctx, c, "")
	}
	if !again || c.tries >= maxTries {
		warn(ctx, "a task tracker's event was given up", o, err)
		return p.finish(context.WithoutCancel(ctx), c, fault.From(err).Message)
	}
	var b pgx.Batch
	b.Queue(`update task_events set lease_id = null, next_at = clock_timestamp() + $3::interval where id = $1 and lease_id = $2`, c.EventID, c.lease, time.Duration(c.tries)*pause)
	return errors.Join(err, p.DB.Once(context.WithoutCancel(ctx), c.TenantID, &b))
}

// claim takes the event, unless somebody has it or it is over. One that was taken too often, by those who died of it, is given up.
func (p *Processor) claim(ctx context.Context, o Order) (c claimed, found bool, err error) {
	c = claimed{Order: o, lease: ident.New()}
	err = p.DB.InTenant(ctx, o.TenantID, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `update task_events e set lease_id = $2, attempts = attempts + 1, next_at = clock_timestamp() + $3::interval
			where id = $1 and status = 'queued' and (lease_id is null or next_at < clock_timestamp())
			returning webhook_id, provider, verified, body, attempts, created_at, coalesce((select w.agent_id::text from webhooks w where w.tenant_id = e.tenant_id and w.id = e.webhook_id), '')`,
			o.EventID, c.lease, lease).Scan(&c.webhookID, &c.provider, &c.verified, &c.body, &c.tries, &c.createdAt, &c.agentID)
		if found = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err == nil && found && c.tries > maxTries {
		return c, false, p.finish(ctx, c, "it was tried too often")
	}
	return c, found, err
}

// finish ends the event: done, and its body goes with it; or given up for a reason, which is in the log then. What is larger than the log takes is not
// kept either: the tracker has it.
func (p *Processor) finish(ctx context.Context, c claimed, reason string) error {
	var b pgx.Batch
	b.Queue(`update task_events set status = case when $3 = '' then 'done' else 'failed' end::task_event_status, error = nullif($3, ''), body = case when $3 <> '' and octet_length(body) <= $4 then body end,
		lease_id = null, next_at = null, finished_at = clock_timestamp() where id = $1 and lease_id = $2`, c.EventID, c.lease, reason, integration.MaxBody)
	if reason != "" {
		b.Queue(`update deliveries d set outcome = $2, error = $3 where id = $1 and exists (select from task_events e where e.id = d.id and e.status = 'failed')`,
			c.EventID, integration.Failed, reason)
	}
	err := p.DB.Once(ctx, c.TenantID, &b)
	if err == nil {
		p.signal("task event over")
	}
	return err
}

func (p *Processor) signal(point string) {
	if p.Signal != nil {
		p.Signal(point)
	}
}
