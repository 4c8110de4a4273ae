package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// maxEmailRecipients is how many people one call writes to.
const maxEmailRecipients = 10

// ErrEmailUnknown is told when the mail may be on its way: a model that reads of an error only would send it once more.
var ErrEmailUnknown = fault.New(fault.InternalError, "it is not known whether the mail was sent: do not send it again before a person has looked")

// SendEmail sends an e-mail to users of the tenant, and to nobody else: what an agent has read must not leave by mail. send is the function mail.Function, for
// whoever runs turns may not send mail himself.
func SendEmail(db *postgres.DB, send invoke.Function) Tool {
	return Tool{
		Name:        "send_email",
		Description: "Sends an e-mail to people of this organisation. It cannot be taken back, and other addresses are refused.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"to":{"type":"array","items":{"type":"string","maxLength":320},"minItems":1,"maxItems":10,"description":"E-mail addresses of users."},
			"subject":{"type":"string","minLength":1,"maxLength":200},
			"text":{"type":"string","minLength":1,"maxLength":50000,"description":"Plain text."}},
			"required":["to","subject","text"],"additionalProperties":false}`),
		Run: func(ctx context.Context, c Call) (any, error) {
			var in struct {
				To      []string `json:"to"`
				Subject string   `json:"subject"`
				Text    string   `json:"text"`
			}
			if err := Decode(c.Input, &in); err != nil {
				return nil, err
			}
			return Email(ctx, db, send, mail.Order{TenantID: c.TenantID, TurnID: c.TurnID, To: in.To, Subject: in.Subject, Text: in.Text})
		},
	}
}

// Email has a mail sent to users of the tenant: anybody else is a ValidationError, and nothing is sent then. After ErrEmailUnknown it may be on its way.
func Email(ctx context.Context, db *postgres.DB, send invoke.Function, o mail.Order) (mail.Sent, error) {
	if len(o.To) == 0 || len(o.To) > maxEmailRecipients {
		return mail.Sent{}, fault.Invalid("to holds %d addresses, where 1 to %d may be", len(o.To), maxEmailRecipients)
	}
	if err := known(ctx, db, o.TenantID, o.To); err != nil {
		return mail.Sent{}, err
	}
	sent, err := invoke.Ask[mail.Sent](ctx, send, o)
	if err != nil && fault.From(err).Type == fault.InternalError && !errors.Is(err, context.Canceled) {
		return mail.Sent{}, fmt.Errorf("%w: %s", ErrEmailUnknown, err.Error()) // not wrapped: after a timeout, too, the model is to be told this
	}
	return sent, err
}

// known refuses addresses that are not those of active users.
func known(ctx context.Context, db *postgres.DB, tenantID string, addresses []string) error {
	lower := make([]string, len(addresses))
	for i, a := range addresses {
		lower[i] = strings.ToLower(a)
	}
	rows, err := db.In(tenantID).Query(ctx, `select a from unnest($1::text[]) a where not exists (
		select from users u where lower(u.email) = a and u.status = 'active')`, lower)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		var stranger string
		if err := rows.Scan(&stranger); err != nil {
			return err
		}
		return fault.Invalid("%s is no user of this organisation", stranger)
	}
	return rows.Err()
}
