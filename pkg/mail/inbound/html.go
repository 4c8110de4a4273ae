package inbound

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// fromHTML is the text of a mail that has nothing but HTML. It is read as a stream of tags: no tree is made, however deep the tags lie in one another.
func fromHTML(source string) string {
	if len(source) > maxText {
		source = source[:maxText]
	}
	p := page{}
	tags := html.NewTokenizer(strings.NewReader(source))
	tags.SetMaxBuf(maxText)
	for {
		switch tags.Next() {
		case html.ErrorToken:
			p.end()
			return p.out.String()
		case html.TextToken:
			if p.hidden == 0 {
				p.text(string(tags.Text()))
			}
		case html.StartTagToken:
			p.start(tags.Token())
		case html.SelfClosingTagToken:
			p.start(tags.Token())
		case html.EndTagToken:
			p.close(tags.Token())
		}
	}
}

// page is a text that is being written.
type page struct {
	out    strings.Builder
	line   strings.Builder
	quoted int // how many quotations the line is in
	hidden int // how many elements that show nothing it is in
}

var blocks = map[atom.Atom]bool{atom.P: true, atom.Div: true, atom.Tr: true, atom.Li: true, atom.Ul: true, atom.Ol: true, atom.Table: true, atom.H1: true, atom.H2: true, atom.H3: true,
	atom.H4: true, atom.Pre: true, atom.Blockquote: true, atom.Hr: true, atom.Br: true}

var silent = map[atom.Atom]bool{atom.Head: true, atom.Style: true, atom.Script: true, atom.Title: true, atom.Template: true, atom.Noscript: true}

func (p *page) start(t html.Token) {
	if silent[t.DataAtom] {
		p.hidden++
		return
	}
	if !blocks[t.DataAtom] {
		return
	}
	p.end()
	switch {
	case t.DataAtom == atom.Blockquote:
		p.quoted++
	case t.DataAtom == atom.Li:
		p.line.WriteString("- ")
	case outlook(t):
		p.out.WriteString(divider + "\n")
	}
}

func (p *page) close(t html.Token) {
	switch {
	case silent[t.DataAtom]:
		p.hidden = max(p.hidden-1, 0)
	case t.DataAtom == atom.Td || t.DataAtom == atom.Th:
		p.line.WriteByte(' ')
	case blocks[t.DataAtom]:
		p.end()
		if t.DataAtom == atom.Blockquote {
			p.quoted = max(p.quoted-1, 0)
		}
		if t.DataAtom == atom.P {
			p.out.WriteByte('\n')
		}
	}
}

// text adds words to the line; spaces and line ends of HTML are one space.
func (p *page) text(s string) {
	words := strings.Join(strings.Fields(s), " ")
	if strings.TrimLeft(s, " \t\r\n") != s && p.line.Len() > 0 {
		words = " " + words
	}
	if words != " " && words != "" && strings.TrimRight(s, " \t\r\n") != s {
		words += " "
	}
	if p.line.Len() > 0 && strings.HasSuffix(p.line.String(), " ") {
		words = strings.TrimPrefix(words, " ")
	}
	p.line.WriteString(words)
}

// end ends the line.
func (p *page) end() {
	line := strings.TrimSpace(p.line.String())
	p.line.Reset()
	if line == "" {
		return
	}
	if p.quoted > 0 {
		line = strings.Repeat(">", min(p.quoted, 10)) + " " + line
	}
	p.out.WriteString(line + "\n")
}

// outlook reports whether the mails before this one begin here, as Outlook marks it.
func outlook(t html.Token) bool {
	for _, a := range t.Attr {
		if a.Key == "id" && (a.Val == "divRplyFwdMsg" || a.Val == "appendonsend" || a.Val == "OLK_SRC_BODY_SECTION") ||
			a.Key == "data-marker" && a.Val == "__DIVIDER__" {
			return true
		}
	}
	return false
}
