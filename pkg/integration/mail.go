package integration

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/mail/inbound"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Mail is a mail that the mail service has received.
type Mail struct {
	ID      string // the service's, by which a copy of the same is known
	Receipt inbound.Receipt
	Domain  string // whose mail is received
	Raw     []byte // nil: it is larger than is read
}

// letterbox is whose a recipient's address is.
type letterbox struct {
	tenantID, integrationID string
	address                 string // as the mail was sent to it
	token                   string // of the thread that is answered; "": it was sent to the integration
}

// ReceiveMail takes in one mail, for each of its recipients once. What comes of it is in the log of each: a mail that is not taken is no error, and nobody is
// told, for whoever sent it may not be who it says.
//
//   - The mail must be its author's, by what the mail service has found (inbound.Header.Doubt), and he an active user of the tenant whose integration or
//     thread it was sent to. So an outsider who has got hold of a reply address can do nothing with it, and a colleague may write on.
//   - A mail to an integration's address goes on in the thread of its conversation, if it answers one, and opens a thread otherwise; a mail to a reply
//     address goes on in its thread or nowhere.
//   - Its writer is the message's user, as if he had sent it by the API.
func (r *Receiver) ReceiveMail(ctx context.Context, m Mail) (all []Taken, err error) {
	boxes, err := r.letterboxes(ctx, m)
	if err != nil {
		return nil, err
	}
	if len(boxes) == 0 {
		metric.Emit(ctx, metric.Event{Line: "a mail to nobody", Level: slog.LevelWarn, About: []slog.Attr{slog.String("mail_id", m.ID), slog.Int("recipients", len(m.Receipt.Recipients))},
			Sets: []metric.Set{{Figures: []metric.Figure{{Name: "integrations.unknown", Unit: metric.Count, Value: 1}}}}})
	}
	for _, box := range boxes {
		taken, err := r.post(ctx, m, box)
		if err != nil {
			return all, err // all of it comes again: what was taken in is known then
		}
		all = append(all, taken)
	}
	return all, nil
}

// maxRecipients of a mail that are looked at.
const maxRecipients = 50

// letterboxes are whom the mail is for; those of threads first, so that a mail to an integration and one of its threads is said in that thread.
func (r *Receiver) letterboxes(ctx context.Context, m Mail) (threads []letterbox, err error) {
	var others []letterbox
	seen := map[inbound.Mailbox]bool{}
	for _, address := range m.Receipt.Recipients[:min(len(m.Receipt.Recipients), maxRecipients)] {
		to, ok := inbound.Open(address, m.Domain)
		if !ok || seen[to] {
			continue
		}
		seen[to] = true
		sql, key := `select tenant_id::text, integration_id::text from lookup_integration_address($1)`, to.Address
		if to.Token != "" {
			sql, key = `select tenant_id::text, integration_id::text from lookup_reply_token($1)`, to.Token
		}
		found, err := postgres.All(ctx, r.db.Lookup(), func(row pgx.CollectableRow) (b letterbox, err error) {
			b.address, b.token = strings.ToLower(address), to.Token
			return b, row.Scan(&b.tenantID, &b.integrationID)
		}, sql, key)
		switch {
		case err != nil:
			return nil, err
		case to.Token != "":
			threads = append(threads, found...)
		default:
			others = append(others, found...)
		}
	}
	return append(threads, others...), nil
}

// post takes the mail in for one recipient. What is not taken is in the log; an error is the platform's.
func (r *Receiver) post(ctx context.Context, m Mail, box letterbox) (Taken, error) {
	d := Arrived(box.tenantID, Email, m.Raw)
	d.IntegrationID, d.ProviderID, d.Event = &box.integrationID, &m.ID, new("mail")
	if box.token != "" {
		d.Event = new("reply")
	}
	i, err := Get(ctx, r.db.In(box.tenantID), box.integrationID)
	switch {
	case fault.IsMissing(err): // its threads are still there
		slog.WarnContext(ctx, "a mail to an integration that is deleted", "tenant_id", box.tenantID, "integration_id", box.integrationID, "mail_id", m.ID)
		return Taken{Delivery: d}, nil
	case err != nil:
		return Taken{}, r.broke(ctx, d, err)
	case i.Provider != Email:
		return Taken{Delivery: d}, nil
	}
	said, userID, outcome, why, err := r.author(ctx, m, box)
	switch {
	case err != nil:
		return Taken{}, r.broke(ctx, d, err)
	case why != nil:
		return r.leave(ctx, d, outcome, why)
	}
	d.Keep(m.Raw)
	if !i.Enabled {
		return r.leave(ctx, d, Failed, fault.New(fault.Forbidden, "the integration is disabled"))
	}
	if r.window.Take(box.integrationID, i.RateLimit) > 0 {
		return r.leave(ctx, d, RateLimited, fault.New(fault.RateLimitExceeded, "the integration's limit of %d deliveries a minute is reached", i.RateLimit))
	}
	content, err := inbound.Read(m.Raw)
	if err != nil {
		return r.leave(ctx, d, Invalid, err)
	}
	t := Taking{Integration: i, UserID: userID, Delivery: d}
	t.Said, err = r.say(ctx, m, box, said, content, userID)
	if fault.IsMissing(err) { // the thread went with its tenant's history
		return r.leave(ctx, d, Unknown, err)
	}
	if err == nil {
		var taken Taken
		if taken, err = Take(ctx, r.db, t); err == nil {
			return taken, nil
		}
	}
	return Taken{}, r.broke(ctx, d, err)
}

// leave logs a mail that is not taken in.
func (r *Receiver) leave(ctx context.Context, d Delivery, outcome Outcome, why error) (Taken, error) {
	if err := r.refuse(ctx, d, outcome, why); fault.From(err).Type == fault.InternalError {
		return Taken{}, err
	}
	d.Outcome = outcome
	return Taken{Delivery: d}, nil
}

// author says which user of the tenant has written the mail, or why it is not taken.
func (r *Receiver) author(ctx context.Context, m Mail, box letterbox) (h inbound.Header, userID string, outcome Outcome, why, err error) {
	if m.Raw == nil {
		return h, "", Invalid, fault.Invalid("a mail has at most %d MiB", inbound.MaxSize>>20), nil
	}
	h, why = inbound.ReadHeader(m.Raw)
	if reason := h.Automatic(m.Receipt, m.Domain); reason != "" {
		return h, "", OK, fault.Invalid("nobody is answered: %s", reason), nil
	}
	if why != nil {
		return h, "", Invalid, why, nil
	}
	if doubt := h.Doubt(m.Receipt, box.address, time.Now()); doubt != "" {
		return h, "", Unverified, fault.Invalid("%s", doubt), nil
	}
	users, err := postgres.All(ctx, r.db.Lookup(), func(row pgx.CollectableRow) (id string, err error) {
		var tenantID string
		if err = row.Scan(&tenantID, &id); tenantID != box.tenantID { // a user of another tenant is nobody here, and nobody is told that he is one
			id = ""
		}
		return id, err
	}, `select tenant_id::text, user_id::text from lookup_user($1)`, h.From.Address)
	if err != nil {
		return h, "", "", nil, err
	}
	if len(users) == 0 || users[0] == "" {
		return h, "", Unknown, fault.Invalid("%s is not an active user", h.From.Address), nil
	}
	return h, users[0], "", nil, nil
}

// say is what the mail says, and in which conversation.
func (r *Receiver) say(ctx context.Context, m Mail, box letterbox, h inbound.Header, c inbound.Content, userID string) (channel.Said, error) {
	said := channel.Said{MessageKey: h.MessageID, Opens: box.token == "", Sender: channel.Sender{ID: userID, Name: h.From.Name}}
	if said.Sender.Name == "" {
		said.Sender.Name = h.From.Address
	}
	if said.Key = h.Conversation(); said.Key == "" {
		said.Key = "mail:" + m.ID
	}
	keys, err := postgres.All(ctx, r.db.In(box.tenantID), pgx.RowTo[string], `select key from integration_threads where integration_id = $1 and (reply_token = nullif($2, '')::uuid or $2 = '' and key = $3)`,
		box.integrationID, box.token, said.Key)
	if err != nil {
		return said, err
	}
	text := c.Own
	switch {
	case len(keys) > 0:
		said.Key = keys[0]
	case box.token != "":
		return said, fault.Missing("thread")
	default: // what came before the mail has been seen by nobody here
		if text = c.Text; h.Subject != "" {
			text = strings.TrimSpace("Subject: " + h.Subject + "\n\n" + text)
			said.Title = &h.Subject
		}
	}
	if said.Body = c.Words(text, thread.MaxBody); said.Body == "" {
		said.Body = "(The mail has no text.)"
	}
	said.Metadata = map[string]any{"email": map[string]string{"from": h.From.Address, "subject": h.Subject, "messageId": h.MessageID}}
	said.Address, err = json.Marshal(mailAddress{To: h.From.Address, Subject: h.Subject, MessageID: h.MessageID, References: h.References, Domain: m.Domain})
	return said, err
}
