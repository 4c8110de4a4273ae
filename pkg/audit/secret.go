package audit

import (
	"regexp"
	"strings"
)

// secret is one kind of text that gives access. Its pattern is tried only on text that holds one of the hints, whatever their case. No pattern ends
// in a boundary, so that none starts to fit when text is cut off behind it.
type secret struct {
	hints   []string // lower case
	pattern *regexp.Regexp
	instead string
}

// value is what follows a name and = or :, quoted or not.
const value = `\\*"[^"]*(?:"|$)|\\*'[^']*(?:'|$)|[^\s"'&,;<>]+`

var secrets = []secret{
	{[]string{"-----begin"}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.)*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`), redacted},
	{[]string{"eyj"}, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)*`), redacted}, // JWT
	{[]string{"bearer"}, regexp.MustCompile(`(?i)bearer[\s:]+[A-Za-z0-9._~+/=-]{8,}`), redacted},
	{[]string{"basic"}, regexp.MustCompile(`(?i)basic\s+[A-Za-z0-9+/_-]{16,}=*`), redacted},
	{[]string{"://"}, regexp.MustCompile(`://[^\s/?#@\[]+@`), "://" + redacted + "@"},
	{[]string{"akia", "asia", "abia", "acca"}, regexp.MustCompile(`(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}`), redacted}, // AWS
	{[]string{"gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_"}, regexp.MustCompile(`(?:gh[oprsu]|github_pat)_[A-Za-z0-9_]{20,}`), redacted},
	{[]string{"glpat-"}, regexp.MustCompile(`glpat-[A-Za-z0-9_-]{16,}`), redacted},
	{[]string{"xox", "xapp-"}, regexp.MustCompile(`(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`), redacted},
	{[]string{"hooks.slack.com"}, regexp.MustCompile(`(?i)hooks\.slack\.com/[A-Za-z]+/[A-Za-z0-9/_-]+`), redacted},
	{[]string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`), redacted}, // Anthropic, OpenAI
	{[]string{"_live_", "_test_"}, regexp.MustCompile(`(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{10,}`), redacted},
	{[]string{"aiza", "ya29."}, regexp.MustCompile(`AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{10,}`), redacted},
	{[]string{"npm_", "hf_"}, regexp.MustCompile(`(?:npm|hf)_[A-Za-z0-9]{30,}`), redacted},
	{[]string{"lin_api_", "lin_oauth_"}, regexp.MustCompile(`lin_(?:api|oauth)_[A-Za-z0-9]{16,}`), redacted},
	{[]string{"sig=", "key=", "code=", "auth="}, regexp.MustCompile(`(?i)[?&](?:sig|key|code|auth)=[^&#\s]+`), redacted},
	{[]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "api-key", "access_key", "access-key", "accesskey", "private_key",
		"private-key", "privatekey", "signature", "credential"},
		regexp.MustCompile(`(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|signature|credential)[A-Za-z0-9_-]*\\*["']?\s*[=:]\s*(?:` +
			value + `)`), redacted},
}

// hints are the hints of all secrets by their first byte, each with the secret's number.
var hints = func() (index [256][]hint) {
	for i, s := range secrets {
		for _, h := range s.hints {
			index[h[0]] = append(index[h[0]], hint{h, 1 << i})
		}
	}
	return index
}()

type hint struct {
	text   string
	secret uint
}

// hideSecrets replaces every secret in s. What replaces one may complete another (password=AKIA…), so it goes on until there is none; each
// replacement takes a hint away and brings none that fits.
func hideSecrets(s string) string {
	for {
		before := s
		found := hinted(s)
		for i := range secrets {
			if found&(1<<i) != 0 {
				s = secrets[i].pattern.ReplaceAllLiteralString(s, secrets[i].instead)
			}
		}
		if s == before {
			return s
		}
	}
}

// hinted is the set of secrets that may be in s: most text has none, and to see that costs a few nanoseconds a byte.
func hinted(s string) (found uint) {
	if s == "" {
		return 0
	}
	for i := range len(s) - 1 {
		c, next := s[i], s[i+1]|0x20 // lower case, and no other change to a hint's second byte
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		for _, h := range hints[c] {
			if next == h.text[1] && found&h.secret == 0 && len(s)-i >= len(h.text) && strings.EqualFold(s[i:i+len(h.text)], h.text) {
				found |= h.secret
			}
		}
	}
	return found
}
