// Package mail is the port to outgoing e-mail. In the cloud SES carries it (pkg/cloud/ses); on one machine it is kept in an outbox
// (pkg/local/outbox).
//
// What holds, whoever carries the mails:
//   - A message is checked and rendered here, before anybody carries it: no field can add a header, a recipient or a part, and a mail that one
//     carrier would send another would send too. What is carried is 7-bit text in lines of at most 998 characters.
//   - Every mail says that a machine sent it (Auto-Submitted, RFC 3834; X-Auto-Response-Suppress for Exchange), so that loops of mails that answer
//     each other end.
//   - Send is at least once: after an error other than those of this package the mail may be on its way, and a second Send is a second mail.
//
// Not for attachments, copies and pictures: nobody here sends them.
package mail

import (
	"context"
	"errors"
	netmail "net/mail"
	"time"
)

const (
	// MaxSize is how many bytes a rendered mail may have: 2 MiB. SES takes 40 MB, but mail servers of receivers take less, and a text that
	// people read is smaller.
	MaxSize = 2 << 20
	// MaxRecipients of one mail, as SES has it.
	MaxRecipients = 50
	// MaxSubject is how many bytes of UTF-8 a subject may have.
	MaxSubject = 1000
	// MaxName is how many bytes of UTF-8 a sender's name may have.
	MaxName = 200
)

// Why a mail was not sent; errors.Is finds them. Of all four, a second try of the same mail helps with ErrThrottled only.
var (
	// ErrInvalid is about the message itself; the *fault.Error in it, a ValidationError, says what.
	ErrInvalid = errors.New("not a mail that can be sent")
	// ErrTooLarge is about its size; there is a ValidationError in it too.
	ErrTooLarge = errors.New("the mail is too large")
	// ErrRefused means that the mail service sends nothing from this sender or to one of the recipients: an identity that is not verified, an
	// account that may not send.
	ErrRefused = errors.New("the mail service refuses it")
	// ErrThrottled means that more was sent than the account may send in a second or in a day. Try again later.
	ErrThrottled = errors.New("the mail service asks to send later")
)

// Address is a mailbox with the name that is shown for it.
type Address = netmail.Address

// Message is one e-mail. Addresses are ASCII (SES does not take others): a domain in other letters is written as xn--….
type Message struct {
	From    Address  // Required. Name, of any letters, is shown by mail programs
	To      []string // plain addresses, 1 to MaxRecipients: all of them see each other. Required
	ReplyTo string   // a plain address; empty: replies go to From
	Subject string
	Text    string // line ends as they come. Required
	HTML    string // the same for programs that show HTML, sent as it is: whoever wrote it has escaped what was not theirs. Empty: none

	InReplyTo  string   // Message-ID of the mail that this one answers, in its angle brackets
	References []string // those before it in the conversation, oldest first; InReplyTo need not be among them
}

// Carrier carries a rendered mail: the adapter of a mail service.
type Carrier interface {
	// Carry sends e.Raw to e.To and gives the Message-ID that receivers see, in its angle brackets: e.ID, unless the service sets its own.
	Carry(ctx context.Context, e Envelope) (id string, err error)
}

// Envelope is a rendered mail and who gets it from whom.
type Envelope struct {
	ID   string   // the Message-ID in Raw, with its angle brackets
	From string   // plain address
	To   []string // plain addresses
	Raw  []byte   // RFC 5322 with CRLF line ends, at most MaxSize
}

// Mailer sends e-mails. It is safe for concurrent use.
type Mailer struct{ carrier Carrier }

// New is a Mailer by that carrier.
func New(c Carrier) *Mailer { return &Mailer{c} }

// Send sends one mail, and gives the Message-ID that its receivers see, in its angle brackets: what their replies name in In-Reply-To.
func (m *Mailer) Send(ctx context.Context, msg Message) (id string, err error) {
	e, err := Render(msg, time.Now())
	if err != nil {
		return "", err
	}
	return m.carrier.Carry(ctx, e)
}
