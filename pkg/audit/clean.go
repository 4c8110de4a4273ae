package audit

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// redacted stands where a secret stood.
const redacted = "[redacted]"

// clean is text without secrets and control characters (U+0000–001F, U+007F–009F), cut to most limit bytes on a rune's boundary.
//
// Secrets go first, while the characters that set them apart are still there, and once more after those are gone: dropping them may join what was
// two halves. Cutting comes last; no pattern needs an end, so a cut text holds no secret that the whole one did not.
func clean(s string, limit int) string {
	if s = hideSecrets(s); strings.IndexFunc(s, control) >= 0 {
		s = hideSecrets(strings.Map(func(r rune) rune {
			if control(r) {
				return -1
			}
			return r
		}, s))
	}
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// isURL reports whether a member of that name holds a URL.
func isURL(name string) bool { return strings.EqualFold(name, "url") }

// cleanURL is the text of an absolute URL without user-info, fragment and the values of query parameters that give access. What is no such
// URL is not shown at all: nobody can say where in it a password is.
func cleanURL(s string) string {
	u, err := url.Parse(strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, s))
	if err != nil || u.Scheme == "" || u.Host == "" {
		return redacted
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	if hideSecrets(u.Path) != u.Path {
		u.Path, u.RawPath = "/"+redacted, ""
	}
	var parameters []string
	for p := range strings.FieldsFuncSeq(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(p, "=")
		plainName, nameErr := url.QueryUnescape(name)
		plainValue, valueErr := url.QueryUnescape(value)
		switch {
		case nameErr != nil || valueErr != nil || hideSecrets(plainName) != plainName:
			continue
		case givesAccess(plainName) || hideSecrets(plainValue) != plainValue:
			p = name + "="
		}
		parameters = append(parameters, p)
	}
	u.RawQuery = strings.Join(parameters, "&")
	return clean(u.String(), MaxString)
}

// givesAccess reports whether a member or query parameter of that name holds what gives access.
func givesAccess(name string) bool {
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
	switch plain {
	case "key", "sig", "code", "auth", "pass", "pwd", "pw", "jwt", "sid", "pin", "otp":
		return true
	}
	for _, part := range [...]string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "signature",
		"credential", "session", "authorization", "cookie"} {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}
