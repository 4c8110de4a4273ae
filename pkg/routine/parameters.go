package routine

import (
	"fmt"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// finding is one thing to say of a verb's parameters: a problem, or a literal id to look up.
type finding struct {
	place   string // JSON pointer, from the parameters on
	problem string
	of      of
	id      string
}

// checkParameters finds what is wrong with what a verb is told, and what it names. In a template a value whose name ends in ".$" is made by the run, and
// looked at then.
func checkParameters(v Verb, given map[string]any, template bool) (found []finding) {
	problem := func(place, format string, args ...any) {
		found = append(found, finding{place: place, problem: fmt.Sprintf(format, args...)})
	}
	known := map[string]bool{}
	for _, p := range parameters[v] {
		known[p.name] = true
		value, literal := given[p.name]
		made := false
		if template {
			known[p.name+".$"] = true
			_, made = given[p.name+".$"]
		}
		switch place := "/" + p.name; {
		case literal && value == nil && !p.required: // as if it were left out
		case literal:
			found = append(found, p.check(place, value)...)
		case p.required && !made:
			problem("", "%s is required", p.name)
		}
	}
	for _, name := range sorted(given) {
		if !known[name] {
			problem("/"+escape(name), "%s%s has no parameter of that name", Scheme, v)
		}
	}
	if v == StartRoutine {
		byID, byName := has(given, "routineId", template), has(given, "routine", template)
		if byID == byName {
			problem("", "one of routineId and routine is required")
		}
	}
	return found
}

// has reports whether a parameter is given.
func has(given map[string]any, name string, template bool) bool {
	_, made := given[name+".$"]
	return given[name] != nil || template && made
}

// check is what is wrong with a literal value, or whom it names.
func (p parameter) check(place string, value any) []finding {
	wrong := func(format string, args ...any) []finding {
		return []finding{{place: place, problem: fmt.Sprintf(format, args...)}}
	}
	switch p.kind {
	case words, identity:
		s, ok := value.(string)
		if !ok {
			return wrong("%s must be a text", p.name)
		}
		if p.kind == identity && !ident.Valid(s) {
			return wrong("%s must be an id", p.name)
		}
		if p.kind == words {
			if err := text.Check(p.name, s, 1, p.max); err != nil {
				return wrong("%s", fault.From(err).Message)
			}
		}
		if p.of != ofNothing {
			return []finding{{place: place, of: p.of, id: s}}
		}
	case flag:
		if _, ok := value.(bool); !ok {
			return wrong("%s must be true or false", p.name)
		}
	case object:
		if _, ok := value.(map[string]any); !ok {
			return wrong("%s must be an object", p.name)
		}
	case addresses:
		if s, ok := value.(string); ok {
			value = []any{s}
		}
		return p.list(place, value, func(s string) bool { return len(s) <= 320 && strings.Contains(s, "@") }, "an e-mail address")
	case people:
		return p.list(place, value, ident.Valid, "a user's id")
	}
	return nil
}

// list is what is wrong with a list of texts.
func (p parameter) list(place string, value any, ok func(string) bool, what string) (found []finding) {
	entries, is := value.([]any)
	if !is || len(entries) == 0 || len(entries) > p.max {
		return []finding{{place: place, problem: fmt.Sprintf("%s must be a list of 1 to %d", p.name, p.max)}}
	}
	for i, e := range entries {
		at := fmt.Sprintf("%s/%d", place, i)
		if s, is := e.(string); !is || !ok(s) {
			found = append(found, finding{place: at, problem: "this is not " + what})
		} else if p.of != ofNothing {
			found = append(found, finding{place: at, of: p.of, id: s})
		}
	}
	return found
}
