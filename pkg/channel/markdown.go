package channel

import (
	"bytes"
	"regexp"
	"strings"
)

// maxFence is how long a fence of code may be, to be taken for one.
const maxFence = 64

// prose is a Markdown text of which all is blank that its author does not say himself: code, quotes, comments. It is as long as the text. fence is what ends
// the code that the text leaves open.
//
// It is near enough to CommonMark for what it decides, whether a name in a text is a mention: where the two differ, as with code in lists, the text is rather
// taken for code.
func prose(s string) (said []byte, fence string) {
	said = []byte(s)
	comment, indent := false, true // indent: here indented text would be code
	for rest := said; len(rest) > 0; {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end+1]
		}
		rest = rest[len(line):]
		bare := strings.TrimSpace(string(line))
		indented := bare != "" && (bytes.HasPrefix(line, []byte("    ")) || line[0] == '\t')
		item := strings.TrimSpace(listItem.ReplaceAllString(bare, ""))
		switch opened := fenceOf(item); {
		case fence != "":
			blank(line)
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case comment:
			comment = comments(line, true)
		case opened != "":
			fence = opened
			blank(line)
		case strings.HasPrefix(item, ">"), indented && indent:
			blank(line)
		default:
			comment = comments(line, false)
		}
		indent = bare == "" || indented && indent
	}
	spans(said)
	return said, fence
}

// listItem is what a line of a list begins with.
var listItem = regexp.MustCompile(`^(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)+`)

// fenceOf is the fence that a line begins code with, if it does.
func fenceOf(line string) string {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	rest := strings.TrimLeft(line, line[:1])
	n := len(line) - len(rest)
	if n < 3 || n > maxFence || line[0] == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return line[:n]
}

// comments blanks the comments of a line, inside of which it may begin, and reports whether it ends in one.
func comments(line []byte, inside bool) bool {
	for i := 0; i < len(line); {
		switch {
		case inside:
			end := bytes.Index(line[i:], []byte("-->"))
			if end < 0 {
				blank(line[i:])
				return true
			}
			blank(line[i : i+end+3])
			i, inside = i+end+3, false
		case bytes.HasPrefix(line[i:], []byte("<!--")):
			inside = true
		case line[i] == '`':
			run := ticks(line[i:])
			i += run
			if end := closes(line[i:], run); end >= 0 {
				i += end
			}
		default:
			i++
		}
	}
	return inside
}

// spans blanks the code within paragraphs.
func spans(said []byte) {
	for start, i := 0, 0; i < len(said); {
		end := len(said)
		if n := bytes.IndexByte(said[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		if len(bytes.TrimSpace(said[i:end])) == 0 || end == len(said) {
			paragraph(said[start:end])
			start = end
		}
		i = end
	}
}

func paragraph(said []byte) {
	for i := 0; i < len(said); {
		switch said[i] {
		case '\\':
			i += 2
		case '`':
			run := ticks(said[i:])
			end := max(closes(said[i+run:], run), 0)
			if end > 0 {
				blank(said[i : i+run+end])
			}
			i += run + end
		default:
			i++
		}
	}
}

// ticks is how many backticks s begins with.
func ticks(s []byte) int { return len(s) - len(bytes.TrimLeft(s, "`")) }

// closes is where the code ends that began with so many backticks: behind as many. -1: nowhere.
func closes(s []byte, run int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		n := ticks(s[i:])
		if i += n; n == run {
			return i
		}
	}
	return -1
}

// blank makes a part of a text white, but for its ends of lines.
func blank(part []byte) {
	for i, c := range part {
		if c != '\n' && c != '\r' {
			part[i] = ' '
		}
	}
}

// closing is what a text needs behind it, so that what follows is not in its code.
func closing(s string) string {
	if _, fence := prose(s); fence != "" {
		return "\n" + fence
	}
	return ""
}
