package inbound

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// recent is how old a mail may be that is known by its signature alone, which holds for whoever sends the mail on, and for good.
const recent = 14 * 24 * time.Hour

// Doubt says why a mail is not taken for its author's, on one line for the log; "": it is his. At the domain of its From field, that is: who writes which
// address there is the domain's own to see to.
//
// DMARC says that SPF or DKIM has passed for that very domain. Where a domain does not take part in it, the same is asked here: SPF for a domain of the same
// organization, or DKIM and no signature but of such domains. A signature stays good when a mail is sent on by somebody else, and so do fields that it does not
// cover. So a mail that has nothing but its signature is one to the mailbox itself, by fields that are all signed, and not an old one.
func (h Header) Doubt(r Receipt, mailbox string, now time.Time) string {
	switch {
	case r.Virus == Fail:
		return "the mail service has found a virus"
	case r.Spam == Fail:
		return "the mail service takes it for spam"
	case !h.readAlike(r.From):
		return "it cannot be told who has written it"
	case r.SPF == Pass && aligned(r.Sender, h.From.Address) && (r.DMARC == Pass || r.DMARC == Gray):
		return ""
	}
	own := h.signed(r.DMARC == Pass)
	switch {
	case r.DMARC != Pass && (r.DMARC != Gray || r.DKIM != Pass || len(own) == 0):
		return "neither SPF nor DKIM says that it comes from " + line(domainOf(h.From.Address), 100)
	case !slices.Contains(h.To, strings.ToLower(mailbox)):
		return "it was sent on: its To and Cc do not have the address that it came to"
	case !h.toldBy(own, strings.ToLower(mailbox)):
		return "it was sent on: its signature does not cover that it is to the address that it came to"
	case !h.covered(own, "from") || !h.covered(own, "date") || !h.covered(own, "subject"):
		return "it was sent on: its signature does not cover its author, date and subject"
	case h.Date.Before(now.Add(-recent)) || h.Date.After(now.Add(24*time.Hour)):
		return "it was sent on: its date is not of these days"
	}
	return ""
}

// readAlike reports whether the mail service has read the same author: its verdicts are about him.
func (h Header) readAlike(from []string) bool {
	if len(from) == 0 {
		return false
	}
	last := strings.TrimSpace(from[len(from)-1]) // a name with a comma in it may look like two
	if _, address, found := cutLast(last, '<'); found {
		last, _, _ = strings.Cut(address, ">")
	}
	return strings.EqualFold(strings.TrimSpace(last), h.From.Address)
}

func aligned(sender, author string) bool { return alignedDomains(domainOf(sender), domainOf(author)) }

// alignedDomains reports whether two domains are of one organization (RFC 7489 §3.2).
func alignedDomains(a, b string) bool {
	if a == "" || a == b {
		return a != ""
	}
	organization, err := publicsuffix.EffectiveTLDPlusOne(a)
	other, otherErr := publicsuffix.EffectiveTLDPlusOne(b)
	return err == nil && otherErr == nil && organization == other
}
