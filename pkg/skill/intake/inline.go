package intake

import "strings"

const longestLink = 512 // bytes of a destination: what is longer leads to no file of a pack

// inParagraph finds the inline links of a paragraph that begins on this line.
func inParagraph(text string, line int) (found []link) {
	code := closings(text)
	var open []int // the lines of the brackets that are open
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			line++
		case '\\':
			if i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '`':
			end := i + code.pass(i)
			line += strings.Count(text[i:end], "\n")
			i = end - 1
		case '[':
			open = append(open, line)
		case ']':
			if len(open) == 0 {
				continue
			}
			at := open[len(open)-1]
			open = open[:len(open)-1]
			if to, is := destination(text[i+1:]); is {
				found = append(found, link{to: to, line: at})
			}
		}
	}
	return found
}

// destination is where the link leads to whose text is before rest.
func destination(rest string) (string, bool) {
	if !strings.HasPrefix(rest, "(") {
		return "", false
	}
	rest = rest[1:min(len(rest), longestLink)]
	rest = strings.TrimLeft(rest, " \t")
	if inner, angle := strings.CutPrefix(rest, "<"); angle {
		end := strings.IndexAny(inner, "<>\n")
		if end < 0 || inner[end] != '>' {
			return "", false
		}
		return unescape(inner[:end]), closes(inner[end+1:])
	}
	depth, end := 0, 0
	for ; end < len(rest) && rest[end] > ' '; end++ {
		switch rest[end] {
		case '\\':
			end = min(end+1, len(rest)-1)
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 {
			break
		}
	}
	return unescape(rest[:end]), depth <= 0 && closes(rest[end:])
}

// closes: the link ends here, or has a title first.
func closes(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\n")
	return rest != "" && strings.ContainsRune(`)"'(`, rune(rest[0]))
}

// unescape takes the backslashes out that stand before punctuation.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var plain strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0 {
			i++
		}
		plain.WriteByte(s[i])
	}
	return plain.String()
}

// spans knows where the runs of backticks of a text are: code between two of one length is no text.
type spans map[int]*run

type run struct {
	length int
	next   *run // the next one of its length
	at     int
}

func closings(text string) spans {
	all, last := spans{}, map[int]*run{}
	for i := 0; i < len(text); {
		length := 0
		for i+length < len(text) && text[i+length] == '`' {
			length++
		}
		if length == 0 {
			i++
			continue
		}
		r := &run{length: length, at: i}
		if before := last[length]; before != nil {
			before.next = r
		}
		all[i], last[length] = r, r
		i += length
	}
	return all
}

// pass is how much of the text is code, or backticks that begin none, from this place on.
func (s spans) pass(at int) int {
	r := s[at]
	switch {
	case r == nil: // the one before is behind a backslash
		return 1
	case r.next == nil:
		return r.length
	}
	return r.next.at + r.length - at
}
