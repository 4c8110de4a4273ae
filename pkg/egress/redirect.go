package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// checkRedirect bounds redirects, and keeps what belongs to an origin there. net/http would hand most headers on.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return refuse("more than 5 redirects")
	}
	r.Header.Del("Referer") // the URL before may have had a secret in it
	for _, before := range append(via[1:len(via):len(via)], r) {
		if SameOrigin(before.URL, via[0].URL) {
			continue
		}
		// Once it has left its origin a request stays a stranger: whoever sends it back there may choose where to.
		if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Body != nil && r.Body != http.NoBody {
			return refuse("a redirect to another origin is followed by GET and HEAD only")
		}
		for name := range r.Header {
			if name != "Accept" && name != "User-Agent" {
				delete(r.Header, name)
			}
		}
		r.Host = ""
		break
	}
	return nil
}

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "http":
		return "80"
	}
	return ""
}
