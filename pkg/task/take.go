package task

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tracker"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// visit is a delivery at a webhook's door.
type visit struct {
	by       *Receiver
	door     webhook.TaskDoor
	delivery integration.Delivery
}

// logged is how many refusals of a webhook the log takes in a minute: strangers must not fill it.
const logged = 60

// refuse puts a refusal into the log, and gives its reason back.
func (v visit) refuse(ctx context.Context, outcome integration.Outcome, reason error) error {
	if v.by.refused.Take(v.door.WebhookID, logged) > 0 {
		return reason
	}
	v.delivery.Outcome, v.delivery.Error = outcome, new(fault.From(reason).Message)
	var b pgx.Batch
	v.log(&b)
	if err := v.by.DB.Once(context.WithoutCancel(ctx), v.door.TenantID, &b); err != nil {
		slog.WarnContext(ctx, "a refusal is not in the log of deliveries", "tenant_id", v.door.TenantID, "webhook_id", v.door.WebhookID, "error", err)
	}
	return reason
}

func (v visit) log(b *pgx.Batch) {
	v.delivery.WebhookID = &v.door.WebhookID
	integration.Log(b, v.delivery)
}

// take commits the event, its keys and its place in the log, in one round trip: among many at once one goes on, and the others fail at its keys. What tells
// nothing of a task is in the log only.
func (v visit) take(ctx context.Context, body []byte, tells bool) (Received, error) {
	v.delivery.Outcome = integration.OK
	o := Order{v.door.TenantID, v.delivery.ID}
	var b pgx.Batch
	if tells {
		v.keys(&b)
		queue(&b, o, v.delivery, v.door.WebhookID, v.door.Secret > 0, body)
	} else {
		o = Order{}
	}
	v.log(&b)
	webhook.Delivered(&b, v.door.WebhookID)
	err := v.by.DB.Once(ctx, v.door.TenantID, &b)
	switch {
	case postgres.IsUnique(err, "delivery_keys_pkey"):
		return v.again(ctx)
	case err != nil:
		return Received{}, v.refuse(ctx, integration.Failed, err)
	}
	if tells {
		v.by.signal("task event taken in")
	}
	return Received{Outcome: integration.OK, Order: o}, nil
}

// keys are what the delivery is known by: the provider's id, which no signature covers, and the body, which says when it was sent.
func (v visit) keys(b *pgx.Batch) {
	const statement = `insert into delivery_keys (tenant_id, source_id, key) values ($1, $2, $3)`
	if id := *v.delivery.ProviderID; id != "" {
		b.Queue(statement, v.door.TenantID, v.door.WebhookID, "d:"+id)
	}
	b.Queue(statement, v.door.TenantID, v.door.WebhookID, "b:"+v.delivery.SHA256)
}

// queue writes an event that is to be processed.
func queue(b *pgx.Batch, o Order, d integration.Delivery, webhookID string, verified bool, body []byte) {
	b.Queue(`insert into task_events (tenant_id, id, webhook_id, provider, verified, body) values ($1, $2, $3, $4, $5, $6)`, o.TenantID, o.EventID, webhookID, d.Provider, verified, string(body))
}

// again is a delivery that was taken in before.
func (v visit) again(ctx context.Context) (Received, error) {
	v.delivery.Outcome, v.delivery.Body = integration.Duplicate, nil
	var b pgx.Batch
	v.log(&b)
	return Received{Outcome: integration.Duplicate}, v.by.DB.Once(ctx, v.door.TenantID, &b)
}

// shake answers a handshake, and keeps its secret if the webhook has none.
func (v visit) shake(ctx context.Context, h tracker.Handshake) (Received, error) {
	v.delivery.Event = new("handshake")
	err := v.by.Secrets.Shake(ctx, v.door.TenantID, v.door.WebhookID, h.Secret)
	switch {
	case fault.IsMissing(err): // deleted meanwhile
		return Received{}, webhook.ErrTaskToken
	case fault.From(err) != nil && fault.From(err).Type == fault.Unauthorized:
		return Received{}, v.refuse(ctx, integration.Unverified, err)
	case err != nil:
		return Received{}, v.refuse(ctx, integration.Failed, err)
	}
	v.delivery.Outcome = integration.OK
	var b pgx.Batch
	v.log(&b)
	return Received{Outcome: integration.OK, Answer: h.Answer}, v.by.DB.Once(ctx, v.door.TenantID, &b)
}

func (r *Receiver) signal(point string) {
	if r.Signal != nil {
		r.Signal(point)
	}
}
