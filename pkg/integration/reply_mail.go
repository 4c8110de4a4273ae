package integration

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/mail/inbound"
)

// mailAddress is the last mail of a conversation, as its answer has to name it.
type mailAddress struct {
	To         string   `json:"to"`                   // who has sent it: gets what is said of a mail that opened no thread
	Subject    string   `json:"subject"`              // of the mail
	MessageID  string   `json:"messageId,omitempty"`  // of the mail, in its angle brackets
	References []string `json:"references,omitempty"` // of the mail
	Domain     string   `json:"domain"`               // that it was sent to
}

// mail sends a reply to whoever wrote the mails that it answers, as far as they are users still. Nobody can be asked whether a mail was sent.
func (c *Courier) mail(ctx context.Context, r claimed) done {
	if r.asked != nil {
		return notFound(channel.ErrNoLook)
	}
	var a mailAddress
	if err := json.Unmarshal(r.address, &a); err != nil {
		return done{status: failedReply, reason: "the address cannot be read"}
	}
	o := mail.Order{TenantID: r.tenantID, TurnID: r.turnID, To: r.receivers, Subject: answer(a.Subject), Text: r.text(), InReplyTo: a.MessageID, References: a.References}
	if r.turnID == "" { // of a mail that was refused: its author was a user then
		o.To = []string{a.To}
	}
	if r.threadID != "" && a.Domain != "" {
		o.ReplyTo = inbound.ReplyAddress(r.replyToken, a.Domain)
	}
	switch {
	case len(o.To) == 0 || o.To[0] == "":
		return done{status: failedReply, reason: "nobody who has written is a user any more"}
	case ctx.Err() != nil: // nobody was asked
		return done{status: queued, reason: "internal error"}
	}
	sent, err := invoke.Ask[mail.Sent](ctx, c.Mail, o)
	if err == nil {
		return done{status: posted, externalID: sent.MessageID, asked: true}
	}
	switch f := fault.From(err); f.Type {
	case fault.RateLimitExceeded:
		return done{status: queued, reason: f.Message}
	case fault.InternalError:
		return done{status: unknownReply, reason: "it may have been sent", asked: true}
	default:
		return done{status: failedReply, reason: f.Message, blame: true}
	}
}

// answer is the subject of a mail that answers one of that subject.
func answer(subject string) string {
	if len(subject) >= 3 && strings.EqualFold(subject[:3], "re:") {
		return subject
	}
	return strings.TrimSpace("Re: " + subject)
}
