// Package ses is Amazon SES behind package mail; Mail puts it behind the need mail.
package ses

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/smithy-go"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// Mail is the adapter for the need mail.
func Mail(a *cloud.Account, p *handler.Ports) {
	p.Mail = sync.OnceValue(func() *mail.Mailer { return mail.New(Carrier{Client: NewClient(a.AWS())}) })
}

// NewClient makes a client that sends no mail twice: it repeats only what SES has refused because too much was asked of it at once.
func NewClient(c aws.Config) *sesv2.Client {
	return sesv2.NewFromConfig(c, func(o *sesv2.Options) {
		o.Retryer = retry.NewStandard(func(s *retry.StandardOptions) {
			s.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: map[string]struct{}{"TooManyRequestsException": {}}}}
		})
	})
}

// Carrier is the mail.Carrier of Amazon SES, API version 2.
//
// The client tries again as its own settings say: one that does so where SES was not reached, or failed, may send a mail twice. Errors name no recipient but
// where SES does.
type Carrier struct {
	Client *sesv2.Client // who sends; its role needs ses:SendEmail and ses:SendRawEmail on the sender's identity. Required
}

// Carry sends the mail as it is, to those of the envelope only. SES sets a Message-ID and a Date of its own.
func (c Carrier) Carry(ctx context.Context, e mail.Envelope) (id string, err error) {
	out, err := c.Client.SendEmail(ctx, &sesv2.SendEmailInput{FromEmailAddress: &e.From, Destination: &types.Destination{ToAddresses: e.To},
		Content: &types.EmailContent{Raw: &types.RawMessage{Data: e.Raw}}})
	switch {
	case err != nil:
		return "", fmt.Errorf("a mail from %s: %w", e.From, reason(err))
	case out.MessageId == nil:
		return "", fmt.Errorf("a mail from %s: SES gave no message id", e.From)
	}
	return "<" + *out.MessageId + "@" + c.host() + ">", nil
}

// host is what SES puts behind its ids in the header, by region.
func (c Carrier) host() string {
	if region := c.Client.Options().Region; region != "us-east-1" {
		return region + ".amazonses.com"
	}
	return "email.amazonses.com"
}

func reason(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "MessageRejected", "MailFromDomainNotVerifiedException", "AccountSuspendedException", "SendingPausedException", "BadRequestException":
		return fmt.Errorf("%w: %w", mail.ErrRefused, err)
	case "TooManyRequestsException", "LimitExceededException", "Throttling", "ThrottlingException":
		return fmt.Errorf("%w: %w", mail.ErrThrottled, err)
	case "AccessDeniedException":
		return fmt.Errorf("access denied: the role needs ses:SendEmail and ses:SendRawEmail on the sender's identity: %w", err)
	}
	return err
}
