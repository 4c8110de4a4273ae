package inbound

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"
)

const (
	domain = "in.example.com"
	token  = "0199c0de-1234-4abc-8def-0123456789ab"
)

func TestRecipients(t *testing.T) {
	reply := ReplyAddress(strings.ToUpper(token), domain)
	require.Equal(t, "reply+0199c0de12344abc8def0123456789ab@in.example.com", reply)
	for address, want := range map[string]Mailbox{
		"support@in.example.com":      {Address: "support"},
		"Support@IN.example.com":      {Address: "support"},
		"support+note@in.example.com": {Address: "support"},
		reply:                         {Token: token},
		strings.ToUpper(reply):        {Token: token},
	} {
		got, ok := Open(address, domain)
		require.True(t, ok, address)
		require.Equal(t, want, got, address)
	}
	for _, address := range []string{"", "@in.example.com", "support", "support@example.com", "support@x.in.example.com", "reply@in.example.com", "reply+@in.example.com", "+x@in.example.com",
		"reply+" + token + "@in.example.com", "reply+0199c0de12344abc8def0123456789aG@in.example.com", "reply+%00@in.example.com"} {
		_, ok := Open(address, domain)
		require.False(t, ok, address)
	}
	_, ok := Open("support@", "")
	require.False(t, ok, "where no mail is received nobody is a recipient")
}

func TestAHeader(t *testing.T) {
	h, err := ReadHeader(fixture(t, "ses-gmail-reply.eml"))
	require.NoError(t, err)
	require.Equal(t, "ann.example@gmail.com", h.From.Address)
	require.Equal(t, "Ann Example", h.From.Name)
	require.Equal(t, "Re: New message from Funcho", h.Subject)
	require.Equal(t, "<CADS5oMb1H9y5X7x4q0sgf3Z7jQAHH0MG3cn_NjgDdsdtzsFErA@mail.gmail.com>", h.MessageID)
	require.Equal(t, []string{"<01000186fcedd756-a86b0610-7650-474a-bcd5-2461d14e96c0-000000@email.amazonses.com>"}, h.References)
	require.Equal(t, h.References[0], h.Conversation())
	require.Equal(t, []string{"reply+k3v9t2q8w5x1@in.example.com"}, h.To)
	require.Equal(t, []string{"gmail.com"}, []string{h.signatures[0].domain})
	require.True(t, h.signatures[0].clear)
	require.Equal(t, 2, h.signatures[0].covers["from"], "folded")
	require.Zero(t, h.signatures[0].covers["content-type"])

	h, err = ReadHeader(compose("x", "FROM: =?iso-8859-1?q?J=FCrgen=2C_Gro=DF?= <Juergen@Acme.Example>", "subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\tund mehr", "To: a@b.example, Team: c@d.example, e@f.example;",
		"Cc: \"x, y\" <g@h.example>", "To: not an address", "Message-ID: <1@x>", "In-Reply-To: <0@x>"))
	require.NoError(t, err)
	require.Equal(t, "Jürgen, Groß", h.From.Name)
	require.Equal(t, "juergen@acme.example", h.From.Address)
	require.Equal(t, "Grüße und mehr", h.Subject)
	require.Equal(t, []string{"a@b.example", "c@d.example", "e@f.example", "g@h.example"}, h.To)
	require.Equal(t, "<0@x>", h.Conversation(), "Outlook may leave out References")

	long := "References:"
	for i := range 100 {
		long += fmt.Sprintf("\r\n <%d@x>", i)
	}
	h, err = ReadHeader(compose("x", "From: a@b.example", long, "In-Reply-To: <99@x>", "Message-ID: no id"))
	require.NoError(t, err)
	require.Len(t, h.References, maxReferences)
	require.Equal(t, []string{"<0@x>", "<81@x>", "<99@x>"}, []string{h.References[0], h.References[1], h.References[19]})
	require.Empty(t, h.MessageID)
}

func TestOneAuthor(t *testing.T) {
	for _, from := range []string{"From: ", "From: a@b.example, c@d.example", "From: A <a@b.example> <c@d.example>", "From: a", "From: a@", "From: undisclosed:;", "From: a@b.example\r\nFrom: c@d.example",
		"From: a@b.example\r\nfrom: c@d.example", "Sender: a@b.example", "From : a@b.example", "From: a@b.example\r\nFrom : c@d.example", "From: a@b.example\r\nFrom\x00: c@d.example", "From: a@b.example\r\nno header"} {
		_, err := ReadHeader(compose("x", from, "To: s@in.example.com"))
		require.Error(t, err, from)
	}
	for _, raw := range []string{"", "\n", "\r\n\r\n", " From: a@b.example\r\n\r\nx", "From: a@b.example\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n"} {
		_, err := ReadHeader([]byte(raw))
		require.Error(t, err, "%.20q", raw)
	}
	_, err := ReadHeader(fixture(t, "ses-injected-envelope.eml"))
	require.Equal(t, errFrom, err, "two From fields")
	h, err := ReadHeader([]byte("From: a@b.example"))
	require.NoError(t, err, "no body")
	require.Equal(t, "a@b.example", h.From.Address)
}

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const mailbox = "support@in.example.com"

// signed is the author's signature, of all that matters of a mail.
const signed = "DKIM-Signature: v=1; a=rsa-sha256; d=mail.acme.example; s=s; h=From : to:cc:date:\r\n\tsubject; bh=; b="

// letter is a mail of ann@acme.example, and what SES says of one that is.
func letter(t *testing.T, more ...string) (Header, Receipt) {
	t.Helper()
	headers := append([]string{"From: Ann <ann@acme.example>", "To: " + mailbox, "Date: Sun, 22 Nov 2026 11:59:00 +0000"}, more...)
	h, err := ReadHeader(compose("x", headers...))
	require.NoError(t, err)
	return h, Receipt{Sender: "ann@acme.example", From: []string{"Ann <ann@acme.example>"}, Recipients: []string{mailbox}, SPF: Pass, DKIM: Pass, DMARC: Pass, Spam: Pass, Virus: Pass}
}

func TestWhoseMailItIs(t *testing.T) {
	foreign := strings.Replace(signed, "mail.acme.example", "evil.example", 1)
	for name, c := range map[string]struct {
		headers []string
		change  func(*Receipt)
		ok      bool
	}{
		"as SES says":                     {nil, func(*Receipt) {}, true},
		"SPF and DMARC":                   {nil, func(r *Receipt) { r.DKIM = Gray }, true},
		"DKIM and DMARC":                  {[]string{signed}, func(r *Receipt) { r.SPF = Fail }, true},
		"DMARC by another's signature":    {[]string{foreign}, func(r *Receipt) { r.SPF = Fail }, false},
		"beside another's signature":      {[]string{signed, foreign}, func(r *Receipt) { r.SPF = Fail }, true},
		"SPF of a domain without DMARC":   {nil, func(r *Receipt) { r.DMARC, r.DKIM = Gray, Gray }, true},
		"of a subdomain of it":            {nil, func(r *Receipt) { r.DMARC, r.DKIM, r.Sender = Gray, Gray, "bounce-1@mail.acme.example" }, true},
		"DKIM of a domain without DMARC":  {[]string{signed}, func(r *Receipt) { r.DMARC, r.SPF, r.Sender = Gray, Gray, "x@esp.example" }, true},
		"nothing passed":                  {nil, func(r *Receipt) { r.SPF, r.DKIM, r.DMARC = Fail, Gray, Fail }, false},
		"SPF of another domain":           {nil, func(r *Receipt) { r.DKIM, r.DMARC, r.Sender = Gray, Gray, "a@evil.example" }, false},
		"SPF of a domain that ends alike": {nil, func(r *Receipt) { r.DKIM, r.DMARC, r.Sender = Gray, Gray, "a@evilacme.example" }, false},
		"SPF of the suffix":               {nil, func(r *Receipt) { r.DKIM, r.DMARC, r.Sender = Gray, Gray, "a@example" }, false},
		"an @ in the sender's local part": {nil, func(r *Receipt) { r.DKIM, r.DMARC, r.Sender = Gray, Gray, `"ann@acme.example"@evil.example` }, false},
		"no sender":                       {nil, func(r *Receipt) { r.DKIM, r.DMARC, r.Sender = Gray, Gray, "" }, false},
		"SPF, but DMARC has failed":       {nil, func(r *Receipt) { r.DMARC = Fail }, false},
		"DKIM of another domain":          {[]string{foreign}, func(r *Receipt) { r.DMARC, r.SPF = Gray, Gray }, false},
		"DKIM of one of two":              {[]string{signed, foreign}, func(r *Receipt) { r.DMARC, r.SPF = Gray, Gray }, false},
		"a signature of two domains":      {[]string{strings.Replace(signed, "s=s;", "s=s; d=evil.example;", 1)}, func(r *Receipt) { r.DMARC, r.SPF = Gray, Gray }, false},
		"a signature of none":             {[]string{"DKIM-Signature: v=1"}, func(r *Receipt) { r.DMARC, r.SPF = Gray, Gray }, false},
		"no signature":                    {nil, func(r *Receipt) { r.DMARC, r.SPF = Gray, Gray }, false},
		"a virus":                         {nil, func(r *Receipt) { r.Virus = Fail }, false},
		"spam":                            {nil, func(r *Receipt) { r.Spam = Fail }, false},
		"no scan":                         {nil, func(r *Receipt) { r.Spam, r.Virus = "", "" }, true},
		"no verdicts":                     {nil, func(r *Receipt) { r.SPF, r.DKIM, r.DMARC = "", "", "" }, false},
		"a verdict that nobody knows":     {nil, func(r *Receipt) { r.SPF, r.DMARC = "pass", "PASSED" }, false},
		"DMARC could not be asked":        {nil, func(r *Receipt) { r.DMARC = "PROCESSING_FAILED" }, false},
		"SES has read another author":     {nil, func(r *Receipt) { r.From = []string{"m@evil.example"} }, false},
		"SES has read none":               {nil, func(r *Receipt) { r.From = nil }, false},
		"an address in the name":          {nil, func(r *Receipt) { r.From = []string{"ann@acme.example <m@evil.example>"} }, false},
		"a name with a comma":             {nil, func(r *Receipt) { r.From = []string{"Example", "Ann <ANN@acme.example>"} }, true},
		"sent on, with its signature":     {[]string{"To: other@acme.example", signed}, func(r *Receipt) { r.SPF, r.Sender, r.Recipients = Pass, "m@evil.example", nil }, false},
		"forged results in the mail":      {[]string{"Authentication-Results: amazonses.com; spf=pass; dkim=pass header.i=@acme.example; dmarc=pass header.from=acme.example", "X-SES-Spam-Verdict: PASS", "Received-SPF: pass"}, func(r *Receipt) { r.SPF, r.DKIM, r.DMARC = Fail, Gray, Fail }, false},
	} {
		h, r := letter(t, c.headers...)
		c.change(&r)
		doubt := h.Doubt(r, mailbox, now)
		require.Equal(t, c.ok, doubt == "", "%s: %s", name, doubt)
		require.NotContains(t, doubt, "\n")
	}
}

// A signature holds for whoever sends a mail on. What Ann has once written to somebody else is not for the agent.
func TestAMailThatWasSentOn(t *testing.T) {
	h, r := letter(t, signed)
	r.SPF, r.Sender = Pass, "m@evil.example" // DMARC by DKIM
	require.Empty(t, h.Doubt(r, mailbox, now))
	require.Contains(t, h.Doubt(r, "other@in.example.com", now), "it was sent on")
	require.Contains(t, h.Doubt(r, mailbox, now.Add(15*24*time.Hour)), "it was sent on")
	require.Contains(t, h.Doubt(r, mailbox, now.Add(-48*time.Hour)), "it was sent on")
	r.Sender = "ann@acme.example"
	require.Empty(t, h.Doubt(r, "other@in.example.com", now), "a blind copy from her own server")
	h.To, h.Date = nil, time.Time{}
	require.Empty(t, h.Doubt(r, mailbox, now))
}

// What a signature does not cover anybody may have added to a mail that was somebody else's: the signature still holds.
func TestAMailWithMoreThanIsSigned(t *testing.T) {
	with := func(tags string) string { return "DKIM-Signature: v=1; d=acme.example; " + tags + "; bh=; b=" }
	doubt := func(verdict Verdict, headers ...string) string {
		h, err := ReadHeader(compose("x", headers...))
		require.NoError(t, err)
		return h.Doubt(Receipt{Sender: "m@evil.example", From: []string{"ann@acme.example"}, SPF: Pass, DKIM: Pass, DMARC: verdict}, mailbox, now)
	}
	from, date, toUs, ccUs, other := "From: ann@acme.example", "Date: Sun, 22 Nov 2026 11:59:00 +0000", "To: "+mailbox, "Cc: "+mailbox, "To: bob@acme.example"
	all := with("h=from:to:cc:subject:date")
	for name, c := range map[string]struct {
		headers []string
		ok      bool
	}{
		"all of it":                        {[]string{from, toUs, date, "Subject: x", all}, true},
		"a copy":                           {[]string{from, other, ccUs, date, all}, true},
		"more often than there are":        {[]string{from, toUs, date, with("h=from:from:to:to:date:date:subject:subject")}, true},
		"two signed To":                    {[]string{toUs, from, other, date, with("h=from:to:to:date")}, true},
		"one To on top":                    {[]string{toUs, from, other, date, all}, false},
		"in other letters":                 {[]string{"TO: " + mailbox, from, other, date, all}, false},
		"Cc":                               {[]string{ccUs, from, other, date, with("h=from:to:subject:date")}, false},
		"Cc is signed, To is not":          {[]string{toUs, from, "Cc: bob@acme.example", date, with("h=from:cc:subject:date")}, false},
		"a subject":                        {[]string{"Subject: x", from, toUs, date, with("h=from:to:date")}, false},
		"a second subject":                 {[]string{"Subject: x", from, toUs, date, "Subject: y", all}, false},
		"a date":                           {[]string{date, from, toUs, with("h=from:to:subject")}, false},
		"a second date":                    {[]string{date, from, toUs, "Date: Sun, 22 Nov 2020 11:59:00 +0000", all}, false},
		"an author":                        {[]string{from, toUs, date, with("h=to:date")}, false},
		"part of the body":                 {[]string{from, toUs, date, with("h=from:to:date; l=10")}, false},
		"two h":                            {[]string{from, toUs, date, with("h=from:date; h=from:to:date")}, false},
		"no h":                             {[]string{from, toUs, date, with("s=x")}, false},
		"a made-up signature beside it":    {[]string{with("h=from:to:to:date"), toUs, from, other, date, all}, false},
		"another's beside it":              {[]string{strings.Replace(with("h=from:to:to:date"), "acme", "evil", 1), toUs, from, other, date, all}, false},
		"a line that others see elsewhere": {[]string{toUs, from, "X: y\rTo: bob@acme.example", date, all}, false},
		"an end that others see elsewhere": {[]string{toUs, from, date, all, "X: y\n\nTo: bob@acme.example"}, false},
	} {
		require.Equal(t, c.ok, doubt(Pass, c.headers...) == "", name)
		if c.ok || !strings.Contains(name, "another's") {
			require.Equal(t, c.ok, doubt(Gray, c.headers...) == "", name)
		}
	}
	for _, name := range []string{"To", "Cc", "Date", "Subject"} { // what a signature of relaxed form takes for the field, and others do not
		_, err := ReadHeader(compose("x", from, toUs, name+" : bob@acme.example"))
		require.Error(t, err, name)
	}
}

// Captured events and mails, put together as SES does: what the mail says of itself changes nothing.
func TestCapturedMails(t *testing.T) {
	receipt := func(sender, from string, spf, dkim, dmarc Verdict) Receipt {
		return Receipt{Sender: sender, From: []string{from}, SPF: spf, DKIM: dkim, DMARC: dmarc, Spam: Pass, Virus: Pass}
	}
	h, err := ReadHeader(fixture(t, "ses-forged-results.eml"))
	require.NoError(t, err)
	require.Equal(t, "neither SPF nor DKIM says that it comes from bigcorp.example",
		h.Doubt(receipt("bounce@attacker.example", "The Boss <boss@bigcorp.example>", Pass, Pass, Fail), "reply+k3v9t2q8w5x1@in.example.com", now))
	require.Equal(t, "neither SPF nor DKIM says that it comes from bigcorp.example",
		h.Doubt(receipt("bounce@attacker.example", "The Boss <boss@bigcorp.example>", Pass, Pass, Gray), "reply+k3v9t2q8w5x1@in.example.com", now), "without DMARC")
	h, err = ReadHeader(fixture(t, "ses-dmarc-fail.eml"))
	require.NoError(t, err)
	require.NotEmpty(t, h.Doubt(receipt("joe@elsewhere.example", "Joe Bloggs <joe.bloggs@cantab.example>", Gray, Gray, Fail), mailbox, h.Date))
	h, err = ReadHeader(fixture(t, "ses-gmail-reply.eml"))
	require.NoError(t, err)
	require.Empty(t, h.Doubt(receipt("ann.example@gmail.com", "Ann Example <ann.example@gmail.com>", Pass, Pass, Pass), "reply+k3v9t2q8w5x1@in.example.com", h.Date))

	var e events.SimpleEmailEvent
	require.NoError(t, json.Unmarshal(fixture(t, "ses-lambda-event.json"), &e))
	ses := e.Records[0].SES
	h, err = ReadHeader(compose("x", "From: Amazon Web Services <aws@amazon.com>", "To: lambda@amazon.com", "Date: Mon, 5 Dec 2016 18:40:08 -0800"))
	require.NoError(t, err)
	require.Empty(t, h.Doubt(Receipt{Sender: ses.Mail.Source, From: ses.Mail.CommonHeaders.From, SPF: Verdict(ses.Receipt.SPFVerdict.Status), DMARC: Verdict(ses.Receipt.DMARCVerdict.Status)}, mailbox, now))
}

func TestMailsThatNobodyIsToAnswer(t *testing.T) {
	for name, sender := range map[string]string{"autoreply-auto-submitted.eml": "a@b.example", "autoreply-exchange-online.eml": "a@b.example", "autoreply-no-header.eml": "John.Smith@b.example",
		"autoreply-null-sender.eml": "", "bounce-ses.eml": "", "ses-unsigned-spf-only.eml": "no-reply@spam.example"} {
		h, err := ReadHeader(fixture(t, name))
		require.NoError(t, err, name)
		require.NotEmpty(t, h.Automatic(Receipt{Sender: sender}, domain), name)
	}
	sent := Receipt{Sender: "ann@acme.example"}
	for _, header := range []string{"Auto-Submitted: auto-replied", "Auto-Submitted: auto-generated; owner=x", "Auto-Submitted: no\r\nAuto-Submitted: auto-notified", "Precedence: Bulk", "precedence: list",
		"List-Id: <l.example>", "X-Auto-Response-Suppress: All", "X-Loop: x", "Content-Type: multipart/report; boundary=x", "Subject: Automatic reply: away", "Subject: AUTO: John is out"} {
		h, _ := letter(t, header)
		require.NotEmpty(t, h.Automatic(sent, domain), header)
	}
	for _, header := range []string{"X-Mailer: Mail", "Auto-Submitted: no", "auto-submitted: No (really)", "Precedence: first-class", "Subject: Auto: new tyres", "Subject: =?utf-8?q?automatic?="} {
		h, _ := letter(t, header)
		want := header == "auto-submitted: No (really)"
		require.Equal(t, want, h.Automatic(sent, domain) != "", header)
	}
	h, _ := letter(t)
	require.NotEmpty(t, h.Automatic(Receipt{Sender: "MAILER-DAEMON@acme.example"}, domain))
	require.NotEmpty(t, h.Automatic(Receipt{Sender: "x@IN.example.com"}, domain), "our own")
	require.NotEmpty(t, h.Automatic(sent, "acme.example"), "our own")
}
