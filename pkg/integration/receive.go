package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// Receiver takes in what providers deliver. It is safe for concurrent use.
type Receiver struct {
	db      *postgres.DB
	secrets *Secrets
	window  webhook.Window // of this instance: what was said to the agents
	noise   webhook.Window // likewise: rows of what was not taken, which strangers could fill the log with

	mutex sync.Mutex
	known map[string]Integration // as they were read last
}

// NewReceiver takes in over these.
func NewReceiver(db *postgres.DB, secrets *Secrets) *Receiver {
	return &Receiver{db: db, secrets: secrets, known: map[string]Integration{}}
}

// noiseLimit is how many rows a minute an integration has in the log of what was not verified, or beyond its limit.
const noiseLimit = 60

// ErrSignature refuses a delivery: it is not signed as the integration's are, or there is no such integration.
var ErrSignature = fault.New(fault.Unauthorized, "no integration has this id and signature")

// Received is what became of a delivery.
type Received struct {
	Taken                      // its Delivery has no ID if it is not in the log: there was nothing to do, or it has enough of the kind
	Answer     json.RawMessage // a handshake's; nil: none
	RetryAfter time.Duration   // of one beyond the limit
}

// door is what is known of an integration before a delivery belongs to a tenant.
type door struct {
	tenantID string
	provider Provider
	enabled  bool
	limit    int
	version  int       // of the secret
	changed  time.Time // when the integration was changed last
	channel  channel.Channel
}

// Receive takes in one delivery, in this order: the integration, the body's size, the signature, what it says, disabled, the rate limit. What says nothing to the
// agent is none of the tenant's business: it is not in the log, and does not count towards the limit. An error is what the provider is told; a fault has its row in the log already.
// broken is why the body could not be read, nil if it could.
func (r *Receiver) Receive(ctx context.Context, id string, in channel.Inbound, broken error) (Received, error) {
	id = strings.ToLower(id) // one spelling: deliveries are counted by it
	enter, err := r.enter(ctx, id, in)
	if errors.Is(err, ErrSignature) && broken != nil { // as it is told of one that there is: nobody learns which there are
		err = broken
	}
	if err != nil {
		return Received{}, err
	}
	d := Arrived(enter.tenantID, enter.provider, in.Body)
	d.IntegrationID = &id
	if broken != nil {
		return Received{}, r.refuse(ctx, d, Invalid, broken)
	}
	secret, err := r.secrets.Get(ctx, enter.tenantID, id, enter.version)
	if err != nil && !errors.Is(err, ErrGone) {
		return Received{}, r.refuse(ctx, d, Failed, err)
	}
	if err != nil || enter.channel.Verify(in, secret.Signing) != nil {
		return Received{}, r.refuse(ctx, d, Unverified, ErrSignature)
	}
	return r.read(ctx, enter, d, in)
}

// enter finds the integration. For one that there is not as much is worked out as for one whose signature is wrong.
func (r *Receiver) enter(ctx context.Context, id string, in channel.Inbound) (door, error) {
	var d door
	if ident.Valid(id) {
		rows, err := r.db.Lookup().Query(ctx, `select tenant_id, provider, enabled, rate_limit, secret_version, changed from lookup_integration($1)`, id)
		if err != nil {
			return d, err
		}
		if _, err := pgx.ForEachRow(rows, []any{&d.tenantID, &d.provider, &d.enabled, &d.limit, &d.version, &d.changed}, func() error { return nil }); err != nil {
			return d, err
		}
	}
	var ok bool
	if d.channel, ok = channel.Of(string(d.provider)); ok {
		return d, nil
	}
	nobody, _ := channel.Of(string(Generic))
	_ = nobody.Verify(in, rand.Text())
	metric.Emit(ctx, metric.Event{Line: "a delivery to no integration", Level: slog.LevelWarn, About: []slog.Attr{slog.Int("size", len(in.Body))},
		Sets: []metric.Set{{Figures: []metric.Figure{{Name: "integrations.unknown", Unit: metric.Count, Value: 1}}}}})
	return d, ErrSignature
}

// integration is the one that was found, read once for each change of it.
func (r *Receiver) integration(ctx context.Context, d door, id string) (Integration, error) {
	r.mutex.Lock()
	i, known := r.known[id]
	r.mutex.Unlock()
	if known && i.UpdatedAt.Equal(d.changed) {
		return i, nil
	}
	i, err := Get(ctx, r.db.In(d.tenantID), id)
	if err != nil {
		return i, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.known) >= remembered {
		clear(r.known)
	}
	r.known[id] = i
	return i, nil
}

// read does what a verified delivery says.
func (r *Receiver) read(ctx context.Context, enter door, d Delivery, in channel.Inbound) (Received, error) {
	i, err := r.integration(ctx, enter, *d.IntegrationID)
	if fault.IsMissing(err) { // deleted meanwhile
		return Received{}, ErrSignature
	}
	var config channel.Config
	if err == nil {
		config, err = channel.ParseConfig(json.RawMessage(i.Config))
	}
	if err != nil {
		return Received{}, r.broke(ctx, d, err)
	}
	e, why := enter.channel.Read(in, config)
	d.Event, d.ProviderID = &e.Kind, &e.ID
	if e.Held != "" {
		return r.held(ctx, d, e.Held)
	}
	if why == nil && e.Answer == nil {
		switch ours, err := r.ours(ctx, d, e.Said); {
		case err != nil:
			return Received{}, r.broke(ctx, d, err)
		case !ours:
			ignored(ctx, d)
			return Received{Taken: Taken{Delivery: Delivery{TenantID: d.TenantID, Outcome: OK}}}, nil
		}
	}
	if e.Said != nil || enter.provider == Generic { // else it may be anybody's talk
		d.Keep(channel.Redact(string(enter.provider), in.Body))
	}
	if !enter.enabled { // no error: a provider that gets those for hours switches deliveries off, and nobody would switch them on again
		d.Outcome = Failed
		err := r.refuse(ctx, d, Failed, errDisabled)
		if errors.Is(err, errDisabled) {
			err = nil
		}
		return Received{Taken: Taken{Delivery: d}}, err
	}
	if wait := r.window.Take(*d.IntegrationID, enter.limit); wait > 0 {
		return Received{RetryAfter: wait}, r.refuse(ctx, d, RateLimited, fault.New(fault.RateLimitExceeded, "the integration's limit of %d deliveries a minute is reached", enter.limit))
	}
	switch {
	case why != nil:
		return Received{}, r.log(ctx, d, Invalid, fault.From(why))
	case e.Answer != nil:
		taken, err := Taking{Delivery: d}.log(ctx, r.db, OK, nil)
		return Received{Taken: taken, Answer: e.Answer.Body}, err
	}
	taken, err := Take(ctx, r.db, Taking{Integration: i, Said: *e.Said, Delivery: d})
	if err != nil {
		return Received{}, r.broke(ctx, d, err)
	}
	return Received{Taken: taken}, nil
}

// ours reports whether something was said to the agent: not by what says nothing, nor by what goes on in a conversation that others have with one another.
func (r *Receiver) ours(ctx context.Context, d Delivery, said *channel.Said) (bool, error) {
	if said == nil || said.Opens {
		return said != nil, nil
	}
	found, err := postgres.All(ctx, r.db.In(d.TenantID), pgx.RowTo[bool], `select true from integration_threads where integration_id = $1 and key = $2`, *d.IntegrationID, plain(said.Key))
	return len(found) > 0, err
}
