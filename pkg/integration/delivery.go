package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Outcome is what became of a delivery.
type Outcome string

// The outcomes.
const (
	OK          Outcome = "ok"           // taken in, or there was nothing to do
	Unverified  Outcome = "unverified"   // nobody who has the secret has sent it, or it is too old
	Duplicate   Outcome = "duplicate"    // it was taken in before
	Unknown     Outcome = "unknown"      // who sent it, or what it is for, is not known here
	Invalid     Outcome = "invalid"      // it cannot be understood
	RateLimited Outcome = "rate_limited" // too many of them
	Failed      Outcome = "error"        // it was not taken in for a reason of the platform's, or of the agent's
)

// MaxBody is how much of a delivery may be kept, in bytes: a larger body is not kept at all.
const MaxBody = 8 << 10

// Delivery is one thing that came in, as the log has it.
type Delivery struct {
	ID            string     `json:"id"`
	IntegrationID *string    `json:"integrationId"` // that it came to; nil: to a webhook
	WebhookID     *string    `json:"webhookId"`     // of a task tracker; nil: to an integration
	Provider      Provider   `json:"provider"`
	Outcome       Outcome    `json:"outcome"`
	Event         *string    `json:"event"`      // what it is about, in the provider's word
	ProviderID    *string    `json:"providerId"` // the provider's id of it
	Error         *string    `json:"error"`      // why it was not taken, for people
	Size          int        `json:"size"`       // of the body, in bytes
	SHA256        string     `json:"sha256"`     // of the body, in hexadecimal digits
	Duration      float64    `json:"durationMs"` // from its arrival until it was in the log
	ThreadID      *string    `json:"threadId"`   // that it went to: of a delivery that is read; a thread that is gone has none
	Body          *string    `json:"body"`
	ReplayOf      *string    `json:"replayOf"` // the delivery that an operator had taken in again
	ReceivedAt    ident.Time `json:"receivedAt"`

	TenantID   string  `json:"-"`
	ThreadUUID *string `json:"-"` // that it went to

	hash    [sha256.Size]byte
	arrived time.Time
}

// Arrived is a delivery to be logged: whoever takes it in says the rest.
func Arrived(tenantID string, p Provider, body []byte) Delivery {
	hash := sha256.Sum256(body)
	return Delivery{ID: ident.New(), TenantID: tenantID, Provider: p, Size: len(body), SHA256: hex.EncodeToString(hash[:]), ReceivedAt: ident.Now(), hash: hash, arrived: time.Now()}
}

// Keep has the body in the log, as far as it may be: redacted by the caller, of a verified delivery, not too large, and text.
func (d *Delivery) Keep(redacted []byte) {
	d.Body = nil
	if len(redacted) <= MaxBody && utf8.Valid(redacted) && !strings.ContainsRune(string(redacted), 0) {
		d.Body = new(string(redacted))
	}
}

// Log queues a delivery's row. Its duration is what has passed since it arrived.
func Log(b *pgx.Batch, d Delivery) {
	b.Queue(`insert into deliveries (tenant_id, id, provider, integration_id, webhook_id, outcome, event, provider_id, error, size, sha256, body, duration_us, thread_uuid, replay_of,
			received_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		d.TenantID, d.ID, d.Provider, d.IntegrationID, d.WebhookID, d.Outcome, short(d.Event), short(d.ProviderID), short(d.Error), d.Size, d.hash[:], d.Body,
		min(time.Since(d.arrived), time.Hour).Microseconds(), d.ThreadUUID, d.ReplayOf, d.ReceivedAt)
}

const maxWord = 500 // bytes

// short is what the log takes of a stranger's text.
func short(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	cut := *s
	if len(cut) > maxWord {
		cut = cut[:maxWord]
	}
	return new(strings.ReplaceAll(strings.ToValidUTF8(cut, ""), "\x00", ""))
}

const deliveryColumns = `d.tenant_id, d.id, d.provider, d.integration_id, d.webhook_id, d.outcome, d.event, d.provider_id, d.error, d.size, d.sha256, d.body,
	d.duration_us::double precision / 1000, d.thread_uuid, t.prefix || '-' || t.number, d.replay_of, d.received_at`

func scanDelivery(row pgx.CollectableRow) (Delivery, error) {
	var d Delivery
	var hash []byte
	err := row.Scan(&d.TenantID, &d.ID, &d.Provider, &d.IntegrationID, &d.WebhookID, &d.Outcome, &d.Event, &d.ProviderID, &d.Error, &d.Size, &hash, &d.Body,
		&d.Duration, &d.ThreadUUID, &d.ThreadID, &d.ReplayOf, &d.ReceivedAt)
	copy(d.hash[:], hash)
	d.SHA256 = hex.EncodeToString(hash)
	return d, err
}

// DeliveryCursor is the sort key of the log; ids follow time.
type DeliveryCursor struct{ ID string }

// Cursor is d's place in the log.
func (d Delivery) Cursor() DeliveryCursor { return DeliveryCursor{d.ID} }

// DeliveryFilter narrows the log.
type DeliveryFilter struct {
	IntegrationID *string  `json:"integrationId"`
	WebhookID     *string  `json:"webhookId"`
	Outcome       *Outcome `json:"outcome"`
}

// Deliveries is up to limit deliveries of the log, newest first, after the cursor.
func Deliveries(ctx context.Context, q postgres.Querier, f DeliveryFilter, after *DeliveryCursor, limit int) ([]Delivery, error) {
	where, args := ``, []any{limit}
	for _, part := range []struct {
		column string
		value  *string
	}{{"integration_id", f.IntegrationID}, {"webhook_id", f.WebhookID}} {
		if part.value == nil {
			continue
		}
		if !ident.Valid(*part.value) {
			return []Delivery{}, nil
		}
		args = append(args, *part.value)
		where += ` and d.` + part.column + ` = ` + "$" + strconv.Itoa(len(args))
	}
	if f.Outcome != nil {
		args = append(args, *f.Outcome)
		where += ` and d.outcome = ` + "$" + strconv.Itoa(len(args))
		if *f.Outcome != OK {
			where += ` and d.outcome <> 'ok'` // as the index of those has it
		}
	}
	if after != nil {
		args = append(args, after.ID)
		where += ` and d.id < ` + "$" + strconv.Itoa(len(args))
	}
	return postgres.All(ctx, q, scanDelivery, `select `+deliveryColumns+` from deliveries d left join threads t on t.tenant_id = d.tenant_id and t.uuid = d.thread_uuid
		where true`+where+` order by d.id desc limit $1`, args...)
}

// GetDelivery is one delivery of the log.
func GetDelivery(ctx context.Context, q postgres.Querier, id string) (Delivery, error) {
	if !ident.Valid(id) {
		return Delivery{}, fault.Missing("delivery")
	}
	return postgres.One(ctx, q, "delivery", scanDelivery, `select `+deliveryColumns+` from deliveries d left join threads t on t.tenant_id = d.tenant_id and t.uuid = d.thread_uuid
		where d.id = $1`, id)
}
