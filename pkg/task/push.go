package task

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/push"
)

const pushTime = 5 * time.Second

type device struct{ ID, Endpoint string }

// tell sends a push to the devices of the recipient, unless that is who has done it. Each is claimed before, and then sent or lost: never twice.
func (p *Processor) tell(ctx context.Context, c claimed, t told) error {
	assignee := t.recipient()
	if !t.event.Kind.Pushes() || assignee == "" || assignee == t.event.Actor.ID {
		return nil
	}
	devices, err := p.claimPushes(ctx, c, t, assignee)
	if err != nil || len(devices) == 0 {
		return err
	}
	p.signal("push claimed")
	task := t.event.Envelope.Over(t.task)
	for _, d := range devices {
		within, cancel := context.WithTimeout(ctx, pushTime)
		err := p.Push.Send(within, d.Endpoint, push.Notification{Title: task.Name(), Body: t.event.Line(t.task), DedupeID: t.id,
			Data: map[string]string{"kind": string(t.event.Kind), "threadId": t.threadID, "eventId": t.id}})
		cancel()
		switch {
		case errors.Is(err, push.ErrGone):
			err = p.forget(ctx, c, d)
		case err == nil:
			p.signal("push sent")
		}
		if err != nil {
			warn(ctx, "a push is lost", c.Order, err)
		}
	}
	return nil
}

// claimPushes are the devices that were not told of the event yet, by anybody.
func (p *Processor) claimPushes(ctx context.Context, c claimed, t told, assignee string) (devices []device, err error) {
	err = p.DB.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error {
		devices, err = postgres.All(ctx, tx, pgx.RowToStructByPos[device], `with told as (
				insert into pushes (tenant_id, event_id, device_id)
				select d.tenant_id, $1::uuid, d.id from devices d join users u on u.tenant_id = d.tenant_id and u.id = d.user_id and u.status = 'active'
				where exists (select from connections c where c.user_id = d.user_id and c.provider = $2 and c.provider_user_id = $3)
				on conflict do nothing returning device_id)
			select d.id::text, d.endpoint from devices d join told on told.device_id = d.id order by d.id`, t.id, c.provider, assignee)
		return err
	})
	return devices, err
}

// forget takes a device away that nothing reaches any more, unless it was registered anew.
func (p *Processor) forget(ctx context.Context, c claimed, d device) error {
	var b pgx.Batch
	b.Queue(`delete from devices where id = $1 and endpoint = $2`, d.ID, d.Endpoint)
	return p.DB.Once(ctx, c.TenantID, &b)
}
