package gateway

import (
	"encoding/json"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// AppSync's own scalars. Their input is checked as AppSync checks it; a scalar that is not listed takes any JSON value.
var scalars = map[string]struct {
	want  string
	valid func(text string) bool
}{
	"AWSDate":      {"a date like 2006-01-02 with an optional offset", func(s string) bool { return date.MatchString(s) && calendar(s[:10]) }},
	"AWSTime":      {"a time like 15:04:05.999 with an optional offset", func(s string) bool { return clock.MatchString(s) && hours(s) }},
	"AWSDateTime":  {"a date and time like 2006-01-02T15:04:05.999Z", isDateTime},
	"AWSTimestamp": {"a whole number of seconds since 1970", nil},
	"AWSEmail":     {"an e-mail address", isEmail},
	"AWSJSON":      {"a string that holds valid JSON", func(s string) bool { return json.Valid([]byte(s)) }},
	"AWSURL":       {"an absolute URL", func(s string) bool { u, err := url.Parse(s); return err == nil && u.IsAbs() && u.Host != "" }},
	"AWSPhone":     {"a phone number", phone.MatchString},
	"AWSIPAddress": {"an IPv4 or IPv6 address with an optional prefix length", isAddress},
}

var (
	date     = regexp.MustCompile(`^\d{4}-\d\d-\d\d(Z|[+-]\d\d:\d\d(:\d\d)?)?$`)
	clock    = regexp.MustCompile(`^\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d(:\d\d)?)?$`)
	datetime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d(:\d\d)?)$`)
	phone    = regexp.MustCompile(`^\+?[0-9][0-9 ()-]{2,30}$`)
)

// checkScalar says what is wrong with the JSON value of a scalar's input: "" when nothing is.
func checkScalar(name string, raw []byte) string {
	rule, ok := scalars[name]
	if !ok || len(raw) == 0 {
		return ""
	}
	if rule.valid == nil {
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return rule.want
		}
		return ""
	}
	var doc tape.Doc
	if err := doc.Parse(raw); err != nil || doc.Kind(0) != tape.String || !rule.valid(doc.Text(0)) {
		return rule.want
	}
	return ""
}

func calendar(day string) bool { _, err := time.Parse(time.DateOnly, day); return err == nil }

// hours checks the digits of a time that has the right form: a leap second is fine.
func hours(s string) bool {
	if s[:2] > "23" || s[3:5] > "59" {
		return false
	}
	return len(s) < 8 || s[5] != ':' || s[6:8] <= "60"
}

func isDateTime(s string) bool { return datetime.MatchString(s) && calendar(s[:10]) && hours(s[11:]) }

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && strings.Contains(s, "@")
}

func isAddress(s string) bool {
	if strings.Contains(s, "/") {
		_, err := netip.ParsePrefix(s)
		return err == nil
	}
	_, err := netip.ParseAddr(s)
	return err == nil
}
