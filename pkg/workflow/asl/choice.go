package asl

import (
	"encoding/json"
	"strings"
	"time"
)

// choice is a rule of a Choice state.
type choice struct {
	rule rule
	next string
}

// rule is a boolean expression (op And, Or, Not over rules) or a comparison of what variable finds.
type rule struct {
	op       string
	rules    []rule
	variable *path
	operator *operator
	want     any   // what it is compared with
	wantPath *path // where that is, of the operators that end in Path
	pattern  []string
}

// operator is a comparison: of a type, as an order.
type operator struct {
	what  func(value any) (key any, is bool) // what is compared of a value, nil for those that ask what a value is
	holds func(order int) bool
	is    func(value any) bool
}

var (
	equals = func(order int) bool { return order == 0 }
	orders = map[string]func(int) bool{
		"Equals":            equals,
		"LessThan":          func(order int) bool { return order < 0 },
		"LessThanEquals":    func(order int) bool { return order <= 0 },
		"GreaterThan":       func(order int) bool { return order > 0 },
		"GreaterThanEquals": func(order int) bool { return order >= 0 },
	}
	operators = map[string]*operator{
		"IsNull":        {is: func(v any) bool { return v == nil }},
		"IsPresent":     {is: func(any) bool { return true }},
		"IsBoolean":     {is: func(v any) bool { _, is := v.(bool); return is }},
		"IsNumeric":     {is: func(v any) bool { _, is := v.(json.Number); return is }},
		"IsString":      {is: func(v any) bool { _, is := v.(string); return is }},
		"IsTimestamp":   {is: func(v any) bool { _, is := timestamp(v); return is }},
		"BooleanEquals": {what: aBoolean, holds: equals},
		"StringMatches": {what: aText},
	}
)

func init() {
	for name, holds := range orders {
		operators["String"+name] = &operator{what: aText, holds: holds}
		operators["Numeric"+name] = &operator{what: aNumeric, holds: holds}
		operators["Timestamp"+name] = &operator{what: timestamp, holds: holds}
	}
}

func aBoolean(v any) (any, bool) { _, is := v.(bool); return v, is }
func aText(v any) (any, bool)    { _, is := v.(string); return v, is }
func aNumeric(v any) (any, bool) { _, is := v.(json.Number); return v, is }

// timestamp is a time as RFC 3339 has it, with T and, in UTC, Z.
func timestamp(v any) (any, bool) {
	text, is := v.(string)
	if !is || strings.ContainsAny(text, "tz, ") {
		return nil, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}

// Choose is the state that a Choice goes on to: that of the first rule that holds, else its Default, else States.NoChoiceMatched.
func (s *State) Choose(input any, c Context) (next string, f *Failure) {
	e := evaluate(input, c)
	for i := range s.choices {
		holds := e.decide(&s.choices[i].rule)
		if e.failed != nil {
			return "", e.failed
		}
		if holds {
			return s.choices[i].next, nil
		}
	}
	if s.fallback == "" {
		return "", failure(ErrorNoChoice, "No choice of the state '%s' matches, and there is no Default", s.Name)
	}
	return s.fallback, nil
}

func (e *evaluation) decide(r *rule) bool {
	if !e.spend(1) {
		return false
	}
	switch r.op {
	case "And":
		for i := range r.rules {
			if !e.decide(&r.rules[i]) {
				return false
			}
		}
		return true
	case "Or":
		for i := range r.rules {
			if e.decide(&r.rules[i]) {
				return true
			}
		}
		return false
	case "Not":
		return !e.decide(&r.rules[0])
	}
	value, has := e.find(r.variable)
	if r.op == "IsPresent" {
		return has == r.want.(bool)
	}
	if !has {
		e.fail(ErrorRuntime, "Invalid path '%s': The choice state's condition path references an invalid value", r.variable.text)
		return false
	}
	if r.operator.is != nil {
		return r.operator.is(value) == r.want.(bool)
	}
	want := r.want
	if r.wantPath != nil {
		if want, has = e.find(r.wantPath); !has {
			e.fail(ErrorRuntime, "Invalid path '%s': The choice state's condition path references an invalid value", r.wantPath.text)
			return false
		}
	}
	return e.compared(r, value, want)
}

// compared is false of values that are not what the operator compares.
func (e *evaluation) compared(r *rule, value, want any) bool {
	a, is := r.operator.what(value)
	if !is {
		return false
	}
	if r.pattern != nil {
		return e.like(a.(string), r.pattern)
	}
	b, is := r.operator.what(want)
	if !is {
		return false
	}
	switch x := a.(type) {
	case bool:
		return x == b.(bool)
	case string:
		e.spend(len(x) / 16)
		return r.operator.holds(strings.Compare(x, b.(string)))
	case json.Number:
		e.spend(len(x) / 16)
		return r.operator.holds(compare(x, b.(json.Number)))
	}
	return r.operator.holds(a.(time.Time).Compare(b.(time.Time)))
}

// wildcard is the texts between the stars of a StringMatches; a backslash takes the next character as it is.
func wildcard(text string) (parts []string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case text[i] == '*':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(text[i])
		}
	}
	return append(parts, b.String())
}

// like says whether a text is the parts with anything between them.
func (e *evaluation) like(text string, parts []string) bool {
	e.spend(len(text)/4 + len(parts))
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == first
	}
	text, starts := strings.CutPrefix(text, first)
	text, ends := strings.CutSuffix(text, last)
	if !starts || !ends {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
