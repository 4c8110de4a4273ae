// Package tape reads a JSON text once, strictly, into a flat list of nodes that point into its bytes.
//
// It exists so that a function's answer goes to a client without being decoded into maps: a node knows where its value starts
// and ends, and where the next one is. Strict means RFC 8259 and more: valid UTF-8, no lone surrogates, one value, nothing after it,
// nesting at most 512 deep. A text that Parse accepts can be copied into a larger JSON text as it stands.
package tape

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Kind is what a node is.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// MaxDepth is the deepest nesting of arrays and objects that Parse accepts.
const MaxDepth = 512

// Node is one value. An object's children are key, value, key, value, …; an array's are its items. They follow their parent.
type Node struct {
	Start, End uint32 // bytes of the value in Src, quotes and brackets included
	Next       uint32 // the node after this value and everything in it
	Kind       Kind
	Escaped    bool // a string that holds a backslash
}

// Doc is a parsed text. Its zero value is ready for Parse, which may be called again to reuse the memory.
type Doc struct {
	Src   []byte
	Nodes []Node // Nodes[0] is the whole value
}

// Parse reads src, which must not change as long as the Doc is used.
func (d *Doc) Parse(src []byte) error {
	if len(src) > math.MaxInt32 {
		return errors.New("JSON text is too long")
	}
	d.Src, d.Nodes = src, d.Nodes[:0]
	p := parser{src: src, nodes: d.Nodes}
	at, err := p.value(p.space(0), 0)
	d.Nodes = p.nodes
	if err != nil {
		return err
	}
	if at = p.space(at); at != len(src) {
		return p.unexpected(at)
	}
	return nil
}

// Raw is the JSON text of a node.
func (d *Doc) Raw(at uint32) []byte { n := &d.Nodes[at]; return d.Src[n.Start:n.End] }

// Kind is the kind of a node.
func (d *Doc) Kind(at uint32) Kind { return d.Nodes[at].Kind }

// End is the node after the children of an array or object; the first child is at+1.
func (d *Doc) End(at uint32) uint32 { return d.Nodes[at].Next }

// Get finds the member of an object; of members with the same name, the first. Any other kind of node has no members.
func (d *Doc) Get(at uint32, name string) (uint32, bool) {
	if d.Nodes[at].Kind != Object {
		return 0, false
	}
	for i, end := at+1, d.Nodes[at].Next; i < end; i = d.Nodes[i+1].Next {
		if d.Is(i, name) {
			return i + 1, true
		}
	}
	return 0, false
}

// Is reports whether the string node holds exactly text.
func (d *Doc) Is(at uint32, text string) bool {
	n := &d.Nodes[at]
	if n.Escaped {
		return d.Text(at) == text
	}
	return int(n.End-n.Start) == len(text)+2 && string(d.Src[n.Start+1:n.End-1]) == text
}

// Text is the decoded value of a string node.
func (d *Doc) Text(at uint32) string {
	n := &d.Nodes[at]
	raw := d.Src[n.Start+1 : n.End-1]
	if !n.Escaped {
		return string(raw)
	}
	return string(unescape(make([]byte, 0, len(raw)), raw))
}

type parser struct {
	src   []byte
	nodes []Node
}

func (p *parser) unexpected(at int) error {
	if at >= len(p.src) {
		return errors.New("unexpected end of JSON text")
	}
	r, _ := utf8.DecodeRune(p.src[at:])
	return fmt.Errorf("unexpected %q at byte %d of JSON text", r, at)
}

func (p *parser) space(at int) int {
	for at < len(p.src) {
		switch p.src[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// add appends a node that starts at start; the caller fills in its end.
func (p *parser) add(kind Kind, start int) int {
	p.nodes = append(p.nodes, Node{Kind: kind, Start: uint32(start)})
	return len(p.nodes) - 1
}

// close ends node i at byte end, after everything added since.
func (p *parser) close(i, end int) int {
	n := &p.nodes[i]
	n.End, n.Next = uint32(end), uint32(len(p.nodes))
	return end
}

func (p *parser) value(at, depth int) (int, error) {
	if at >= len(p.src) {
		return 0, p.unexpected(at)
	}
	switch c := p.src[at]; c {
	case '"':
		return p.text(at)
	case '{':
		return p.object(at, depth+1)
	case '[':
		return p.array(at, depth+1)
	case 't':
		return p.word(at, "true", True)
	case 'f':
		return p.word(at, "false", False)
	case 'n':
		return p.word(at, "null", Null)
	default:
		return p.number(at)
	}
}

func (p *parser) object(at, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, fmt.Errorf("JSON text is nested deeper than %d", MaxDepth)
	}
	node := p.add(Object, at)
	at = p.space(at + 1)
	if at < len(p.src) && p.src[at] == '}' {
		return p.close(node, at+1), nil
	}
	for {
		if at >= len(p.src) || p.src[at] != '"' {
			return 0, p.unexpected(at)
		}
		var err error
		if at, err = p.text(at); err != nil {
			return 0, err
		}
		if at = p.space(at); at >= len(p.src) || p.src[at] != ':' {
			return 0, p.unexpected(at)
		}
		if at, err = p.value(p.space(at+1), depth); err != nil {
			return 0, err
		}
		if at = p.space(at); at >= len(p.src) {
			return 0, p.unexpected(at)
		}
		switch p.src[at] {
		case ',':
			at = p.space(at + 1)
		case '}':
			return p.close(node, at+1), nil
		default:
			return 0, p.unexpected(at)
		}
	}
}

func (p *parser) array(at, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, fmt.Errorf("JSON text is nested deeper than %d", MaxDepth)
	}
	node := p.add(Array, at)
	at = p.space(at + 1)
	if at < len(p.src) && p.src[at] == ']' {
		return p.close(node, at+1), nil
	}
	for {
		var err error
		if at, err = p.value(at, depth); err != nil {
			return 0, err
		}
		if at = p.space(at); at >= len(p.src) {
			return 0, p.unexpected(at)
		}
		switch p.src[at] {
		case ',':
			at = p.space(at + 1)
		case ']':
			return p.close(node, at+1), nil
		default:
			return 0, p.unexpected(at)
		}
	}
}
