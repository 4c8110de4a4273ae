package inbound

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jhillyerd/enmime/v2"
	"github.com/jhillyerd/enmime/v2/mediatype"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Content is what a mail's writer says.
type Content struct {
	Text    string   // all of it
	Own     string   // what he has written himself: without the mails before it
	LeftOut []string // the files that came with it, by name
}

var (
	errTooLarge = fault.Invalid("a mail has at most %d MiB", MaxSize>>20)
	errParts    = fault.Invalid("the mail has more parts than are read")
	errMIME     = fault.Invalid("the mail's parts cannot be read")
)

// Read reads a mail's body. What cannot be read is a fault.ValidationError.
func Read(raw []byte) (Content, error) {
	if len(raw) > MaxSize {
		return Content{}, errTooLarge
	}
	b := bounds{raw: raw}
	parser := enmime.NewParser(enmime.SetCustomParseMediaType(b.mediaType), enmime.SkipMalformedParts(true), enmime.MultipartWOBoundaryAsSinglePart(true),
		enmime.SetReadPartErrorPolicy(enmime.AllowCorruptTextPartErrorPolicy), enmime.MaxStoredPartErrors(10), enmime.DisableTextConversion(true), enmime.DisableCharacterDetection(true))
	mail, err := parser.ReadEnvelope(bytes.NewReader(raw))
	switch {
	case b.over != nil:
		return Content{}, b.over
	case err != nil:
		return Content{}, errMIME
	}
	said := clean(mail.Text)
	if strings.TrimSpace(said) == "" {
		said = clean(fromHTML(mail.HTML))
	}
	return Content{Text: strings.TrimSpace(said), Own: trim(said), LeftOut: leftOut(mail)}, nil
}

// bounds refuses a mail whose parts are too many or too deep, as the parser comes upon each: what it takes for a boundary is what counts.
type bounds struct {
	raw   []byte
	asked int // how often it came upon a multipart: twice upon each, four times upon the mail's own
	over  error
}

var errStop = errors.New("inbound: no further")

// mediaType reads a Content-Type or a Content-Disposition.
func (b *bounds) mediaType(field string) (kind string, params map[string]string, invalid []string, err error) {
	if b.over != nil {
		return "", nil, nil, errStop
	}
	if len(field) > maxField {
		b.over = errMIME
		return "", nil, nil, errStop
	}
	kind, params, invalid, err = mediatype.Parse(field)
	if err != nil {
		return kind, params, invalid, err
	}
	if boundary := params["boundary"]; boundary != "" {
		b.asked++
		if b.asked > 2*maxNested+2 || bytes.Count(b.raw, []byte("--"+boundary)) > maxParts {
			b.over = errParts
			return "", nil, nil, errStop
		}
	}
	if strings.HasPrefix(kind, "text/") && params["charset"] == "" { // else it is guessed from all of the text
		params["charset"] = "utf-8"
	}
	return kind, params, invalid, nil
}

const maxFiles = 20 // that are named

// leftOut are the names of the parts that are not the mail's text.
func leftOut(mail *enmime.Envelope) (names []string) {
	seen := map[*enmime.Part]bool{}
	for _, parts := range [][]*enmime.Part{mail.Attachments, mail.Inlines, mail.OtherParts} {
		for _, part := range parts {
			text := part.Disposition != "attachment" && (part.ContentType == "text/plain" || part.ContentType == "text/html" && part.FileName == "")
			if seen[part] || text {
				continue
			}
			seen[part] = true
			name := line(part.FileName, 100)
			if name == "" {
				name = line(part.ContentType, 100)
			}
			names = append(names, name)
		}
	}
	return names
}

// Words is a text of the mail's with the names of what was left out behind it, in so many bytes at the most.
func (c Content) Words(text string, most int) string {
	note := ""
	if n := len(c.LeftOut); n > 0 {
		names := strings.Join(c.LeftOut[:min(n, maxFiles)], ", ")
		if n > maxFiles {
			names += ", …"
		}
		attachments := "1 attachment was"
		if n > 1 {
			attachments = fmt.Sprintf("%d attachments were", n)
		}
		note = "[" + attachments + " left out: " + names + "]"
	}
	if text == "" {
		return cut(note, most)
	}
	if note != "" {
		note = "\n\n" + note
	}
	if room := most - len(note); room > 0 {
		return cut(text, room) + note
	}
	return cut(text, most)
}

// clean is a text with one kind of line ends, and without what no text has. It is no longer than what is looked at.
func clean(s string) string {
	s = strings.ToValidUTF8(cut(s, maxText), "\uFFFD")
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\u00a0", " ", "\ufeff", "", "\u200b", "").Replace(s)
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, s)
}

// cut is the beginning of a text, with … at its end if that is not all.
func cut(s string, most int) string {
	const more = "…"
	if len(s) <= most {
		return s
	}
	end := max(most-len(more), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if most < len(more) {
		return ""
	}
	return s[:end] + more
}
