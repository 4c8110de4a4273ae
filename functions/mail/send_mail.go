package mail

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// SendMail sends one mail. It trusts whoever asks: the platform's own functions, which have looked at the recipients.
//
// A fault says that nothing was sent: RateLimitExceeded that it may be later, a ValidationError that it never will be. After any other error the mail may be on
// its way.
func SendMail(env *handler.Env) lambda.Handler {
	mailer, from := env.Mail(), env.MailFrom()
	return handler.Call(func(ctx context.Context, o mail.Order) (mail.Sent, error) {
		if from == "" {
			return mail.Sent{}, fault.Invalid("this deployment sends no mail")
		}
		id, err := mailer.Send(ctx, mail.Message{From: mail.Address{Address: from}, To: o.To, ReplyTo: o.ReplyTo, Subject: o.Subject, Text: o.Text, HTML: o.HTML,
			InReplyTo: o.InReplyTo, References: o.References})
		about := []any{"tenant_id", o.TenantID, "turn_id", o.TurnID, "recipients", len(o.To)}
		if err == nil {
			slog.InfoContext(ctx, "mail sent", append(about, "message_id", id)...)
			return mail.Sent{MessageID: id}, nil
		}
		slog.WarnContext(ctx, "mail not sent", append(about, "error", err)...)
		switch {
		case errors.Is(err, mail.ErrRefused):
			return mail.Sent{}, fault.Invalid("the mail service does not send this mail: it does not accept the sender or a recipient")
		case errors.Is(err, mail.ErrThrottled):
			return mail.Sent{}, fault.New(fault.RateLimitExceeded, "too many mails were sent; try again later")
		}
		return mail.Sent{}, err
	})
}
