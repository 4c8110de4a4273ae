package mail

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Addresses of RFC 5321 without quoted local parts and address literals, which few servers take and which people do not have; message ids of any
// text that stays one word on one line, for other programs' ids are not all well-formed. Compiled when a mail is sent: all functions link this.
var (
	localPart = compiled("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$")
	domain    = compiled(`^(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	messageID = compiled(`^<[!-;=?-~]{1,500}>$`)
)

func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// checkAddress refuses what is not a plain address that mail can be sent to.
func checkAddress(field, address string) error {
	local, host, _ := strings.Cut(address, "@")
	if len(address) > 254 || len(local) > 64 || !localPart().MatchString(local) || !domain().MatchString(host) {
		return invalid("%s: %s is not an e-mail address", field, shown(address))
	}
	return nil
}

func (m Message) check() error {
	if err := checkAddress("from", m.From.Address); err != nil {
		return err
	}
	if len(m.To) == 0 || len(m.To) > MaxRecipients {
		return invalid("a mail has 1 to %d recipients, not %d", MaxRecipients, len(m.To))
	}
	for _, to := range m.To {
		if err := checkAddress("to", to); err != nil {
			return err
		}
	}
	if m.ReplyTo != "" {
		if err := checkAddress("reply-to", m.ReplyTo); err != nil {
			return err
		}
	}
	if err := checkLine("the sender's name", m.From.Name, MaxName); err != nil {
		return err
	}
	if err := checkLine("the subject", m.Subject, MaxSubject); err != nil {
		return err
	}
	for _, id := range append([]string{m.InReplyTo}, m.References...) {
		if id != "" && !messageID().MatchString(id) {
			return invalid("%s is not a message id: <…>", shown(id))
		}
	}
	switch {
	case len(m.Text)+len(m.HTML) > MaxSize:
		return tooLarge("a mail has at most %d bytes", MaxSize)
	case strings.TrimSpace(m.Text) == "":
		return invalid("a mail has a text")
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.HTML):
		return invalid("a mail's text is UTF-8")
	}
	return nil
}

// checkLine is for what goes into a header: a line end in it would begin another header.
func checkLine(what, s string, limit int) error {
	switch {
	case len(s) > limit:
		return tooLarge("%s has at most %d bytes", what, limit)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return invalid("%s is one line of UTF-8 without control characters", what)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fault.Invalid(format, args...))
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrTooLarge, fault.Invalid(format, args...))
}

// shown is what was given, for an error: on one line, and not all of it.
func shown(s string) string { return fmt.Sprintf("%.100q", s) }
