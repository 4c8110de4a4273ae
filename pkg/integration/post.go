package integration

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/provider"
)

// done is what came of posting a reply.
type done struct {
	status     replyStatus // queued: it is tried again
	externalID string
	reason     string        // why not, for people
	after      time.Duration // how long the provider wants to be left alone
	asked      bool          // the provider may have it
	blame      bool          // the integration is why, and says so
}

// text is what is said outside. Why a turn has failed is nobody's business there.
func (l letter) text() string {
	switch {
	case l.body != nil:
		return *l.body
	case l.threadID != "":
		return "I could not answer this. Ask again, or look at thread " + l.threadID + "."
	}
	return "I could not answer this. Ask again later."
}

// post asks the provider.
func (c *Courier) post(ctx context.Context, r claimed) done {
	switch i := r.integration; {
	case i == nil:
		return done{status: failedReply, reason: "the integration was deleted"}
	case !i.Enabled:
		return done{status: failedReply, reason: "the integration is disabled"}
	case r.messageID != nil && r.body == nil:
		return done{status: failedReply, reason: "the message is not there any more"}
	case i.Provider == Email:
		return c.mail(ctx, r)
	}
	ch, ok := channel.Of(string(r.integration.Provider))
	if !ok {
		return done{status: failedReply, reason: "the integration is no channel"}
	}
	outside, err := c.outside(ctx, r)
	if err != nil {
		return failure(err, r.asked != nil)
	}
	if r.asked != nil {
		id, found, err := ch.Find(ctx, outside, r.address, r.id, r.asked.Add(-lookBack))
		switch {
		case err != nil:
			return notFound(err)
		case found:
			return done{status: posted, externalID: id, asked: true}
		}
	}
	id, err := ch.Post(ctx, outside, r.address, channel.Reply{ID: r.id, ThreadID: r.threadID, Body: r.text(), Failed: r.body == nil})
	if err != nil {
		return failure(err, true)
	}
	return done{status: posted, externalID: id, asked: true}
}

// lookBack is how far the provider's clock may be behind ours.
const lookBack = 2 * time.Minute

// outside is how the provider is reached.
func (c *Courier) outside(ctx context.Context, r claimed) (channel.Outside, error) {
	secret, err := c.Secrets.Get(ctx, r.tenantID, r.integrationID, r.integration.Version)
	if err != nil {
		return channel.Outside{}, err
	}
	config, err := channel.ParseConfig(json.RawMessage(r.integration.Config))
	return channel.Outside{Client: c.Client, Config: config, Secrets: secret}, err
}

// failure is what becomes of a reply by why it was not posted. maybe: what is not known to have been not done may have been done.
func failure(err error, maybe bool) done {
	var p *provider.Error
	var f *fault.Error
	switch {
	case errors.As(err, &p) && p.Again():
		return done{status: queued, reason: p.Reason, after: p.After}
	case errors.As(err, &p) && p.Kind == provider.Unknown:
		return done{status: queued, reason: p.Reason, asked: true}
	case errors.As(err, &p):
		return done{status: failedReply, reason: p.Reason, blame: true}
	case errors.As(err, &f):
		return done{status: failedReply, reason: f.Message, blame: true}
	}
	return done{status: queued, reason: "internal error", asked: maybe}
}

// notFound is what becomes of a reply that could not be looked for: it may be there.
func notFound(err error) done {
	var p *provider.Error
	switch {
	case errors.Is(err, channel.ErrNoLook):
		return done{status: unknownReply, reason: "it may have been posted, and the provider cannot be asked", asked: true}
	case errors.As(err, &p) && !p.Again() && p.Kind != provider.Unknown:
		return done{status: unknownReply, reason: "it may have been posted, and cannot be looked for: " + p.Reason, asked: true, blame: true}
	case errors.As(err, &p):
		return done{status: queued, reason: p.Reason, after: p.After, asked: true}
	}
	return done{status: queued, reason: "internal error", asked: true}
}
