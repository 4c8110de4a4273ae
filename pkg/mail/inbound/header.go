package inbound

import (
	"bytes"
	"io"
	"mime"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Header is what a mail says of itself: all of it its sender's word.
type Header struct {
	From       netmail.Address // the one author; the address in lower case
	To         []string        // and Cc: plain addresses in lower case
	Subject    string
	Date       time.Time // zero: none that can be read
	MessageID  string    // in its angle brackets; "": none that can be read
	References []string  // of the mails before it in its conversation, oldest first

	automatic  string         // why no person has written it
	to, cc     []string       // as To, each by itself
	signatures []signature    // DKIM's
	times      map[string]int // how many fields there are of each name, in lower case
	mixed      bool           // not everybody reads the same lines
}

var (
	errHeader = fault.Invalid("the mail has no header that can be read")
	errFrom   = fault.Invalid("the mail does not have exactly one author")
)

// ReadHeader reads the beginning of a mail. A mail with no author, or with several, is a fault.ValidationError.
func ReadHeader(raw []byte) (Header, error) {
	fields, mixedEnds, err := fieldsOf(raw)
	if err != nil {
		return Header{}, err
	}
	h := Header{automatic: automatic(fields), signatures: signatures(fields["Dkim-Signature"]), times: times(fields), mixed: mixedEnds}
	from := fields["From"]
	if len(from) != 1 {
		return h, errFrom
	}
	author, err := addresses.Parse(from[0])
	if err != nil || domainOf(author.Address) == "" {
		return h, errFrom
	}
	h.From = netmail.Address{Name: line(author.Name, 200), Address: strings.ToLower(author.Address)}
	h.to, h.cc = recipients(fields["To"]), recipients(fields["Cc"])
	h.To = slices.Concat(h.to, h.cc)
	h.Subject = subject(first(fields, "Subject"))
	h.Date, _ = netmail.ParseDate(first(fields, "Date")) // else it is zero
	h.MessageID = messageID.FindString(first(fields, "Message-Id"))
	h.References = references(fields)
	return h, nil
}

// telling are the fields that say whose mail it is.
var telling = []string{"From", "To", "Cc", "Date", "Subject", "Dkim-Signature"}

// fieldsOf are the fields of the header, as they are. A name that programs may or may not read as one of those that matter is refused, for the mail service
// and this package must have read the same. mixedEnds: they may not have.
func fieldsOf(raw []byte) (fields netmail.Header, mixedEnds bool, err error) {
	end := bytes.Index(raw, []byte("\n\r\n"))
	if bare := bytes.Index(raw, []byte("\n\n")); end < 0 || bare >= 0 && bare < end {
		end = bare
	}
	if end < 0 {
		end = len(raw) - 1
	}
	if end < 0 || end > maxHeader {
		return nil, false, errHeader
	}
	m, err := netmail.ReadMessage(bytes.NewReader(append(bytes.Clone(raw[:end+1]), "\r\n"...)))
	if err != nil {
		return nil, false, errHeader
	}
	for name := range m.Header {
		plain := textproto.CanonicalMIMEHeaderKey(strings.TrimFunc(name, func(c rune) bool { return c <= ' ' || !unicode.IsPrint(c) }))
		if plain != name && slices.Contains(telling, plain) {
			return nil, false, errHeader
		}
	}
	return m.Header, mixed(raw[:end+1]), nil
}

func first(fields netmail.Header, name string) string {
	if values := fields[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

var words = &mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return input, nil // a name in unknown letters is no reason to refuse a mail
	}
	return encoding.NewDecoder().Reader(input), nil
}}

var addresses = netmail.AddressParser{WordDecoder: words}

func recipients(lists []string) (all []string) {
	for _, list := range lists {
		parsed, err := addresses.ParseList(list)
		if err != nil {
			continue
		}
		for _, a := range parsed[:min(len(parsed), 500)] {
			all = append(all, strings.ToLower(a.Address))
		}
	}
	return all
}

func subject(field string) string {
	decoded, err := words.DecodeHeader(field)
	if err != nil {
		decoded = field
	}
	return line(decoded, 500)
}

// line is a text on one line, cut to so many bytes.
func line(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	return cut(s, most)
}

var messageID = regexp.MustCompile(`<[!-;=?-~]{1,500}>`)

const maxReferences = 20 // the first one and the last ones

// references are the mails before this one: References, or where a program leaves them out what it answers.
func references(fields netmail.Header) []string {
	field := first(fields, "References")
	ids := messageID.FindAllString(field[:min(len(field), 64<<10)], -1)
	if answers := messageID.FindString(first(fields, "In-Reply-To")); answers != "" && !slices.Contains(ids, answers) {
		ids = append(ids, answers)
	}
	if over := len(ids) - maxReferences; over > 0 {
		ids = append(ids[:1:1], ids[1+over:]...)
	}
	return ids
}

// Conversation is the mail that the conversation began with, as far as programs say it: its Message-ID. A mail without one is its own.
func (h Header) Conversation() string {
	if len(h.References) > 0 {
		return h.References[0]
	}
	return h.MessageID
}
