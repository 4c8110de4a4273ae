package inbound

import (
	netmail "net/mail"
	"strings"
)

// Automatic says why nobody is to be answered, on one line for the log: no person has written the mail, or it has come from the domain itself. "": answer.
// Two programs that answer one another would never end (RFC 3834 §2).
func (h Header) Automatic(r Receipt, domain string) string {
	for _, address := range []string{h.From.Address, r.Sender} {
		if domain != "" && domainOf(address) == strings.ToLower(domain) {
			return "the mail is this domain's own"
		}
	}
	local, _, _ := cutLast(strings.ToLower(r.Sender), '@')
	if r.Sender == "" || local == "mailer-daemon" || local == "postmaster" {
		return "a mail server has written it"
	}
	return h.automatic
}

// automatic finds what programs say of mails that they have written.
func automatic(fields netmail.Header) string {
	for _, value := range fields["Auto-Submitted"] {
		if word, _, _ := strings.Cut(value, ";"); !strings.EqualFold(strings.TrimSpace(word), "no") {
			return "a program has written it (Auto-Submitted)"
		}
	}
	for _, value := range fields["Precedence"] {
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "bulk", "junk", "list", "auto_reply":
			return "it went to many, or a program has written it (Precedence)"
		}
	}
	switch kind, _, _ := strings.Cut(first(fields, "Content-Type"), ";"); strings.ToLower(strings.TrimSpace(kind)) {
	case "multipart/report", "message/delivery-status", "message/disposition-notification":
		return "it is a report on another mail"
	}
	for _, name := range []string{"List-Id", "List-Unsubscribe", "X-Autoreply", "X-Autorespond", "X-Auto-Response-Suppress", "X-Ms-Exchange-Inbox-Rules-Loop", "X-Loop"} {
		if len(fields[name]) > 0 {
			return "it went to many, or a program has written it (" + name + ")"
		}
	}
	subject := subject(first(fields, "Subject"))
	for _, beginning := range subjects {
		if len(subject) >= len(beginning) && strings.EqualFold(subject[:len(beginning)], beginning) {
			return "a program has written it, by its subject"
		}
	}
	if strings.HasPrefix(subject, "AUTO:") {
		return "a program has written it, by its subject"
	}
	return ""
}

// subjects are how mails begin that say nothing else of themselves; Lotus Notes' is in capitals.
var subjects = []string{"autoreply:", "auto-reply:", "automatic reply:", "out of office:", "abwesenheitsnotiz:", "automatische antwort:", "réponse automatique", "respuesta automática:",
	"undeliverable:", "undelivered mail returned to sender", "delivery status notification", "mail delivery failed"}
