package intake

import (
	"regexp"
	"strings"
)

// link is where a link of a Markdown text leads to, and the line that it is on, from 0.
type link struct {
	to   string
	line int
}

// links finds the links and images of a Markdown text, in time linear in it, whatever it is; the parsers that there are take time in its square. Code and comments
// are passed over. In what few writers do (links whose destination is on the next line, HTML) it finds fewer than a parser.
func links(body string) (found []link) {
	r := reader{}
	var paragraph []string
	flush := func(next int) {
		found = append(found, inParagraph(strings.Join(paragraph, "\n"), next-len(paragraph))...)
		paragraph = paragraph[:0]
	}
	for i, l := range strings.Split(body, "\n") {
		l = strings.TrimSuffix(l, "\r")
		switch text, kind := r.read(l); kind {
		case definition:
			flush(i)
			found = append(found, link{to: text, line: i})
		case nothing:
			flush(i)
		case block:
			flush(i)
			paragraph = append(paragraph, text)
		default:
			paragraph = append(paragraph, text)
		}
	}
	flush(strings.Count(body, "\n") + 1)
	return found
}

// kind is what a line is.
type kind int

const (
	prose      kind = iota // goes on with the paragraph
	block                  // begins one
	nothing                // has no links: empty, code, a comment
	definition             // says where the links of a label lead to
)

// reader knows what the lines before have begun.
type reader struct {
	fence   string // the fence that ends the code block; "": there is none
	comment bool   // in <!-- … -->
	list    bool   // in a list, where what is indented is no code
	text    bool   // in a paragraph, likewise
}

var (
	prefixes = regexp.MustCompile(`^(?:[ \t]{0,3}>[ \t]?)+`)
	item     = regexp.MustCompile(`^[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]+|$)`)
	fences   = regexp.MustCompile("^[ \t]*(`{3,}|~{3,})([^\n]*)$")
	defines  = regexp.MustCompile(`^ {0,3}\[[^\]^\s][^\]]*\]:[ \t]*(?:<([^<>]*)>|([^\s<]\S*))[ \t]*(?:["'(].*)?$`) // no footnotes
	heading  = regexp.MustCompile(`^ {0,3}#{1,6}(?:[ \t]|$)`)
)

// read says what a line is, and what of it is text.
func (r *reader) read(line string) (string, kind) {
	line = prefixes.ReplaceAllString(line, "")
	switch {
	case r.fence != "":
		if end := strings.TrimSpace(line); strings.HasPrefix(end, r.fence) && strings.Trim(end, r.fence[:1]) == "" {
			r.fence = ""
		}
		return "", nothing
	case r.comment:
		r.comment = !strings.Contains(line, "-->")
		return "", nothing
	case strings.TrimSpace(line) == "":
		r.text = false
		return "", nothing
	case !r.list && !r.text && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")):
		return "", nothing
	}
	return r.readText(line)
}

// readText is read for what is neither in a block of code nor empty.
func (r *reader) readText(line string) (string, kind) {
	is := prose
	for marker := item.FindString(line); marker != ""; marker = item.FindString(line) {
		r.list, is, line = true, block, line[len(marker):]
	}
	if is == prose && !r.text && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
		r.list = false
	}
	if f := fences.FindStringSubmatch(line); f != nil && (f[1][0] == '~' || !strings.Contains(f[2], "`")) {
		r.fence, r.text = f[1], false
		return "", nothing
	}
	if strings.HasPrefix(strings.TrimLeft(line, " "), "<!--") {
		r.comment, r.text = !strings.Contains(line, "-->"), false
		return "", nothing
	}
	if d := defines.FindStringSubmatch(line); d != nil && !r.text {
		return d[1] + d[2], definition
	}
	r.text = !heading.MatchString(line)
	if !r.text {
		is = block
	}
	return line, is
}
