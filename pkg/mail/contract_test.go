package mail_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// adapter is a mail.Carrier under the contract.
type adapter struct {
	mail.Carrier
	sent func(t *testing.T) []sent // all of them, in any order
	// own: the mail arrives with the Message-ID that it has. SES sets another one, though moto does not.
	own bool
}

// sent is a mail as the service has it.
type sent struct {
	id  string // as receivers see it
	raw []byte
}

func (a adapter) find(t *testing.T, id string) []byte {
	t.Helper()
	for _, s := range a.sent(t) {
		if s.id == id {
			return s.raw
		}
	}
	require.Fail(t, "not sent: "+id)
	return nil
}

func testContract(t *testing.T, a adapter) {
	mailer := mail.New(a)
	t.Run("arrives", func(t *testing.T) {
		m := message()
		m.From.Name, m.Subject, m.ReplyTo = "Adä", "Grüße 👋", "reply+abc@mail.example.com"
		m.To = []string{"ann@acme.test", "bob@acme.test"}
		m.Text, m.HTML = ".\nÄ = ü\n"+strings.Repeat("x", 2000)+"\n", "<p>Ä &amp; ü</p>\n"
		id, err := mailer.Send(t.Context(), m)
		require.NoError(t, err)
		p := parse(t, a.find(t, id))
		require.Equal(t, m.Subject, p.subject(t))
		require.Equal(t, strings.ReplaceAll(m.Text, "\n", "\r\n"), p.text)
		require.Equal(t, "<p>Ä &amp; ü</p>\r\n", p.html)
		require.Equal(t, "ann@acme.test, bob@acme.test", p.Get("To"))
		require.Equal(t, m.ReplyTo, p.Get("Reply-To"))
		from, err := p.AddressList("From")
		require.NoError(t, err)
		require.Equal(t, m.From, *from[0])
		require.Equal(t, a.own, p.Get("Message-Id") == id)
	})
	t.Run("an id can be answered", func(t *testing.T) {
		id, err := mailer.Send(t.Context(), message())
		require.NoError(t, err)
		m := message()
		m.InReplyTo = id
		next, err := mailer.Send(t.Context(), m)
		require.NoError(t, err)
		require.NotEqual(t, id, next)
		require.Equal(t, id, parse(t, a.find(t, next)).Get("In-Reply-To"))
	})
	t.Run("the same mail twice is two mails", func(t *testing.T) {
		before := len(a.sent(t))
		for range 2 {
			_, err := mailer.Send(t.Context(), message())
			require.NoError(t, err)
		}
		require.Len(t, a.sent(t), before+2)
	})
	t.Run("almost too large, to many", func(t *testing.T) {
		m := message()
		m.Text = strings.Repeat(strings.Repeat("x", 74)+"\n", 27000)
		m.To = nil
		for i := range 25 { // moto counts each twice: as a destination, and in To
			m.To = append(m.To, fmt.Sprintf("r%d@acme.test", i))
		}
		id, err := mailer.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(m.Text, "\n", "\r\n"), parse(t, a.find(t, id)).text)
	})
	t.Run("by many at once", func(t *testing.T) {
		const callers = 8
		ids, errs := make([]string, callers), make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				m := message()
				m.Subject = fmt.Sprint("mail ", i)
				ids[i], errs[i] = mailer.Send(t.Context(), m)
			})
		}
		wg.Wait()
		for i := range callers {
			require.NoError(t, errs[i])
			require.Equal(t, fmt.Sprint("mail ", i), parse(t, a.find(t, ids[i])).subject(t))
		}
	})
	t.Run("a cancelled call", func(t *testing.T) {
		before := len(a.sent(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := mailer.Send(ctx, message())
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, a.sent(t), before)
	})
	t.Run("what is refused is not sent", func(t *testing.T) {
		before := len(a.sent(t))
		for _, r := range refusals() {
			m := message()
			r.change(&m)
			_, err := mailer.Send(t.Context(), m)
			require.ErrorIs(t, err, r.want, r.says)
			require.ErrorContains(t, err, r.says)
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 400)
		}
		require.Len(t, a.sent(t), before)
	})
}

type refusal struct {
	change func(m *mail.Message)
	want   error
	says   string
}

// refusals are what no carrier is given.
func refusals() []refusal {
	const injection = "\r\nBcc: eve@evil.test"
	all := []refusal{
		{func(m *mail.Message) { m.To = nil }, mail.ErrInvalid, "1 to 50 recipients, not 0"},
		{func(m *mail.Message) { m.To = make([]string, 51) }, mail.ErrInvalid, "1 to 50 recipients, not 51"},
		{func(m *mail.Message) { m.Subject = "é" + injection }, mail.ErrInvalid, "the subject is one line"},
		{func(m *mail.Message) { m.Subject = "a\xff" }, mail.ErrInvalid, "the subject is one line"},
		{func(m *mail.Message) { m.Subject = strings.Repeat("a", 1001) }, mail.ErrTooLarge, "the subject has at most 1000 bytes"},
		{func(m *mail.Message) { m.From.Name = "A" + injection }, mail.ErrInvalid, "the sender's name is one line"},
		{func(m *mail.Message) { m.From.Name = strings.Repeat("é", 101) }, mail.ErrTooLarge, "the sender's name has at most 200 bytes"},
		{func(m *mail.Message) { m.Text = " \n" }, mail.ErrInvalid, "a mail has a text"},
		{func(m *mail.Message) { m.Text = "\xff" }, mail.ErrInvalid, "UTF-8"},
		{func(m *mail.Message) { m.HTML = "\xff" }, mail.ErrInvalid, "UTF-8"},
		{func(m *mail.Message) { m.Text = strings.Repeat("a", mail.MaxSize+1) }, mail.ErrTooLarge, "at most 2097152 bytes"},
		{func(m *mail.Message) { m.Text = strings.Repeat("é", mail.MaxSize/4) }, mail.ErrTooLarge, "as it is sent"},
	}
	for _, id := range []string{"<1@x>" + injection, "1@x", "<1@x", "<a b@x>", "<1@x> <2@x>", "<é@x>", "<" + strings.Repeat("a", 501) + ">"} {
		all = append(all, refusal{func(m *mail.Message) { m.InReplyTo = id }, mail.ErrInvalid, "not a message id"},
			refusal{func(m *mail.Message) { m.References = []string{"<1@x>", id} }, mail.ErrInvalid, "not a message id"})
	}
	for _, address := range []string{"a@b.c" + injection, "a@b.c\n", "ann", "ann@acme", "@acme.test", "ann@", "ann@acme..test", "ann@-acme.test", "an n@acme.test", "ann@acme.test, eve@evil.test",
		"Ann <ann@acme.test>", "<ann@acme.test>", `"a b"@acme.test`, "ann@[127.0.0.1]", "änn@acme.test", "ann@äcme.test", ".ann@acme.test", "a..b@acme.test", "a@b@acme.test", "ann(x)@acme.test",
		strings.Repeat("a", 65) + "@acme.test", "a@" + strings.Repeat("b.", 126) + "test", "a@" + strings.Repeat("b", 64) + ".test", " ann@acme.test"} {
		all = append(all, refusal{func(m *mail.Message) { m.From.Address = address }, mail.ErrInvalid, "from: "},
			refusal{func(m *mail.Message) { m.To = []string{"ann@acme.test", address} }, mail.ErrInvalid, "is not an e-mail address"},
			refusal{func(m *mail.Message) { m.ReplyTo = address }, mail.ErrInvalid, "reply-to: "})
	}
	return append(all, refusal{func(m *mail.Message) { m.From.Address = "" }, mail.ErrInvalid, "from: "})
}
