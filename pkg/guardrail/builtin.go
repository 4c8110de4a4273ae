package guardrail

import (
	"strings"
	"sync"
	"unicode"
)

// BuiltIn is something that the platform knows how to find.
type BuiltIn string

// What the platform knows: secrets, then personal data.
const (
	AWSAccessKey BuiltIn = "AWS_ACCESS_KEY"
	PrivateKey   BuiltIn = "PRIVATE_KEY"
	GitHubToken  BuiltIn = "GITHUB_TOKEN"
	SlackToken   BuiltIn = "SLACK_TOKEN"
	StripeKey    BuiltIn = "STRIPE_KEY"
	JWT          BuiltIn = "JWT"
	Secret       BuiltIn = "SECRET"

	EMail      BuiltIn = "EMAIL"
	Phone      BuiltIn = "PHONE"
	CreditCard BuiltIn = "CREDIT_CARD"
	IBAN       BuiltIn = "IBAN"
	USSSN      BuiltIn = "US_SSN"
	IPAddress  BuiltIn = "IP_ADDRESS"
)

// detector is how something is found. No expression goes on without end before it has matched: that bounds what a stream holds back. What may be of any
// length is matched by its beginning, and the rest is its tail.
type detector struct {
	why      string
	programs func() []*program
}

// builtIns are all of them. What an expression matches is compared as patterns are.
var builtIns = map[BuiltIn]detector{
	AWSAccessKey: {"secret: AWS access key", programs(program{before: isAlnum, after: isAlnum},
		`(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}`)},
	// From its first line on: then the block's headers, and lines of Base64. A line break may be written as \n.
	PrivateKey: {"secret: private key", programs(program{},
		`-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----`+
			`(?:(?:\s|\\[nr]){1,8}[A-Za-z-]{2,20}: ?[!-~ ]{0,100})*`+
			`(?:(?:\s|\\[nr]){1,8}[A-Za-z0-9+/=]{24,})*(?:(?:\s|\\[nr]){1,8}[A-Za-z0-9+/=]{1,23})?`+
			`(?:(?:\s|\\[nr]){0,8}-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?`)},
	GitHubToken: {"secret: GitHub token", programs(program{tail: isWord},
		`gh[opsur]_[A-Za-z0-9]{36}`, `github_pat_[A-Za-z0-9_]{22}`)},
	SlackToken: {"secret: Slack token", programs(program{tail: oneOf(alnum + "-+/")},
		`xox[abeoprs]-[A-Za-z0-9-]{10}`, `xapp-[0-9]-[A-Za-z0-9-]{10}`, `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20}`)},
	StripeKey: {"secret: Stripe key", programs(program{before: isAlnum, tail: oneOf(alnum + "+/=")},
		`[rs]k_(?:live|test)_[A-Za-z0-9]{16}`, `whsec_[A-Za-z0-9+/=]{16}`)},
	JWT: {"secret: JSON web token", programs(program{before: oneOf(alnum + "_-"), tail: oneOf(alnum + "_-.")},
		`eyJ[A-Za-z0-9_-]{8,400}\.eyJ`)},
	// A name that says that its value is secret, and the value if it looks random.
	Secret: {"secret: a value that looks random, of a name that says secret", programs(program{marked: true, check: random, tail: oneOf(alnum + "+/=_.~!@#$%^&*-")},
		"(?i)(?:secret|token|passw(?:or)?d|passphrase|pwd|api[ _-]?key|access[ _-]?key|private[ _-]?key|credentials?|authorization)[a-z0-9_.-]{0,40}"+
			"[\"'`]?\\s{0,3}(?:=>|:=|[:=])\\s{0,3}(?:bearer |basic )?[\"'`]?([a-z0-9+/=_.~!@#$%^&*-]{12,40})")},

	EMail: {"personal data: e-mail address", programs(program{},
		`[\p{L}\p{N}_][\p{L}\p{N}._%+-]{0,63}@[\p{L}\p{N}][\p{L}\p{N}.-]{0,120}\.\p{L}{2,24}`)},
	// With a country's code; as in North America; with a leading zero.
	Phone: {"personal data: phone number", programs(program{before: oneOf(alnum + "+-./:_"), after: isDigit, check: phone},
		`\+[0-9]{1,3}(?:[ ./-]?\(?[0-9]{1,4}\)?){2,6}`,
		`(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}`,
		`\(?0[0-9]{1,5}\)?[ /-]{1,3}[0-9]{2,4}(?:[ -]?[0-9]{2,4}){1,4}`)},
	CreditCard: {"personal data: credit card number", programs(program{before: isDigit, after: isDigit, check: card},
		`[2-6](?:[ -]?[0-9]){12,18}`)},
	IBAN: {"personal data: bank account number", programs(program{before: isAlnum, after: isAlnum, check: iban},
		`[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}`)},
	USSSN: {"personal data: US social security number", programs(program{before: oneOf("0123456789-"), after: oneOf("0123456789-"), check: ssn},
		`[0-9]{3}[ -][0-9]{2}[ -][0-9]{4}`)},
	IPAddress: {"personal data: IP address", programs(program{before: oneOf(alnum + "_.:"), after: isAlnum, check: address},
		`(?:[0-9]{1,3}\.){3}[0-9]{1,3}`, `[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,8}`)},
}

// Why is the reason that a decision gives for a kind that the platform knows; "" for any other.
func Why(kind string) string { return builtIns[BuiltIn(kind)].why }

// programs compiles expressions when they are first used; terms are what they have in common.
func programs(terms program, expressions ...string) func() []*program {
	return sync.OnceValue(func() (all []*program) {
		for _, e := range expressions {
			p := builtin(e)
			p.marked, p.before, p.after, p.check, p.tail = terms.marked, terms.before, terms.after, terms.check, terms.tail
			all = append(all, p)
		}
		return all
	})
}

const alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func oneOf(set string) func(r rune) bool {
	return func(r rune) bool { return r > 0 && strings.ContainsRune(set, r) }
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isAlnum(r rune) bool { return r != none && (unicode.IsLetter(r) || unicode.IsNumber(r)) }
