package inbound

import (
	"bytes"
	"net/mail"
	"slices"
	"strings"
)

// signature is what a DKIM signature says of itself (RFC 6376 §3.5). Whether it holds, the mail service knows alone, and not which of several.
type signature struct {
	domain string         // d=
	covers map[string]int // h=: fields of which name, in lower case, and how many of them, from the bottom
	clear  bool           // each said once, and of the whole body
}

func signatures(fields []string) (all []signature) {
	for _, field := range fields {
		s, said := signature{covers: map[string]int{}}, map[string]int{}
		for tag := range strings.SplitSeq(field, ";") {
			name, value, _ := strings.Cut(tag, "=")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(strings.TrimSpace(value))
			said[name]++
			switch name {
			case "d":
				s.domain = value
			case "h":
				for covered := range strings.SplitSeq(value, ":") {
					s.covers[strings.TrimSpace(covered)]++
				}
			}
		}
		s.clear = said["d"] == 1 && said["h"] == 1 && said["l"] == 0 // l=: of a part of the body, behind which anybody may write on
		all = append(all, s)
	}
	return all
}

// signed are the signatures of the author's organization, one of which has passed; none, if that cannot be told. others: signatures of others may be there.
func (h Header) signed(others bool) (own []signature) {
	for _, s := range h.signatures {
		switch {
		case !s.clear:
			return nil
		case alignedDomains(s.domain, domainOf(h.From.Address)):
			own = append(own, s)
		case !others:
			return nil
		}
	}
	return own
}

// covered reports whether all fields of that name are the author's, whichever of the signatures has passed. One more than a signature covers may have been put
// there by anybody.
func (h Header) covered(by []signature, name string) bool {
	return len(by) > 0 && !h.mixed && !slices.ContainsFunc(by, func(s signature) bool { return h.times[name] > s.covers[name] })
}

// toldBy reports whether the author himself has written to the mailbox.
func (h Header) toldBy(by []signature, mailbox string) bool {
	return slices.Contains(h.to, mailbox) && h.covered(by, "to") || slices.Contains(h.cc, mailbox) && h.covered(by, "cc")
}

// times is how many fields there are of each name, in lower case.
func times(fields mail.Header) map[string]int {
	all := map[string]int{}
	for name, values := range fields {
		all[strings.ToLower(name)] += len(values)
	}
	return all
}

// mixed reports whether lines end in several ways, so that not everybody reads the same lines.
func mixed(raw []byte) bool {
	ends, feeds, returns := bytes.Count(raw, []byte("\r\n")), bytes.Count(raw, []byte("\n")), bytes.Count(raw, []byte("\r"))
	return returns != ends || ends > 0 && feeds != ends
}
