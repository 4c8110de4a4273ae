package task

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tracker"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// Receiver takes deliveries of task trackers in. It is safe for concurrent use.
type Receiver struct {
	DB      *postgres.DB
	Secrets *webhook.Secrets
	Signal  func(point string) // tests: called at every point where a crash is tried; nil: none

	window     webhook.Window // of deliveries that are verified
	unverified webhook.Window // of all else: whoever has the address only must not keep the tracker out
	refused    webhook.Window // of refusals that are in the log
}

// Call is a delivery as it came.
type Call struct {
	Provider string
	Token    string
	Header   func(name string) string
	Body     func() ([]byte, error) // read when it is needed
}

// Received is a delivery that was taken in, or was before.
type Received struct {
	Outcome integration.Outcome
	Answer  http.Header   // that the tracker waits for
	Order   Order         // to invoke Function with; zero: there is nothing to do
	Wait    time.Duration // with RateLimitExceeded: until another one is taken
}

var (
	errDisabled   = fault.New(fault.Forbidden, "the webhook is disabled")
	errUnverified = fault.New(fault.Unauthorized, "%s", tracker.ErrUnverified)
)

// Receive checks, in this order: the token; of a webhook without a secret whether it is enabled, and its rate limit; the body's size; of one with a secret the
// signature, its rate limit and whether it is enabled; whether the body can be understood. What is signed and comes to a disabled webhook is no failure to its
// tracker, which would switch its own webhook off.
func (r *Receiver) Receive(ctx context.Context, c Call) (Received, error) {
	provider, is := tracker.Of(c.Provider)
	if !is {
		return Received{}, webhook.ErrTaskToken
	}
	door, err := webhook.EnterTask(ctx, r.DB, c.Provider, c.Token)
	if err != nil {
		if errors.Is(err, webhook.ErrTaskToken) {
			slog.WarnContext(ctx, "a task tracker's delivery has no webhook's token", "provider", c.Provider)
		}
		return Received{}, err
	}
	v := visit{r, door, integration.Arrived(door.TenantID, integration.Provider(c.Provider), nil)}
	if door.Secret <= 0 {
		if !door.Enabled {
			return Received{}, v.refuse(ctx, integration.Failed, errDisabled)
		}
		if got, err := v.count(ctx, &r.unverified); err != nil {
			return got, err
		}
	}
	body, err := c.Body()
	if err != nil {
		return Received{}, v.refuse(ctx, integration.Invalid, err)
	}
	v.delivery = integration.Arrived(door.TenantID, v.delivery.Provider, body)
	return v.receive(ctx, provider, tracker.Inbound{Header: c.Header, Body: body, Now: time.Now()})
}

// count is the webhook's rate limit.
func (v visit) count(ctx context.Context, window *webhook.Window) (Received, error) {
	wait := window.Take(v.door.WebhookID, v.door.RateLimit)
	if wait == 0 {
		return Received{}, nil
	}
	return Received{Wait: wait}, v.refuse(ctx, integration.RateLimited, fault.New(fault.RateLimitExceeded, "the webhook's limit of %d calls a minute is reached", v.door.RateLimit))
}

// receive is what follows once the body is there.
func (v visit) receive(ctx context.Context, provider tracker.Provider, in tracker.Inbound) (Received, error) {
	shake, is := provider.Handshake(in)
	if v.door.Secret > 0 {
		if got, err := v.verify(ctx, provider, in, is); err != nil {
			return got, err
		}
	}
	if is {
		return v.shake(ctx, shake)
	}
	if v.door.Secret > 0 {
		v.delivery.Keep(in.Body) // what a stranger sends is not kept
		if !v.door.Enabled {
			if err := v.refuse(ctx, integration.Failed, errDisabled); !errors.Is(err, errDisabled) { // it is not in the log
				return Received{}, err
			}
			return Received{Outcome: integration.Failed}, nil
		}
	}
	v.delivery.Event, v.delivery.ProviderID = new(provider.Word(in.Body)), new(provider.DeliveryID(in))
	events, err := provider.Normalize(in.Body)
	if err != nil {
		return Received{}, v.refuse(ctx, integration.Invalid, err)
	}
	return v.take(ctx, in.Body, len(events) > 0)
}

// verify refuses what is not signed with the webhook's secret, and what is too much. A handshake is not signed.
func (v visit) verify(ctx context.Context, provider tracker.Provider, in tracker.Inbound, handshake bool) (Received, error) {
	if handshake {
		return v.count(ctx, &v.by.unverified)
	}
	secret, err := v.by.Secrets.Get(ctx, v.door.TenantID, v.door.WebhookID, v.door.Secret)
	if err != nil {
		return Received{}, v.refuse(ctx, integration.Failed, err)
	}
	if provider.Verify(in, secret) == nil {
		return v.count(ctx, &v.by.window)
	}
	if got, err := v.count(ctx, &v.by.unverified); err != nil {
		return got, err
	}
	return Received{}, v.refuse(ctx, integration.Unverified, errUnverified)
}
