package intake

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

var drive = regexp.MustCompile(`^[A-Za-z]:`)

// checkName is the name of the member at this place of the zip, in NFC. A folder's ends in /.
func checkName(name string, place int) (string, error) {
	switch {
	case !utf8.ValidString(name):
		return "", fault.Invalid("the name of file %d of the zip, %s, is not UTF-8", place+1, shown(name))
	case len(name) > pack.MaxPath:
		return "", fault.Invalid("%s: the path has more than %d bytes", shown(name), pack.MaxPath)
	case name == "":
		return "", fault.Invalid("file %d of the zip has no name", place+1)
	case strings.Contains(name, `\`):
		return "", fault.Invalid("%s: the path has a backslash; in a zip, folders end with /", shown(name))
	case strings.HasPrefix(name, "/") || drive.MatchString(name):
		return "", fault.Invalid("%s: the path is absolute; a path begins in the pack's folder", shown(name))
	case strings.ContainsFunc(name, unseen):
		return "", fault.Invalid("%s: the path has a character that is not to be seen", shown(name))
	}
	name = norm.NFC.String(name)
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		switch part {
		case "..":
			return "", fault.Invalid("%s: the path leads out of the pack", shown(name))
		case "", ".":
			return "", fault.Invalid("%s: the path has an empty part", shown(name))
		}
	}
	if len(name) > pack.MaxPath { // a few characters are longer in NFC
		return "", fault.Invalid("%s: the path has more than %d bytes", shown(name), pack.MaxPath)
	}
	return name, nil
}

// unseen are characters that make a path look like another one.
func unseen(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// added: macOS has added it to the zip.
func added(name string) bool {
	return strings.HasPrefix(name, "__MACOSX/") || path.Base(name) == ".DS_Store"
}

// shown is a name in a message: as it is, or in quotes where it could be misread.
func shown(name string) string {
	const most = 120 // characters
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most]) + "…"
	}
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || name == "" || strings.ContainsAny(name, " ,:") {
		return quoted
	}
	return name
}
