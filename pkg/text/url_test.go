package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestCheckURL(t *testing.T) {
	for _, s := range []string{
		"https://example.com", "HTTPS://example.com/a/b?c=d&e", "https://example.com:8443/", "https://bücher.example/", "https://[2001:db8::1]/", "https://10.0.0.1/",
		"http://localhost", "http://localhost:8080/a", "http://127.0.0.1:9/", "http://127.8.9.10/", "http://[::1]:80/", "https://example.com/#",
		"https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/")),
	} {
		require.NoError(t, CheckURL("auth.url", s), s)
	}
	for s, why := range map[string]string{
		"":                         "auth.url must not be empty",
		" \t":                      "auth.url must not be empty",
		"https://example.com/\x00": "auth.url must be UTF-8 text without NUL",
		"https://example.com/\xff": "auth.url must be UTF-8 text without NUL",
		"https://example.com/" + strings.Repeat("a", 2049-len("https://example.com/")): "auth.url is longer than 2048 bytes",

		"example.com":              "auth.url must be an absolute URL",
		"/a":                       "auth.url must be an absolute URL",
		"//":                       "auth.url must be an absolute URL",
		"https:":                   "auth.url must be an absolute URL",
		"https:///a":               "auth.url must be an absolute URL",
		"https://:443/":            "auth.url must be an absolute URL",
		"https:example.com":        "auth.url must be an absolute URL",
		"https://exa mple.com":     "auth.url must be an absolute URL",
		"https://example.com/%zz":  "auth.url must be an absolute URL",
		"https://example.com:port": "auth.url must be an absolute URL",
		"https://example.com/\n":   "auth.url must be an absolute URL",
		"mailto:a@example.com":     "auth.url must be an absolute URL",

		"https://user@example.com":      "auth.url must not hold a user name or a password",
		"https://user:word@example.com": "auth.url must not hold a user name or a password",
		"https://@example.com":          "auth.url must not hold a user name or a password",
		"https://example.com/#a":        "auth.url must not hold a fragment",

		"http://example.com":            "auth.url must be https; http is for this machine only",
		"http://10.0.0.1":               "auth.url must be https; http is for this machine only",
		"http://localhost.example.com":  "auth.url must be https; http is for this machine only",
		"http://localhost.":             "auth.url must be https; http is for this machine only",
		"http://127.0.0.1.example.com/": "auth.url must be https; http is for this machine only",
		"http://2130706433/":            "auth.url must be https; http is for this machine only",
		"http://[::2]/":                 "auth.url must be https; http is for this machine only",
		"ftp://localhost/":              "auth.url must be https; http is for this machine only",
		"//example.com/":                "auth.url must be https; http is for this machine only",
	} {
		err := CheckURL("auth.url", s)
		require.EqualError(t, err, why, "%q", s)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
}
