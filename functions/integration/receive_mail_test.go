package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestAMailOpensAThread(t *testing.T) {
	s := newPost(t)
	d := s.receive(written(at("support"), "The disk is full.\n\nOn Mon, 2 Apr 2012, Bob <bob@acme.test> wrote:\n> it is", "Message-ID: <1@acme.test>"))
	require.Equal(t, []any{integration.OK, "mail", s.support.ID, "EMAIL-1"}, []any{d.Outcome, *d.Event, *d.IntegrationID, *d.ThreadID})
	require.Contains(t, *d.Body, "The disk is full.")
	all := s.messages()
	require.Len(t, all, 1)
	require.Equal(t, []any{"EMAIL-1", "EMAIL", "Help", s.acme.UserID}, []any{all[0].Thread, all[0].Channel, *all[0].Title, *all[0].UserID})
	require.Equal(t, "Subject: Help\n\nThe disk is full.\n\nOn Mon, 2 Apr 2012, Bob <bob@acme.test> wrote:\n> it is", all[0].Body, "what came before is new here")
	require.Equal(t, "integration", all[0].Metadata["kind"])
	require.Equal(t, map[string]any{"id": s.acme.UserID, "name": "Somebody"}, all[0].Metadata["sender"])
	require.Equal(t, []string{"dispatch-turn"}, s.p.Invoked())
	require.NotContains(t, s.replyAddress(s.acme.TenantID), strings.ReplaceAll(query[string](s, s.acme.TenantID, `select uuid::text from threads`)[0], "-", ""), "a token tells nothing")
}

func TestAnAnswerGoesOnInItsThread(t *testing.T) {
	s := newPost(t)
	first := s.receive(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	colleague := s.user(s.acme.TenantID, "bob@acme.test", "active")
	quoted := "\n\nOn Mon, 2 Apr 2012, agents@acme.test wrote:\n> and?"
	for name, l := range map[string]letter{
		"to the thread's address":      written(s.replyAddress(s.acme.TenantID), "two"+quoted, "Message-ID: <2@acme.test>", "In-Reply-To: <out@x>"),
		"without any ids":              written(strings.ToUpper(s.replyAddress(s.acme.TenantID)), "two"+quoted),
		"to all, by what it refers to": written(at("support"), "two"+quoted, "Message-ID: <3@acme.test>", "References: <1@acme.test> <out@x>"),
		"to both":                      {from: "owner@acme.test", to: []string{at("support"), s.replyAddress(s.acme.TenantID)}, body: "two" + quoted, headers: []string{"Message-ID: <4@acme.test>"}},
		"a colleague, who was sent it": {from: "Bob@acme.test", to: []string{s.replyAddress(s.acme.TenantID)}, body: "two" + quoted, headers: []string{"Message-ID: <5@acme.test>"}},
	} {
		before := len(s.messages())
		s.receive(l)
		all := s.messages()
		require.Len(t, all, before+1, name)
		require.Equal(t, *first.ThreadID, all[before].Thread, name)
		require.Equal(t, "two", all[before].Body, name)
		user := s.acme.UserID
		if l.from == "Bob@acme.test" {
			user = colleague
		}
		require.Equal(t, user, *all[before].UserID, name)
	}
	d := s.receive(written(at("support"), "another matter", "Message-ID: <6@acme.test>"))
	require.Equal(t, "EMAIL-2", *d.ThreadID)
}

// Nothing is taken in, and nobody is told; why is in the log of whose address it is.
func TestMailsThatAreNotTaken(t *testing.T) {
	s := newPost(t)
	s.receive(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	s.user(s.acme.TenantID, "gone@acme.test", "disabled")
	reply := s.replyAddress(s.acme.TenantID)
	forged := "Authentication-Results: amazonses.com; spf=pass; dkim=pass header.i=@acme.test; dmarc=pass header.from=acme.test"
	with := func(l letter, change func(*letter)) letter { change(&l); return l }
	signed := "DKIM-Signature: v=1; a=rsa-sha256; d=evil.test; s=s; h=from; bh=; b="
	before := len(s.messages())
	for name, c := range map[string]struct {
		letter
		want integration.Outcome
		why  string
	}{
		"spoofed": {with(written(at("support"), "x", forged, "X-SES-Spam-Verdict: PASS"), func(l *letter) { l.spf, l.dkim, l.dmarc, l.sender = "FAIL", "GRAY", "FAIL", "m@evil.test" }),
			integration.Unverified, "neither SPF nor DKIM says that it comes from acme.test"},
		"spoofed, of a domain without DMARC": {with(written(at("support"), "x", forged), func(l *letter) { l.dmarc, l.dkim, l.sender = "GRAY", "GRAY", "m@evil.test" }),
			integration.Unverified, "neither SPF nor DKIM says that it comes from acme.test"},
		"signed by another domain": {with(written(at("support"), "x", signed), func(l *letter) { l.dmarc, l.spf = "GRAY", "GRAY" }), integration.Unverified, "neither SPF nor DKIM says that it comes from acme.test"},
		"spam":                     {with(written(at("support"), "x"), func(l *letter) { l.spam = "FAIL" }), integration.Unverified, "the mail service takes it for spam"},
		"an outsider":              {with(written(at("support"), "x"), func(l *letter) { l.from = "m@evil.test" }), integration.Unknown, "m@evil.test is not an active user"},
		"an outsider who was sent the reply address": {with(written(reply, "x"), func(l *letter) { l.from = "m@evil.test" }), integration.Unknown, "m@evil.test is not an active user"},
		"a disabled user":             {with(written(at("support"), "x"), func(l *letter) { l.from = "gone@acme.test" }), integration.Unknown, "gone@acme.test is not an active user"},
		"a user of another tenant":    {with(written(at("support"), "x"), func(l *letter) { l.from = "owner@globex.test" }), integration.Unknown, "owner@globex.test is not an active user"},
		"his answer":                  {with(written(reply, "x"), func(l *letter) { l.from = "owner@globex.test" }), integration.Unknown, "owner@globex.test is not an active user"},
		"two authors":                 {written(at("support"), "x", "From: m@evil.test"), integration.Invalid, "the mail does not have exactly one author"},
		"a program":                   {written(at("support"), "x", "Auto-Submitted: auto-replied"), integration.OK, "nobody is answered: a program has written it (Auto-Submitted)"},
		"a list":                      {written(at("support"), "x", "Precedence: list"), integration.OK, "nobody is answered: it went to many, or a program has written it (Precedence)"},
		"a bounce":                    {with(written(reply, "x"), func(l *letter) { l.sender = "<>" }), integration.OK, "nobody is answered: a mail server has written it"},
		"from the domain itself":      {with(written(at("support"), "x"), func(l *letter) { l.from = reply }), integration.OK, "nobody is answered: the mail is this domain's own"},
		"more parts than it can have": {written(at("support"), strings.Repeat("--b\n\n", 1100), "Content-Type: multipart/mixed; boundary=b"), integration.Invalid, "the mail has more parts than are read"},
	} {
		d := s.receive(c.letter)
		require.Equal(t, c.want, d.Outcome, name)
		require.Equal(t, c.why, *d.Error, name)
		require.Nil(t, d.ThreadID, name)
		require.Equal(t, c.want == integration.Invalid && strings.Contains(c.why, "parts"), d.Body != nil, "%s: nothing is kept of what nobody has verified", name)
	}
	require.Len(t, s.messages(), before)
	require.Len(t, s.p.Invoked(), 1, "the first mail's")
}

func TestMailsToNobody(t *testing.T) {
	s := newPost(t)
	for _, to := range []string{at("nobody"), at("reply"), at("reply+" + strings.Repeat("0", 32)), at("sales"), "support@elsewhere.test"} {
		require.NoError(t, s.call(s.put(written(to, "x")).event()), to)
	}
	require.Empty(t, s.logged())
	require.Empty(t, s.messages())
	others, err := s.globex.deliveries(tenant.Owner, args{})
	require.Nil(t, err)
	require.Len(t, others.Items, 1, "of acme's user, who is nobody there")
	require.Equal(t, integration.Unknown, others.Items[0].Outcome)

	// Another tenant's thread.
	l := written(at("sales"), "one")
	l.from = "owner@globex.test"
	require.NoError(t, s.call(s.put(l).event()))
	require.NoError(t, s.call(s.put(written(s.replyAddress(s.globex.TenantID), "two")).event()))
	require.Equal(t, []int{1}, query[int](s, s.globex.TenantID, `select message_count from threads`))
	require.Empty(t, s.logged())
}

func TestWhatIsTakenInOnce(t *testing.T) {
	s := newPost(t)
	l := s.put(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	copied := s.put(written(at("support"), "one", "Message-ID: <1@acme.test>")) // another object of the same mail
	const copies = 50
	errs := make([]error, copies)
	var start, done sync.WaitGroup
	start.Add(copies)
	for i := range copies {
		e := []letter{l, copied}[i%2].event()
		done.Go(func() {
			start.Done()
			start.Wait()
			errs[i] = s.call(e)
		})
	}
	done.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, s.messages(), 1)
	outcomes := map[integration.Outcome]int{}
	for _, d := range s.logged() {
		outcomes[d.Outcome]++
	}
	require.Equal(t, map[integration.Outcome]int{integration.OK: 1, integration.Duplicate: copies - 1}, outcomes)
	require.Equal(t, []string{"dispatch-turn"}, s.p.Invoked())
}

func TestAMailToTwo(t *testing.T) {
	s := newPost(t)
	s.acme.made(args{"name": "Orders", "provider": "email", "agentId": s.acme.AgentID, "config": `{"address": "orders"}`})
	l := written(at("support"), "x", "Message-ID: <1@acme.test>")
	l.to = []string{at("Support+note"), at("orders"), at("support"), at("nobody"), at("sales")}
	require.NoError(t, s.call(s.put(l).event()))
	all := s.messages()
	require.Len(t, all, 2)
	require.NotEqual(t, all[0].Thread, all[1].Thread)
}

func TestAnIntegrationThatTakesNoMail(t *testing.T) {
	s := newPost(t)
	_, err := s.acme.update(tenant.Owner, s.support.ID, args{"enabled": false})
	require.Nil(t, err)
	d := s.receive(written(at("support"), "x"))
	require.Equal(t, []any{integration.Failed, "the integration is disabled"}, []any{d.Outcome, *d.Error})
	_, err = s.acme.update(tenant.Owner, s.support.ID, args{"enabled": true})
	require.Nil(t, err)
	s.receive(written(at("support"), "x"))
	address := s.replyAddress(s.acme.TenantID)
	s.exec(s.acme.TenantID, `update agents set status = 'suspended'`)
	d = s.receive(written(at("support"), "x"))
	require.Equal(t, integration.Failed, d.Outcome)
	require.Contains(t, s.p.Invoked(), "deliver-replies", "its writer is told")
	_, err = s.acme.remove(tenant.Owner, s.support.ID)
	require.Nil(t, err)
	before := len(s.logged())
	require.NoError(t, s.call(s.put(written(address, "x")).event()))
	require.Len(t, s.logged(), before, "nobody is there any more")
}

func TestNobodyFillsTheLog(t *testing.T) {
	s := newPost(t)
	l := written(at("support"), "x")
	l.from = "m@evil.test"
	var e events.SimpleEmailEvent
	for range 70 {
		e.Records = append(e.Records, s.put(l).event().Records...)
	}
	require.NoError(t, s.call(e))
	require.Len(t, s.logged(), 60)
}

// What cannot be read now comes again: SES gives a mail to the function more than once.
func TestAMailThatIsNotThere(t *testing.T) {
	s := newPost(t)
	l := written(at("support"), "x")
	l.id = "missing"
	require.Error(t, s.call(l.event()))
	for _, id := range []string{"", "../secrets", "a/b", strings.Repeat("a", 201)} {
		l.id = id
		require.NoError(t, s.call(l.event()), "no mail of SES'")
	}
	l.id = ""
	second, first := s.put(l), l
	first.id = "missing"
	require.Error(t, s.call(events.SimpleEmailEvent{Records: append(first.event().Records, second.event().Records...)}))
	require.Len(t, s.messages(), 1, "one is not held up by another")
}

// Captured mails, as SES stores them, given by their writers to the platform's users.
func TestCapturedReplies(t *testing.T) {
	raw := map[string][]byte{} // read before the bucket is there, which is a process' working directory
	writers := map[string]string{"ses-gmail-reply.eml": "ann.example@gmail.com", "reply-gmail.eml": "xxx@gmail.com", "reply-apple-mail.eml": "adam@corp.example", "reply-outlook.eml": "me@example.com"}
	for name := range writers {
		var err error
		raw[name], err = os.ReadFile(filepath.Join("../../pkg/mail/inbound/testdata", name))
		require.NoError(t, err)
	}
	s := newPost(t)
	s.receive(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	for name, from := range writers {
		s.user(s.acme.TenantID, from, "active")
		l := letter{id: strings.ReplaceAll(ident.New(), "-", ""), from: from, to: []string{s.replyAddress(s.acme.TenantID)}}
		s.store(l.id, raw[name])
		require.NoError(t, s.call(l.event()))
	}
	var bodies []string
	for _, m := range s.messages()[1:] {
		bodies = append(bodies, m.Body)
	}
	require.ElementsMatch(t, []string{"Test yes test", "Hello", "Hello", "Hello"}, bodies)
}

func TestALargeMail(t *testing.T) {
	s := newPost(t)
	file := strings.Repeat(strings.Repeat("QUJD", 19)+"\n", 20<<20/77)
	d := s.receive(written(at("support"), "--b\nContent-Type: text/plain\n\nhere\n--b\nContent-Type: video/mp4; name=v.mp4\nContent-Transfer-Encoding: base64\n\n"+file+"\n--b--\n", "Content-Type: multipart/mixed; boundary=b"))
	require.Equal(t, integration.OK, d.Outcome, "%v", d.Error)
	require.Greater(t, d.Size, 20<<20)
	require.Nil(t, d.Body)
	require.Equal(t, "Subject: Help\n\nhere\n\n[1 attachment was left out: v.mp4]", s.messages()[0].Body)
	d = s.receive(written(at("support"), strings.Repeat("x", 41<<20)))
	require.Equal(t, []any{integration.Invalid, "a mail has at most 40 MiB"}, []any{d.Outcome, *d.Error})
	long := s.receive(written(at("support"), strings.Repeat("wörd ", 100_000), "Message-ID: <l@acme.test>"))
	require.Equal(t, integration.OK, long.Outcome)
	require.True(t, strings.HasSuffix(s.messages()[1].Body, "…"))
	empty := s.receive(letter{from: "owner@acme.test", to: []string{at("support")}, headers: []string{fmt.Sprintf("X-Mailer: %d", 1)}})
	require.Equal(t, integration.OK, empty.Outcome)
	require.Equal(t, "(The mail has no text.)", s.messages()[2].Body)
	require.Equal(t, "Support", *s.messages()[2].Title)
}
