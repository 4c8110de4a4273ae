package asl

import (
	"fmt"
	"strings"
)

// path is a JSONPath, as Step Functions takes it: names, indices, slices without a step, *, .. and filters; no functions and no lists of names.
type path struct {
	text     string
	context  bool // $$
	steps    []step
	definite bool // it finds one value or none: names and single indices only
}

// step goes from a value to some in it.
type step struct {
	kind     kind
	name     string // named
	indices  []int  // indexed; below 0 from the end
	from, to *int   // sliced
	filter   *condition
}

type kind byte

const (
	named kind = iota
	indexed
	sliced
	every   // *
	descend // ..: the value and all in it that is an object or array, for the step after it
	filtered
)

// Limits of a path, which keep its cost within what MaxWork expects of a step.
const (
	maxSteps  = 64
	maxFilter = 10 // filters and their brackets in each other
)

// parsePath reads a whole text that has to be a path.
func parsePath(text string) (*path, error) {
	c := &cursor{text: text}
	p, err := c.path('$', 0)
	if err == nil && c.at < len(text) {
		err = c.wrong("a path's end, . or [")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// parseReference reads a Reference Path: one that names one place.
func parseReference(text string) (*path, error) {
	p, err := parsePath(text)
	if err != nil {
		return nil, err
	}
	if !p.definite {
		return nil, fmt.Errorf("%q is no Reference Path: only names and single indices", clip(text))
	}
	for _, s := range p.steps {
		if s.kind == indexed && s.indices[0] < 0 {
			return nil, fmt.Errorf("%q is no Reference Path: an index is 0 or more", clip(text))
		}
	}
	return p, nil
}

// path reads one that begins with root: $ (where $$ is one, too) or, in filters, @.
func (c *cursor) path(root byte, depth int) (*path, error) {
	start := c.at
	if c.peek() != root {
		return nil, c.wrong("a path, which begins with " + string(root))
	}
	c.at++
	p := &path{definite: true}
	if root == '$' {
		p.context = c.take("$")
		if b := c.peek(); b != 0 && isName(b) {
			return nil, fmt.Errorf("%q: variables are not supported", clip(c.text))
		}
	}
	for {
		if len(p.steps) > maxSteps {
			return nil, fmt.Errorf("%q: a path of more than %d steps", clip(c.text), maxSteps)
		}
		var err error
		switch {
		case c.take(".."):
			p.steps = append(p.steps, step{kind: descend})
			if c.peek() == '[' {
				c.at++
				err = c.bracket(p, depth)
			} else {
				err = c.dotted(p)
			}
		case c.take("."):
			err = c.dotted(p)
		case c.take("["):
			err = c.bracket(p, depth)
		default:
			p.text = c.text[start:c.at]
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		if last := p.steps[len(p.steps)-1]; last.kind != named && (last.kind != indexed || len(last.indices) > 1) || p.steps[max(0, len(p.steps)-2)].kind == descend {
			p.definite = false
		}
	}
}

// isName says whether a byte may be in a name that is not in quotes.
func isName(b byte) bool {
	return b > ' ' && b != 0x7f && !strings.ContainsRune(".[](),'\"*?@$&|=<>!~{}\\", rune(b))
}

// dotted reads what follows a dot.
func (c *cursor) dotted(p *path) error {
	if c.take("*") {
		p.steps = append(p.steps, step{kind: every})
		return nil
	}
	start := c.at
	for c.at < len(c.text) && isName(c.text[c.at]) {
		c.at++
	}
	if c.at == start {
		return c.wrong("a name or *")
	}
	if c.peek() == '(' {
		return fmt.Errorf("%q: a path has no functions", clip(c.text))
	}
	p.steps = append(p.steps, step{kind: named, name: c.text[start:c.at]})
	return nil
}

// bracket reads what follows an opening bracket, and the closing one.
func (c *cursor) bracket(p *path, depth int) error {
	c.space()
	s, err := c.inBrackets(depth)
	if err != nil {
		return err
	}
	c.space()
	if s.kind == named && c.peek() == ',' {
		return fmt.Errorf("%q: lists of names are not supported", clip(c.text))
	}
	if !c.take("]") {
		return c.wrong("]")
	}
	p.steps = append(p.steps, s)
	return nil
}

func (c *cursor) inBrackets(depth int) (step, error) {
	switch b := c.peek(); {
	case b == '*':
		c.at++
		return step{kind: every}, nil
	case b == '\'' || b == '"':
		name, err := c.quoted()
		return step{kind: named, name: name}, err
	case c.take("?"):
		if depth >= maxFilter {
			return step{}, fmt.Errorf("%q: filters are nested deeper than %d", clip(c.text), maxFilter)
		}
		c.space()
		if c.peek() != '(' {
			return step{}, c.wrong("(")
		}
		filter, err := c.either(depth + 1)
		return step{kind: filtered, filter: filter}, err
	}
	first, has, err := c.index()
	if err != nil {
		return step{}, err
	}
	c.space()
	if c.take(":") {
		s := step{kind: sliced}
		if has {
			s.from = &first
		}
		c.space()
		last, bounded, err := c.index()
		if bounded {
			s.to = &last
		}
		if err == nil && !has && !bounded {
			err = c.wrong("an index")
		}
		return s, err
	}
	if !has {
		return step{}, c.wrong("an index, a name in quotes, * or ?")
	}
	s := step{kind: indexed, indices: []int{first}}
	for c.take(",") {
		c.space()
		next, has, err := c.index()
		if err == nil && !has {
			err = c.wrong("an index")
		}
		if err != nil {
			return step{}, err
		}
		s.indices = append(s.indices, next)
		c.space()
	}
	return s, nil
}
