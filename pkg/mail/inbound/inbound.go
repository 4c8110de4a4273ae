// Package inbound reads received e-mails: who wrote one and whether that is so, whom it is for, which conversation it belongs to, and what its writer says
// in it. It is pure: no database, no network, nothing of a tenant.
//
// What holds:
//
//   - Whether a mail is from whom it says it is from is taken from the Receipt alone, which the mail service made, and never from a header of the mail:
//     whoever writes a mail writes its headers. See Header.Doubt.
//   - The header is read apart from the body, so that a stranger's mail is refused before anybody looks into its parts.
//   - A mail is bounded before it is parsed: its size, its header, its parts, how deep they lie in one another, and the text that is taken of it.
//   - What is read is people's text: valid UTF-8, without control characters but line ends and tabs.
//
// The reply address of a thread is reply+<token>@<domain>. The token is a random UUID of the thread's own (122 bits from the database, integration_threads),
// is not the thread's id and says nothing of it. It is kept as it is, because it is no credential: it names a thread to the users of the thread's own
// tenant, who may write in it anyway, and only after their mail was found to be theirs. Whoever else has it, by a mail that was forwarded or by reading the
// row, can do nothing with it: his mail is refused for its sender. So nothing would be won by keeping a hash, and something lost: each reply goes out with
// the same address, and the token would have to be made anew for each. It is unguessable so that nobody finds out by trying which threads there are.
package inbound

import (
	"strings"
)

// The bounds of a mail.
const (
	MaxSize   = 40 << 20  // bytes, as SES takes them
	maxHeader = 256 << 10 // bytes
	maxText   = 512 << 10 // bytes of a text that is looked at, and of HTML
	maxParts  = 1000      // between the boundaries of one multipart
	maxNested = 20        // multiparts
	maxField  = 16 << 10  // bytes of what a part says it is
)

// Receipt is what the mail service says of a mail: of all that is known of it the part that its sender has not written.
type Receipt struct {
	Sender     string   // of the envelope (MAIL FROM); "" of bounces
	Recipients []string // of the envelope (RCPT TO), at the domain whose mail is received
	From       []string // the authors as the service has read them

	SPF, DKIM, DMARC, Spam, Virus Verdict
}

// Verdict is what the mail service has found. What is none of these is no pass.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "PASS"
	Fail Verdict = "FAIL"
	Gray Verdict = "GRAY" // of SPF: the domain says nothing; of DKIM: there is no signature; of DMARC: it failed, and the domain wants nothing done about it
)

// Mailbox is whom a mail is for.
type Mailbox struct {
	Address string // local part of an integration, in lower case; "" with a token
	Token   string // of the thread that it answers, as a UUID; "" with an address
}

const replyTo = "reply"

// Open reads a recipient's address. Another domain's, and a reply address without a token, are nobody's. What stands behind a + is the sender's own note.
func Open(recipient, domain string) (m Mailbox, ok bool) {
	local, host, _ := cutLast(strings.ToLower(recipient), '@')
	if domain == "" || host != strings.ToLower(domain) {
		return m, false
	}
	name, label, _ := strings.Cut(local, "+")
	if name != replyTo {
		return Mailbox{Address: name}, name != ""
	}
	if len(label) != 32 || strings.Trim(label, "0123456789abcdef") != "" {
		return m, false
	}
	return Mailbox{Token: label[:8] + "-" + label[8:12] + "-" + label[12:16] + "-" + label[16:20] + "-" + label[20:]}, true
}

// ReplyAddress is where answers to a thread's mails are sent.
func ReplyAddress(token, domain string) string {
	return replyTo + "+" + strings.ReplaceAll(strings.ToLower(token), "-", "") + "@" + domain
}

// cutLast is strings.Cut at the last separator.
func cutLast(s string, separator byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, separator); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func domainOf(address string) string {
	_, host, _ := cutLast(strings.ToLower(address), '@')
	return host
}
