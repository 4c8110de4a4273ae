package mail_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/mail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func send(t *testing.T, p *handlertest.Platform, o mail.Order) (mail.Sent, error) {
	t.Helper()
	return invoke.Ask[mail.Sent](t.Context(), functions.SendMail(p.Env(t, mail.Function)).Invoke, o)
}

func TestSendMail(t *testing.T) {
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	p := handlertest.New(t).WithMail("agents@acme.test", o)
	order := mail.Order{TenantID: "t", TurnID: "u", To: []string{"ada@acme.test", "bob@acme.test"}, ReplyTo: "reply@acme.test", Subject: "Grüße", Text: "Hallo\n"}
	got, err := send(t, p, order)
	require.NoError(t, err)

	entries, _, err := o.List("", 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	raw, err := o.Read(entries[0].ID)
	require.NoError(t, err)
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	require.NoError(t, err)
	for name, want := range map[string]string{"From": "<agents@acme.test>", "To": "ada@acme.test, bob@acme.test", "Reply-To": "reply@acme.test", "Message-Id": got.MessageID,
		"Auto-Submitted": "auto-generated"} {
		require.Equal(t, want, m.Header.Get(name))
	}

	for says, change := range map[string]func(*mail.Order){
		"1 to 50 recipients":       func(o *mail.Order) { o.To = nil },
		"is not an e-mail address": func(o *mail.Order) { o.To = []string{"ada@acme.test, eve@evil.test"} },
		"the subject is one line":  func(o *mail.Order) { o.Subject = "a\r\nBcc: eve@evil.test" },
		"a mail has a text":        func(o *mail.Order) { o.Text = "" },
		"a mail has at most 20971": func(o *mail.Order) { o.Text = string(make([]byte, mail.MaxSize+1)) },
	} {
		wrong := order
		change(&wrong)
		_, err := send(t, p, wrong)
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
	entries, _, err = o.List("", 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A mail that answers one names it, and those before it.
func TestAMailThatAnswers(t *testing.T) {
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	_, err = send(t, handlertest.New(t).WithMail("agents@acme.test", o), mail.Order{To: []string{"ada@acme.test"}, Subject: "Re: s", Text: "x", InReplyTo: "<2@acme.test>", References: []string{"<1@acme.test>"}})
	require.NoError(t, err)
	entries, _, err := o.List("", 10)
	require.NoError(t, err)
	raw, err := o.Read(entries[0].ID)
	require.NoError(t, err)
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	require.NoError(t, err)
	for name, want := range map[string]string{"In-Reply-To": "<2@acme.test>", "References": "<1@acme.test> <2@acme.test>", "Auto-Submitted": "auto-replied"} {
		require.Equal(t, want, m.Header.Get(name))
	}
}

// failing is a mail service that says no.
type failing struct{ err error }

func (f failing) Carry(context.Context, mail.Envelope) (string, error) { return "", f.err }

// What the mail service says crosses to whoever asked by the type of a fault; what else went wrong stays in the log.
func TestWhatTheMailServiceRefuses(t *testing.T) {
	order := mail.Order{TenantID: "t", To: []string{"ada@acme.test"}, Subject: "s", Text: "x"}
	for _, c := range []struct {
		err  error
		want *fault.Error
	}{
		{fmt.Errorf("%w: arn:aws:ses:eu-central-1:123456789012:identity/acme.test", mail.ErrRefused), fault.Invalid("the mail service does not send this mail: it does not accept the sender or a recipient")},
		{fmt.Errorf("%w: Maximum sending rate exceeded", mail.ErrThrottled), fault.New(fault.RateLimitExceeded, "too many mails were sent; try again later")},
		{errors.New("access denied: hunter2"), fault.New(fault.InternalError, "internal error")},
	} {
		_, err := send(t, handlertest.New(t).WithMail("agents@acme.test", failing{c.err}), order)
		require.Equal(t, c.want, err)
	}
}

func TestADeploymentWithoutMail(t *testing.T) {
	_, err := send(t, handlertest.New(t).WithMail("", failing{errors.New("nobody is asked")}), mail.Order{To: []string{"ada@acme.test"}, Subject: "s", Text: "x"})
	require.Equal(t, fault.Invalid("this deployment sends no mail"), err)
}

func TestAnOrderThatIsNone(t *testing.T) {
	p := handlertest.New(t).WithMail("agents@acme.test", failing{errors.New("nobody is asked")})
	for _, payload := range []string{`{"to":"ada@acme.test"}`, `[]`, `x`} {
		raw, err := functions.SendMail(p.Env(t, mail.Function)).Invoke(t.Context(), []byte(payload))
		require.NoError(t, err)
		var answer struct{ ErrorType fault.Type }
		require.NoError(t, json.Unmarshal(raw, &answer))
		require.Equal(t, fault.ValidationError, answer.ErrorType)
	}
}
