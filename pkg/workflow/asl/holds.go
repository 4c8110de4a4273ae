package asl

import (
	"encoding/json"
	"regexp"
	"strings"
)

// holds says whether a condition is true of a value.
func (e *evaluation) holds(c *condition, value, root any) bool {
	if !e.spend(1) {
		return false
	}
	switch c.op {
	case "&&":
		return e.holds(c.first, value, root) && e.holds(c.next, value, root)
	case "||":
		return e.holds(c.first, value, root) || e.holds(c.next, value, root)
	case "!":
		return !e.holds(c.first, value, root)
	}
	left, has := e.operand(&c.left, value, root)
	switch c.op {
	case "":
		list, isList := left.([]any)
		return has && (c.left.path.definite || isList && len(list) > 0)
	case "=~":
		text, is := left.(string)
		return is && e.spend(len(text)) && e.compiled(c).MatchString(text)
	}
	right, there := e.operand(&c.right, value, root)
	if c.op == "!=" {
		return has != there || has && !e.equal(left, right)
	}
	if !has || !there {
		return false
	}
	switch c.op {
	case "==":
		return e.equal(left, right)
	case "in", "nin":
		list, is := right.([]any)
		return is && e.among(list, left) == (c.op == "in")
	}
	order, comparable := ordered(left, right)
	switch {
	case !comparable:
		return false
	case c.op == "<":
		return order < 0
	case c.op == "<=":
		return order <= 0
	case c.op == ">":
		return order > 0
	}
	return order >= 0
}

func (e *evaluation) compiled(c *condition) *regexp.Regexp {
	pattern := e.patterns[c]
	if pattern == nil {
		if pattern = regexp.MustCompile(c.pattern); e.patterns == nil {
			e.patterns = map[*condition]*regexp.Regexp{}
		}
		e.patterns[c] = pattern
		e.spend(len(c.pattern) * 100)
	}
	return pattern
}

func (e *evaluation) operand(o *operand, value, root any) (any, bool) {
	switch {
	case o.path == nil:
		return o.value, true
	case o.root:
		return e.findIn(root, root, o.path)
	}
	return e.findIn(value, root, o.path)
}

func (e *evaluation) among(list []any, value any) bool {
	for _, item := range list {
		if e.equal(item, value) {
			return true
		}
	}
	return false
}

// ordered is -1, 0 or 1 for two numbers or two texts.
func ordered(a, b any) (order int, comparable bool) {
	switch x := a.(type) {
	case json.Number:
		if y, is := b.(json.Number); is {
			return compare(x, y), true
		}
	case string:
		if y, is := b.(string); is {
			return strings.Compare(x, y), true
		}
	}
	return 0, false
}
