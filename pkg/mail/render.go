package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

const (
	lineLength    = 76 // RFC 2047 §2: of a line with encoded words
	maxReferences = 32 // of a long conversation its first and its last ones, by which programs still find their thread
)

// Render checks a message and makes its text: RFC 5322, header fields in other letters by RFC 2047, bodies as UTF-8 in quoted-printable (RFC 2045),
// text and HTML as multipart/alternative. It gets a Message-ID of its own at the sender's domain.
func Render(m Message, at time.Time) (Envelope, error) {
	if err := m.check(); err != nil {
		return Envelope{}, err
	}
	_, host, _ := strings.Cut(m.From.Address, "@")
	e := Envelope{ID: "<" + ident.New() + "@" + host + ">", From: m.From.Address, To: m.To}
	var b bytes.Buffer
	from := "<" + m.From.Address + ">"
	if m.From.Name != "" {
		from = phrase(m.From.Name) + " " + from
	}
	writeHeader(&b, "From", from)
	writeHeader(&b, "To", strings.Join(m.To, ", "))
	if m.ReplyTo != "" {
		writeHeader(&b, "Reply-To", m.ReplyTo)
	}
	writeHeader(&b, "Subject", unstructured(m.Subject))
	writeHeader(&b, "Date", at.UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	writeHeader(&b, "Message-ID", e.ID)
	answer := "auto-generated"
	if m.InReplyTo != "" {
		writeHeader(&b, "In-Reply-To", m.InReplyTo)
		answer = "auto-replied"
	}
	if ids := m.references(); len(ids) > 0 {
		writeHeader(&b, "References", strings.Join(ids, " "))
	}
	writeHeader(&b, "Auto-Submitted", answer)
	writeHeader(&b, "X-Auto-Response-Suppress", "OOF, AutoReply")
	writeHeader(&b, "MIME-Version", "1.0")
	if err := m.writeBody(&b); err != nil {
		return Envelope{}, err
	}
	if b.Len() > MaxSize {
		return Envelope{}, tooLarge("a mail has at most %d bytes as it is sent, this one has %d", MaxSize, b.Len())
	}
	e.Raw = b.Bytes()
	return e, nil
}

// references are those before this mail and the one that it answers.
func (m Message) references() []string {
	var ids []string
	for _, id := range append(m.References[:len(m.References):len(m.References)], m.InReplyTo) {
		if id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	if over := len(ids) - maxReferences; over > 0 {
		ids = append(ids[:1:1], ids[1+over:]...)
	}
	return ids
}

func (m Message) writeBody(b *bytes.Buffer) error {
	text := textproto.MIMEHeader{"Content-Type": {"text/plain; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"}}
	if m.HTML == "" {
		for _, name := range []string{"Content-Type", "Content-Transfer-Encoding"} {
			writeHeader(b, name, text.Get(name))
		}
		b.WriteString("\r\n")
		return writeText(b, m.Text)
	}
	parts := multipart.NewWriter(b)
	writeHeader(b, "Content-Type", "multipart/alternative; boundary="+parts.Boundary())
	b.WriteString("\r\n")
	html := textproto.MIMEHeader{"Content-Type": {"text/html; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"}}
	for _, part := range []struct {
		header textproto.MIMEHeader
		body   string
	}{{text, m.Text}, {html, m.HTML}} { // the best last, RFC 2046 §5.1.4
		w, err := parts.CreatePart(part.header)
		if err != nil {
			return err
		}
		if err := writeText(w, part.body); err != nil {
			return err
		}
	}
	return parts.Close()
}

// writeText ends the text with a line end, as files and servers expect.
func writeText(w io.Writer, text string) error {
	q := quotedprintable.NewWriter(w)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := io.WriteString(q, text); err != nil {
		return err
	}
	return q.Close()
}

// writeHeader writes a field, folded where a line would be too long and there is a space.
func writeHeader(b *bytes.Buffer, name, value string) {
	b.WriteString(name + ":")
	used, first := len(name)+1, true
	for word := range strings.SplitSeq(value, " ") {
		if !first && used+1+len(word) > lineLength {
			b.WriteString("\r\n")
			used = 0
		}
		b.WriteString(" " + word)
		used, first = used+1+len(word), false
	}
	b.WriteString("\r\n")
}

// phrase is a name as it stands before an address.
func phrase(s string) string {
	if !plain(s) {
		return encodedWords(s)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func unstructured(s string) string {
	if s == "" || plain(s) {
		return s
	}
	return encodedWords(s)
}

// plain reports whether a text may stand in a header as it is: printable ASCII that reads the same when it was folded, and that nobody takes for
// encoded words.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	for word := range strings.SplitSeq(s, " ") {
		if word == "" || len(word) > lineLength-12 {
			return false
		}
	}
	return !strings.Contains(s, "=?")
}

// encodedWords writes a text by RFC 2047: words that fit in a line behind a field's name, none ending within a rune; spaces between them are not part
// of the text.
func encodedWords(s string) string {
	const most = 39 // bytes: 52 characters of base64
	var words []string
	for len(s) > 0 {
		end := min(most, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:end]))+"?=")
		s = s[end:]
	}
	return strings.Join(words, " ")
}
