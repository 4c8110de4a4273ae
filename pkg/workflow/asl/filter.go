package asl

import (
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// condition is what a filter says of a value: both, or one of two, a negation, or a comparison.
type condition struct {
	op          string // "&&", "||", "!", a comparison's, or "" for: there is a left
	first, next *condition
	left, right operand
	pattern     string // =~
}

// operand is a value or what a path finds.
type operand struct {
	value any
	path  *path // nil: value
	root  bool  // it begins with $, not with @
}

var comparisons = []string{"==", "!=", "<=", ">=", "<", ">", "=~", "in ", "nin "} // longer ones before what they begin with

// either reads conditions between ||; both those between &&, which bind closer.
func (c *cursor) either(depth int) (*condition, error) { return c.joined("||", depth, c.both) }
func (c *cursor) both(depth int) (*condition, error)   { return c.joined("&&", depth, c.single) }

func (c *cursor) joined(op string, depth int, read func(int) (*condition, error)) (*condition, error) {
	left, err := read(depth)
	for n := 0; err == nil; n++ {
		c.space()
		if !c.take(op) {
			return left, nil
		}
		if n >= maxSteps {
			return nil, fmt.Errorf("%q: more than %d conditions", clip(c.text), maxSteps)
		}
		var right *condition
		right, err = read(depth)
		left = &condition{op: op, first: left, next: right}
	}
	return nil, err
}

func (c *cursor) single(depth int) (*condition, error) {
	if depth > maxFilter {
		return nil, fmt.Errorf("%q: filters are nested deeper than %d", clip(c.text), maxFilter)
	}
	c.space()
	if c.take("!") {
		inner, err := c.single(depth + 1)
		return &condition{op: "!", first: inner}, err
	}
	if c.take("(") {
		inner, err := c.either(depth + 1)
		if err == nil {
			c.space()
			if !c.take(")") {
				err = c.wrong(")")
			}
		}
		return inner, err
	}
	left, err := c.operand(depth)
	if err != nil {
		return nil, err
	}
	c.space()
	for _, op := range comparisons {
		if c.take(op) {
			return c.compared(left, strings.TrimSpace(op), depth)
		}
	}
	if left.path == nil {
		return nil, c.wrong("one of " + strings.Join(comparisons, " "))
	}
	return &condition{left: left}, nil
}

func (c *cursor) compared(left operand, op string, depth int) (*condition, error) {
	c.space()
	if op == "=~" {
		pattern, err := c.pattern()
		return &condition{op: op, left: left, pattern: pattern}, err
	}
	right, err := c.operand(depth)
	return &condition{op: op, left: left, right: right}, err
}

func (c *cursor) operand(depth int) (o operand, err error) {
	switch b := c.peek(); {
	case b == '@' || b == '$':
		o.root = b == '$'
		if o.path, err = c.path(b, depth+1); err == nil && o.path.context {
			err = fmt.Errorf("%q: a filter does not see $$", clip(c.text))
		}
	case b == '\'' || b == '"':
		o.value, err = c.quoted()
	case b == '[':
		o.value, err = c.list()
	default:
		o.value, err = c.literal()
	}
	return o, err
}

// list reads literals in brackets.
func (c *cursor) list() (any, error) {
	list := []any{}
	c.at++
	for {
		if c.space(); c.take("]") {
			return list, nil
		}
		if len(list) > 0 && !c.take(",") {
			return nil, c.wrong(", or ]")
		}
		c.space()
		var item any
		var err error
		if c.peek() == '\'' || c.peek() == '"' {
			item, err = c.quoted()
		} else {
			item, err = c.literal()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
}

var literal = regexp.MustCompile(`^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)`)

// literal reads true, false, null or a number.
func (c *cursor) literal() (any, error) {
	word := literal.FindString(c.text[c.at:])
	if c.at += len(word); word == "" || isName(c.peek()) {
		return nil, c.wrong("a path or a value")
	}
	switch word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	}
	return json.Number(word), nil
}

// pattern reads a regular expression as /…/ or /…/i, or in quotes. It is for the whole of a text. A definition may have very many of them, so that they
// are compiled where they are used, and one cannot be long for its text.
func (c *cursor) pattern() (string, error) {
	flags, expression := "", ""
	if c.peek() != '/' {
		if c.peek() != '\'' && c.peek() != '"' {
			return "", c.wrong("a regular expression")
		}
		var err error
		if expression, err = c.quoted(); err != nil {
			return "", err
		}
	} else {
		end := c.at + 1
		for end < len(c.text) && c.text[end] != '/' {
			if c.text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(c.text) {
			return "", c.wrong("the end of a regular expression")
		}
		expression = c.text[c.at+1 : end]
		if c.at = end + 1; c.take("i") {
			flags = "(?i)"
		}
	}
	if len(expression) > 256 {
		return "", fmt.Errorf("%q: a regular expression has at most 256 bytes", clip(c.text))
	}
	if strings.ContainsRune(expression, '{') {
		return "", fmt.Errorf("%q: a regular expression has no {}", clip(c.text))
	}
	pattern := flags + "^(?:" + expression + ")$"
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
		return "", fmt.Errorf("%q: %w", clip(c.text), err)
	}
	return pattern, nil
}
