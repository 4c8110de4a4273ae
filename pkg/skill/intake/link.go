package intake

import (
	"net/url"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

// checkLinks refuses a SKILL.md that sends its reader to files of the pack that are not there.
func checkLinks(contents map[string][]byte) error {
	there := map[string]bool{".": true}
	for name := range contents {
		for ; name != "." && !there[name]; name = path.Dir(name) {
			there[name] = true
		}
	}
	_, body, first := pack.Split(string(contents[pack.SkillFile]))
	for _, l := range links(body) {
		name, relative := target(l.to)
		switch {
		case !relative || there[name]:
		case name == ".." || strings.HasPrefix(name, "../"):
			return wrong(first+l.line, "the link to %s leads out of the pack", shown(l.to))
		default:
			return wrong(first+l.line, "the link is to %s, which is not in the pack (an example of a link belongs in backticks)", shown(l.to))
		}
	}
	return nil
}

// target is the path that a link leads to, and whether it is one of the pack.
func target(to string) (name string, relative bool) {
	to, _, _ = strings.Cut(to, "#")
	to, _, _ = strings.Cut(to, "?")
	if to == "" || strings.HasPrefix(to, "/") || hasScheme(to) {
		return "", false
	}
	if plain, err := url.PathUnescape(to); err == nil {
		to = plain
	}
	return path.Clean(norm.NFC.String(to)), true
}

// hasScheme: it begins as https: and mailto: do (RFC 3986 §3.1).
func hasScheme(to string) bool {
	scheme, _, found := strings.Cut(to, ":")
	if !found || scheme == "" {
		return false
	}
	return strings.IndexFunc(scheme, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')
	}) < 0
}
