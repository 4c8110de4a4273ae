package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Codes of problems, which are those of Step Functions' ValidateStateMachineDefinition.
const (
	notJSON       = "INVALID_JSON_DESCRIPTION"
	schemaFailed  = "SCHEMA_VALIDATION_FAILED"
	missingTarget = "MISSING_TRANSITION_TARGET" // also of states that nothing leads to, or that lead to no end
)

const (
	maxProblems = 100 // that are told
	maxText     = 200 // levels of a definition's text, which MaxNesting of machines do not reach
)

// reader reads a definition and keeps what is wrong with it.
type reader struct {
	dialect  Dialect
	problems []workflow.Problem
	names    map[string]bool // of states
}

func (r *reader) problem(code, at, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, workflow.Problem{Code: code, Message: fmt.Sprintf(format, args...), Location: at})
	}
}

// pointed is a name as part of a JSON pointer.
func pointed(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// json reads a whole text. Names that an object has twice are problems: the second would silently take the first's place.
func (r *reader) json(text string) (value any, ok bool) {
	err := errors.New("the text is not UTF-8")
	if utf8.ValidString(text) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if value, err = r.value(d, "", 0); err == nil {
			if _, err = d.Token(); errors.Is(err, io.EOF) {
				return value, true
			}
			err = errors.New("there is something behind the definition")
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	r.problem(notJSON, "", "The definition is not JSON: %s", err)
	return nil, false
}

func (r *reader) value(d *json.Decoder, at string, depth int) (any, error) {
	if depth > maxText {
		return nil, fmt.Errorf("nested deeper than %d", maxText)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := r.value(d, fmt.Sprintf("%s/%d", at, len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		fields := map[string]any{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := token.(string) // or there was an error
			place := at + "/" + pointed(name)
			if _, twice := fields[name]; twice {
				r.problem(schemaFailed, place, "The field is there twice")
			}
			if fields[name], err = r.value(d, place, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return fields, err
	}
	return token, nil
}

// object is an object of a definition.
type object struct {
	*reader
	at     string
	fields map[string]any
}

// object is value as one; what is none is a problem, and then an empty one.
func (r *reader) object(value any, at string) object {
	fields, is := value.(map[string]any)
	if !is {
		r.problem(schemaFailed, at, "The value should be an object, but is %s", kindOf(value))
	}
	return object{r, at, fields}
}

func (o object) place(name string) string { return o.at + "/" + pointed(name) }

func (o object) has(name string) bool { _, has := o.fields[name]; return has }

func (o object) wrong(name, format string, args ...any) {
	o.problem(schemaFailed, o.place(name), format, args...)
}

// only makes each field a problem that is none of those: with what is said of it, if it is one that is known.
func (o object) only(of string, allowed ...string) {
next:
	for _, name := range names(o.fields) {
		for _, a := range allowed {
			if name == a {
				continue next
			}
		}
		if why := unsupported[name]; why != "" {
			o.wrong(name, "%s", why)
			continue
		}
		o.wrong(name, "Field '%s' is not supported in %s", clip(name), of)
	}
}

const (
	noJSONata      = "JSONata is not supported: definitions are JSONPath's"
	noVariables    = "Variables are not supported"
	noDistribution = "A distributed Map is not supported: its items are in its input, and its Mode is INLINE"
)

var unsupported = map[string]string{
	"Arguments": noJSONata, "Output": noJSONata, "Condition": noJSONata, "Items": noJSONata,
	"Assign":     noVariables,
	"ItemReader": noDistribution, "ItemBatcher": noDistribution, "ResultWriter": noDistribution, "Label": noDistribution,
	"ToleratedFailureCount": noDistribution, "ToleratedFailureCountPath": noDistribution,
	"ToleratedFailurePercentage": noDistribution, "ToleratedFailurePercentagePath": noDistribution,
	"Credentials": "Credentials are not supported: a task has the platform's",
}

// text is a field that is a string: not an empty one if it is needed.
func (o object) text(name string, needed bool) string {
	value, has := o.fields[name]
	text, is := value.(string)
	switch {
	case !has && !needed:
	case !has:
		o.problem(schemaFailed, o.at, "The field '%s' is missing", name)
	case !is:
		o.wrong(name, "The value should be a string, but is %s", kindOf(value))
	case needed && text == "":
		o.wrong(name, "The value is empty")
	}
	return text
}

// integer is a field that is one within least and most; without it, or if it is wrong, it is otherwise.
func (o object) integer(name string, least, most, otherwise int64) int64 {
	value, has := o.fields[name]
	if !has {
		return otherwise
	}
	n, is := integer(value)
	if !is || n < least || n > most {
		o.wrong(name, "The value should be an integer from %d to %d", least, most)
		return otherwise
	}
	return n
}

// path is a field that is one, nil without it.
func (o object) path(name string, parse func(string) (*path, error)) *path {
	if !o.has(name) {
		return nil
	}
	text, is := o.fields[name].(string)
	if !is {
		o.wrong(name, "The value should be a path, but is %s", kindOf(o.fields[name]))
		return nil
	}
	p, err := parse(text)
	if err != nil {
		o.wrong(name, "%s", err)
	}
	return p
}

// list is a field that is an array of one or more.
func (o object) list(name string) []any {
	value := o.fields[name]
	list, is := value.([]any)
	if !is || len(list) == 0 {
		if !o.has(name) {
			o.problem(schemaFailed, o.at, "The field '%s' is missing", name)
		} else {
			o.wrong(name, "The value should be an array that is not empty")
		}
	}
	return list
}

// oneOf says which of two fields there is: both are a problem, and none if one is needed.
func (o object) oneOf(first, second string, needed bool) {
	switch one, other := o.has(first), o.has(second); {
	case one && other:
		o.wrong(second, "There are both '%s' and '%s'", first, second)
	case !one && !other && needed:
		o.problem(schemaFailed, o.at, "The field '%s' or '%s' is missing", first, second)
	}
}

// query makes a query language a problem that is not JSONPath.
func (o object) query() {
	if o.has("QueryLanguage") && o.fields["QueryLanguage"] != "JSONPath" {
		o.wrong("QueryLanguage", "%s", noJSONata)
	}
}
