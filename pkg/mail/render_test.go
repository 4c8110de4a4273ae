package mail_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/mail"
)

var at = time.Date(2026, 2, 28, 23, 59, 58, 0, time.FixedZone("", 3600))

func message() mail.Message {
	return mail.Message{From: mail.Address{Name: "Ada", Address: "ada+t1@agents.example.com"}, To: []string{"ann@acme.test"}, Subject: "Your report", Text: "Hello"}
}

// parsed is a mail as a receiver's program reads it.
type parsed struct {
	netmail.Header
	text, html string
	lines      []string // as they were carried
}

func parse(t *testing.T, raw []byte) parsed {
	t.Helper()
	p := parsed{lines: strings.Split(string(raw), "\r\n")}
	for _, line := range p.lines {
		if len(line) > 998 || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' }) {
			require.Fail(t, "a line of a mail is printable ASCII, and ends with CRLF", "%.1000q", line)
		}
	}
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	require.NoError(t, err)
	p.Header = m.Header
	for name, values := range m.Header {
		require.Len(t, values, 1, name)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	if kind != "multipart/alternative" {
		p.text = p.body(t, kind, params, m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return p
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []struct {
		kind string
		to   *string
	}{{"text/plain", &p.text}, {"text/html", &p.html}} {
		part, err := parts.NextRawPart()
		require.NoError(t, err)
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		require.NoError(t, err)
		require.Equal(t, want.kind, kind)
		*want.to = p.body(t, kind, params, part.Header.Get("Content-Transfer-Encoding"), part)
	}
	_, err = parts.NextRawPart()
	require.Equal(t, io.EOF, err)
	return p
}

func (p parsed) body(t *testing.T, kind string, params map[string]string, encoding string, r io.Reader) string {
	t.Helper()
	require.Contains(t, kind, "text/")
	require.Equal(t, map[string]string{"charset": "utf-8"}, params)
	require.Equal(t, "quoted-printable", encoding)
	text, err := io.ReadAll(quotedprintable.NewReader(r))
	require.NoError(t, err)
	return string(text)
}

func (p parsed) subject(t *testing.T) string {
	t.Helper()
	subject, err := new(mime.WordDecoder).DecodeHeader(p.Get("Subject"))
	require.NoError(t, err)
	return subject
}

func render(t *testing.T, m mail.Message) (mail.Envelope, parsed) {
	t.Helper()
	e, err := mail.Render(m, at)
	require.NoError(t, err)
	return e, parse(t, e.Raw)
}

func TestASimpleMailReadsAsOneExpects(t *testing.T) {
	e, p := render(t, message())
	require.Equal(t, "ada+t1@agents.example.com", e.From)
	require.Equal(t, []string{"ann@acme.test"}, e.To)
	require.Regexp(t, `^<[0-9a-f-]{36}@agents\.example\.com>$`, e.ID)
	require.Equal(t, strings.Split(`From: "Ada" <ada+t1@agents.example.com>
To: ann@acme.test
Subject: Your report
Date: Sat, 28 Feb 2026 22:59:58 +0000
Message-ID: `+e.ID+`
Auto-Submitted: auto-generated
X-Auto-Response-Suppress: OOF, AutoReply
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Hello
`, "\n"), p.lines)
	date, err := p.Date()
	require.NoError(t, err)
	require.True(t, at.Equal(date))
}

func TestAReplyKeepsItsPlaceInTheConversation(t *testing.T) {
	m := message()
	m.ReplyTo, m.InReplyTo, m.References = "reply+abc@mail.example.com", "<3@x>", []string{"<1@x>", "<2@x>"}
	_, p := render(t, m)
	require.Equal(t, "auto-replied", p.Get("Auto-Submitted"), "RFC 3834: whoever answers by itself answers no such mail")
	require.Equal(t, "<3@x>", p.Get("In-Reply-To"))
	require.Equal(t, "<1@x> <2@x> <3@x>", p.Get("References"))
	require.Equal(t, "reply+abc@mail.example.com", p.Get("Reply-To"))
	m.References = append(m.References, "<3@x>")
	_, p = render(t, m)
	require.Equal(t, "<1@x> <2@x> <3@x>", p.Get("References"), "once")
	m.References = []string{"<first@x>"}
	for range 1000 {
		m.References = append(m.References, "<"+strings.Repeat("y", 200)+"@x>")
		m.References = append(m.References, "<"+strings.Repeat("z", 200)+"@x>")
	}
	_, p = render(t, m)
	ids := strings.Fields(p.Get("References"))
	require.Len(t, ids, 32)
	require.Equal(t, []string{"<first@x>", "<3@x>"}, []string{ids[0], ids[31]}, "the first and the last ones")
}

func TestSubjectsAndNamesInAnyLetters(t *testing.T) {
	for _, text := range []string{"", "a", "Grüße aus Köln", "日本語の件名はとても長いので折り返される必要があります。日本語の件名はとても長いので折り返される必要があります。", strings.Repeat("👩‍👩‍👧‍👦", 35),
		strings.Repeat("word ", 150) + "end", strings.Repeat("w", 900), "  spaces  in it  ", "=?utf-8?q?=41?= is no encoded word", `"quoted" \ and (commented) <a@b>, x: y;`, "é" + strings.Repeat("x", 200) + "é"} {
		m := message()
		m.Subject = text
		_, p := render(t, m)
		require.Equal(t, text, p.subject(t))
		for _, line := range p.lines {
			require.LessOrEqual(t, len(line), 76, line)
		}
		if len(text) <= mail.MaxName {
			m.From.Name = text
			_, p = render(t, m)
			from, err := p.AddressList("From")
			require.NoError(t, err)
			require.Equal(t, []*netmail.Address{{Name: text, Address: m.From.Address}}, from)
		}
	}
}

func TestTextsArriveAsTheyAre(t *testing.T) {
	for _, text := range []string{"a\n", ".\n..\n.hidden\n", "\n\nFrom here\n--\n--boundary--\n", "a = b == c=\n", "trailing spaces   \ntab\t\n", strings.Repeat("x", 5000) + "\n", strings.Repeat(".", 500) + "\n",
		strings.Repeat("длинная строка ", 200) + "\n", "👋\x00\x7f\n", "Content-Type: text/html\n\n<b>\n"} {
		for _, html := range []string{"", "<p>" + text + "</p>\n"} {
			m := message()
			m.Text, m.HTML = text, html
			_, p := render(t, m)
			require.Equal(t, strings.ReplaceAll(text, "\n", "\r\n"), p.text)
			require.Equal(t, strings.ReplaceAll(html, "\n", "\r\n"), p.html)
			for _, line := range p.lines {
				require.LessOrEqual(t, len(line), 90, "the boundary's line is the longest")
			}
		}
	}
	m := message()
	m.Text = "mac\rdos\r\nunix\nno end"
	_, p := render(t, m)
	require.Equal(t, "mac\r\ndos\r\nunix\r\nno end\r\n", p.text)
}

func TestManyRecipients(t *testing.T) {
	m := message()
	m.To = nil
	for i := range mail.MaxRecipients {
		m.To = append(m.To, strings.Repeat("l", 60)+"@"+strings.Repeat("d", i+1)+".example.com")
	}
	_, p := render(t, m)
	to, err := p.AddressList("To")
	require.NoError(t, err)
	require.Len(t, to, mail.MaxRecipients)
	for i := range to {
		require.Equal(t, m.To[i], to[i].Address)
	}
}

func TestTwoMailsHaveTwoIDs(t *testing.T) {
	first, _ := render(t, message())
	second, _ := render(t, message())
	require.NotEqual(t, first.ID, second.ID)
}
