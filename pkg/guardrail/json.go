package guardrail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// JSON checks all strings of a JSON value, the names of its members among them, and its numbers. The answer is the value with them masked, which is
// JSON again: the same bytes but for the strings that are masked. A number that is masked becomes a string. A value is looked at together with the name
// of its member, as in `password: …`.
//
// A span's Text counts the strings and numbers of the value as they come, names included; Start and End are in the string as it reads, without escapes.
func (c Checker) JSON(ctx context.Context, g Guardrail, stage Stage, value json.RawMessage) (Decision, json.RawMessage, error) {
	leaves, err := leavesOf(value)
	if err != nil {
		return Decision{}, nil, Fail("What the guardrail was to check is not JSON.", err)
	}
	texts := make([]string, len(leaves))
	for i, l := range leaves {
		texts[i] = l.name + l.text
	}
	d, err := c.Check(ctx, g, stage, texts)
	if err != nil {
		return Decision{}, nil, err
	}
	d.Texts = nil
	found := d.Spans
	d.Spans = nil
	var out bytes.Buffer
	at := 0
	for i, l := range leaves {
		var spans, own []Span
		spans, found = of(i, found)
		for _, s := range spans {
			if s.End -= len(l.name); s.End > 0 { // else it is the name's, which was checked by itself
				s.Start = max(s.Start-len(l.name), 0)
				own = append(own, s)
			}
		}
		if len(own) == 0 {
			continue
		}
		d.Spans = append(d.Spans, own...)
		if d.Action != Block {
			out.Write(value[at:l.start])
			out.Write(l.masked(own))
			at = l.end
		}
	}
	if d.Action == Block {
		return d, nil, nil
	}
	if len(d.Spans) == 0 {
		d.Action, d.Reason = Allow, ""
		return d, value, nil
	}
	out.Write(value[at:])
	return d, out.Bytes(), nil
}

// leaf is a string or a number of a JSON value.
type leaf struct {
	start, end int             // in the value
	text       string          // as it reads
	name       string          // what is looked at before it: the member's name and a colon
	names      map[string]bool // of the names of an object: all of them; nil: it is a value
}

// masked is the leaf with its spans masked, as JSON. Names stay apart.
func (l leaf) masked(spans []Span) []byte {
	text := Render(l.text, spans)
	if l.names != nil {
		base := text
		for n := 2; l.names[text]; n++ {
			text = base + " " + strconv.Itoa(n)
		}
		l.names[text] = true
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// within is an array or object that is being read.
type within struct {
	names map[string]bool // nil: an array
	name  string          // of the member that is read
	named bool            // its name is read
}

func leavesOf(value []byte) (leaves []leaf, err error) {
	if !json.Valid(value) {
		return nil, errors.New("guardrail: not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	stack := []within{{}}
	for {
		before := int(d.InputOffset())
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return leaves, nil
		}
		if err != nil {
			return nil, err
		}
		top := &stack[len(stack)-1]
		l := leaf{start: before, end: int(d.InputOffset()), name: top.name}
		for bytes.IndexByte([]byte(" \t\r\n:,"), value[l.start]) >= 0 {
			l.start++
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				inner := within{name: top.name}
				if t == '{' {
					inner.names = map[string]bool{}
				}
				top.named = false
				stack = append(stack, inner)
			default:
				stack = stack[:len(stack)-1]
			}
			continue
		case string:
			l.text = t
			if top.names != nil && !top.named {
				l.names, l.name = top.names, ""
				top.names[t], top.named, top.name = true, true, t+": "
				leaves = append(leaves, l)
				continue
			}
			leaves = append(leaves, l)
		case json.Number:
			l.text = t.String()
			leaves = append(leaves, l)
		}
		top.named = false
	}
}
