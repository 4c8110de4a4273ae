package integration

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Replayed is what came of a delivery that was taken in again.
type Replayed struct {
	Taken
	TaskEvent string // that is to be processed; "": none
}

// Replay takes a delivery in once more, as it is in the log: verified then, and not verified again. What it was known by does not count, so that what it says
// is said a second time where the first time came through. Only what was kept whole can be: not what nobody verified, what is too large, and no mail.
func Replay(ctx context.Context, db *postgres.DB, id string) (Replayed, error) {
	if !ident.Valid(id) {
		return Replayed{}, fault.Missing("delivery")
	}
	tenants, err := postgres.All(ctx, db.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_delivery($1)`, id)
	if err != nil {
		return Replayed{}, err
	}
	if len(tenants) == 0 {
		return Replayed{}, fault.Missing("delivery")
	}
	first, err := GetDelivery(ctx, db.In(tenants[0]), id)
	if err != nil {
		return Replayed{}, err
	}
	body, err := first.kept(ctx, db)
	if err != nil {
		return Replayed{}, err
	}
	again := Arrived(tenants[0], first.Provider, []byte(body))
	again.IntegrationID, again.WebhookID, again.Event, again.ProviderID, again.Body, again.ReplayOf = first.IntegrationID, first.WebhookID, first.Event, first.ProviderID, first.Body, &first.ID
	if first.WebhookID != nil {
		return replayTask(ctx, db, first, again, body)
	}
	return replayMessage(ctx, db, again)
}

// replayMessage takes in what a person has said.
func replayMessage(ctx context.Context, db *postgres.DB, d Delivery) (Replayed, error) {
	ch, ok := channel.Of(string(d.Provider))
	if !ok {
		return Replayed{}, fault.Invalid("a delivery of %s cannot be taken in again", d.Provider)
	}
	i, err := Get(ctx, db.In(d.TenantID), *d.IntegrationID)
	if err != nil {
		return Replayed{}, err
	}
	config, err := channel.ParseConfig(json.RawMessage(i.Config))
	if err != nil {
		return Replayed{}, err
	}
	e, err := ch.Read(d.inbound(), config)
	if err != nil {
		return Replayed{}, err
	}
	t := Taking{Integration: i, Delivery: d, Again: true}
	if e.Said == nil {
		taken, err := t.log(ctx, db, OK, nil)
		return Replayed{Taken: taken}, err
	}
	t.Said = *e.Said
	taken, err := Take(ctx, db, t)
	return Replayed{Taken: taken}, err
}

// inbound is a delivery of the log as it came, with the headers that say what it is.
func (d Delivery) inbound() channel.Inbound {
	headers := map[string]string{}
	if d.Event != nil {
		headers["x-github-event"], _, _ = strings.Cut(*d.Event, ".")
	}
	if d.ProviderID != nil {
		headers["x-github-delivery"], headers["x-delivery-id"] = *d.ProviderID, *d.ProviderID
	}
	return channel.Inbound{Header: func(name string) string { return headers[strings.ToLower(name)] }, Body: []byte(*d.Body), Now: time.Now()}
}

// kept is the delivery's body: that of the log, or that of a task tracker's event that failed.
func (d Delivery) kept(ctx context.Context, db *postgres.DB) (string, error) {
	if d.Body != nil {
		return *d.Body, nil
	}
	found, err := postgres.All(ctx, db.In(d.TenantID), pgx.RowTo[string], `select body from task_events where id = $1 and status = 'failed' and body is not null`, d.ID)
	if err == nil && len(found) == 0 {
		err = fault.Invalid("the body of the delivery was not kept")
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// replayTask queues a task tracker's event again.
func replayTask(ctx context.Context, db *postgres.DB, first, again Delivery, body string) (Replayed, error) {
	again.Outcome = OK
	var b pgx.Batch
	// Whether it was verified is in the first event. Where none was made, as of a webhook that was disabled, the log has the bodies of verified ones only.
	b.Queue(`insert into task_events (tenant_id, id, webhook_id, provider, verified, body)
		values ($1, $2, $3, $4, coalesce((select e.verified from task_events e where e.id = $5), true), $6)`,
		again.TenantID, again.ID, *again.WebhookID, again.Provider, first.ID, body)
	Log(&b, again)
	if err := db.Once(ctx, again.TenantID, &b); err != nil {
		return Replayed{}, err
	}
	return Replayed{Taken: Taken{Delivery: again}, TaskEvent: again.ID}, nil
}
