package migrate

import (
	"regexp"
	"strings"
)

// statement is one statement of a file: where it begins, and its text without comments.
type statement struct {
	line int // from 1
	text string
}

// token is what SQL text is cut into as far as finding the ends of statements needs it: comments, quoted things, words, ends.
var token = regexp.MustCompile(`(?s)^(?:--[^\n]*|/\*.*?\*/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_][\w$]*|\s+|.)`)

var dollar = regexp.MustCompile(`^\$(?:[A-Za-z_]\w*)?\$`)

// statements cuts a file as PostgreSQL does. A semicolon within begin atomic … end, where a case may nest, is none of an end.
func statements(text string) (all []statement) {
	line, depth, begun := 1, 0, 0
	var current strings.Builder
	previous := ""
	for rest := text; rest != ""; {
		t := token.FindString(rest)
		if tag := dollar.FindString(rest); tag != "" {
			if end := strings.Index(rest[len(tag):], tag); end >= 0 {
				t = rest[:len(tag)+end+len(tag)]
			}
		}
		rest = rest[len(t):]
		switch word := strings.ToLower(t); {
		case strings.HasPrefix(t, "--"), strings.HasPrefix(t, "/*"):
			t = " "
		case strings.TrimSpace(t) == "":
		case word == ";" && depth == 0:
			if begun > 0 {
				all = append(all, statement{begun, strings.TrimSpace(current.String())})
			}
			begun, previous, t = 0, "", ""
			current.Reset()
		default:
			if begun == 0 {
				begun = line
			}
			if word == "atomic" && previous == "begin" || word == "case" && depth > 0 {
				depth++
			} else if word == "end" && depth > 0 {
				depth--
			}
			previous = word
		}
		if begun > 0 {
			current.WriteString(t)
		}
		line = 1 + strings.Count(text[:len(text)-len(rest)], "\n")
	}
	if begun > 0 {
		all = append(all, statement{begun, strings.TrimSpace(current.String())})
	}
	return all
}
