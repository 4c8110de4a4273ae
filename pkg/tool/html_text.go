package tool

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText is a page as text: paragraphs, headings and list items on lines of their own, links as [text](URL), what nobody reads left out. It goes through
// the tags as they come, so that no nesting costs anything.
func htmlText(page string, at *url.URL) string {
	p := printer{at: at}
	tags := html.NewTokenizer(strings.NewReader(page))
	tags.SetMaxBuf(1 << 20)
	for {
		kind := tags.Next()
		if kind == html.ErrorToken {
			return p.text()
		}
		switch token := tags.Token(); kind {
		case html.TextToken:
			p.say(token.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			p.open(token, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			p.close(token)
		}
	}
}

// printer writes text, with one space or some line ends where the page has any white space.
type printer struct {
	at     *url.URL
	out    strings.Builder
	lines  int  // line ends that are due before the next word
	space  bool // a space is
	glue   bool // neither comes: what was written begins something
	hidden atom.Atom
	depth  int    // of elements of that name
	pre    int    // elements that keep their white space
	link   string // URL of the link that is open
}

// unread are elements whose text nobody reads.
var unread = map[atom.Atom]bool{atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true, atom.Iframe: true, atom.Object: true, atom.Select: true}

// blocks begin and end lines, some with an empty one between.
var blocks = map[atom.Atom]int{atom.P: 2, atom.Div: 1, atom.Section: 2, atom.Article: 2, atom.Header: 2, atom.Footer: 2, atom.Main: 2, atom.Nav: 2, atom.Aside: 2, atom.Ul: 2, atom.Ol: 2,
	atom.Li: 1, atom.Table: 2, atom.Tr: 1, atom.Blockquote: 2, atom.Pre: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Dl: 2, atom.Dt: 1, atom.Dd: 1,
	atom.Form: 2, atom.Figure: 2, atom.Figcaption: 1, atom.Title: 2, atom.Body: 2, atom.Details: 2, atom.Summary: 1}

var marks = map[atom.Atom]string{atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ", atom.Title: "# "}

func (p *printer) open(t html.Token, closed bool) {
	switch {
	case p.hidden != 0:
		if t.DataAtom == p.hidden && !closed {
			p.depth++
		}
		return
	case unread[t.DataAtom]:
		if !closed {
			p.hidden, p.depth = t.DataAtom, 1
		}
		return
	}
	p.due(blocks[t.DataAtom])
	switch t.DataAtom {
	case atom.Br:
		p.due(1)
	case atom.Td, atom.Th:
		p.space = true
	case atom.Pre:
		p.pre++
	case atom.A:
		p.endLink()
		if to, err := p.at.Parse(attribute(t, "href")); err == nil && attribute(t, "href") != "" && (to.Scheme == "https" || to.Scheme == "http") && to.User == nil {
			p.write("[")
			p.glue = true
			p.link = to.String()
		}
	case atom.Img:
		p.say(attribute(t, "alt"))
	default:
		if mark := marks[t.DataAtom]; mark != "" {
			p.write(mark)
			p.glue = true
		}
	}
}

func (p *printer) close(t html.Token) {
	if p.hidden != 0 {
		if t.DataAtom == p.hidden {
			if p.depth--; p.depth == 0 {
				p.hidden = 0
			}
		}
		return
	}
	switch t.DataAtom {
	case atom.A:
		p.endLink()
	case atom.Pre:
		p.pre = max(0, p.pre-1)
	}
	p.glue = p.glue && blocks[t.DataAtom] == 0
	p.due(blocks[t.DataAtom])
}

func (p *printer) endLink() {
	if p.link != "" {
		p.glue = false
		p.out.WriteString("](" + p.link + ")")
		p.link = ""
	}
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func (p *printer) due(lines int) { p.lines = max(p.lines, lines) }

// say writes text of the page.
func (p *printer) say(s string) {
	if p.hidden != 0 || s == "" {
		return
	}
	if p.pre > 0 {
		p.write(strings.TrimPrefix(s, "\n"))
		return
	}
	words := strings.Fields(s)
	if strings.TrimLeft(s, " \t\r\n\f") != s {
		p.space = true
	}
	for i, w := range words {
		p.space = p.space || i > 0
		p.write(w)
	}
	if len(words) > 0 && strings.TrimRight(s, " \t\r\n\f") != s {
		p.space = true
	}
}

// write writes what is due, and s.
func (p *printer) write(s string) {
	switch {
	case p.out.Len() == 0 || p.glue:
	case p.lines > 0:
		p.out.WriteString(strings.Repeat("\n", p.lines))
	case p.space:
		p.out.WriteByte(' ')
	}
	p.lines, p.space, p.glue = 0, false, false
	p.out.WriteString(s)
}

func (p *printer) text() string {
	p.endLink()
	return p.out.String()
}
