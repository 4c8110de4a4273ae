package integration

import (
	"context"
	"errors"
	"log/slog"
	"regexp"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/mail/inbound"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// received is where the mail service puts mails, by its ids of them.
const received = "in/"

// mailIDs are SES's; no other name leads to an object.
var mailIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// ReceiveMail takes in the mails that SES has received and stored. Of who sent one the event is believed, which SES made; the mail itself says what it likes.
func ReceiveMail(env *handler.Env) lambda.Handler {
	db, mails, domain := env.DB(), env.MailReader(), env.MailDomain()
	receiver := integration.NewReceiver(db, nil) // a mail is not signed with a secret
	after := follow{db: db, to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), reply: env.Invoke("deliver-replies"), signal: env.Signal()}
	one := func(ctx context.Context, ses events.SimpleEmailService) error {
		if !mailIDs.MatchString(ses.Mail.MessageID) {
			slog.WarnContext(ctx, "a mail without an id that names it")
			return nil
		}
		raw, err := mails.Get(ctx, received+ses.Mail.MessageID, inbound.MaxSize)
		if err != nil && !errors.Is(err, object.ErrTooLarge) {
			return err
		}
		all, err := receiver.ReceiveMail(ctx, integration.Mail{ID: ses.Mail.MessageID, Receipt: receipt(ses), Domain: domain, Raw: raw})
		for _, taken := range all {
			after.taken(ctx, taken)
		}
		return err
	}
	return handler.Task(func(ctx context.Context, e events.SimpleEmailEvent) (err error) {
		for _, record := range e.Records {
			err = errors.Join(err, one(ctx, record.SES))
		}
		return err
	})
}

// receipt is what SES says of a mail.
func receipt(ses events.SimpleEmailService) inbound.Receipt {
	verdict := func(v events.SimpleEmailVerdict) inbound.Verdict { return inbound.Verdict(v.Status) }
	return inbound.Receipt{Sender: ses.Mail.Source, From: ses.Mail.CommonHeaders.From, Recipients: ses.Receipt.Recipients, SPF: verdict(ses.Receipt.SPFVerdict),
		DKIM: verdict(ses.Receipt.DKIMVerdict), DMARC: verdict(ses.Receipt.DMARCVerdict), Spam: verdict(ses.Receipt.SpamVerdict), Virus: verdict(ses.Receipt.VirusVerdict)}
}
