package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Limits of what redaction keeps.
const (
	maxRemoved = 50 // names of removed fields
	maxName    = 64 // bytes of such a name, and of a member's name inside a payload
	maxDepth   = 32 // objects and arrays inside a payload field
)

// redact keeps of a payload what the rule lists, scrubbed, and names what it removed: sorted, each once. A field that is null is absent.
func redact(r rule, payload map[string]any) (kept map[string]any, removed []string, err error) {
	kept = make(map[string]any, len(r))
	for name, value := range payload {
		s, listed := r[name]
		if !listed {
			if err := checkText("the name of a payload field", name); err != nil {
				return nil, nil, err
			}
			removed = append(removed, name)
			continue
		}
		f := field{name: name}
		v, err := f.normal(value, 0)
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			continue
		}
		if v = f.take(s, v); v == nil {
			removed = append(removed, name)
			continue
		}
		kept[name] = v
		removed = append(removed, f.removed...)
	}
	for i, name := range removed {
		removed[i] = clean(name, maxName)
	}
	slices.Sort(removed)
	removed = slices.Compact(removed)
	return kept, removed[:min(len(removed), maxRemoved)], nil
}

// field is one listed field of a payload on its way into the envelope.
type field struct {
	name    string
	removed []string // what was removed inside it
}

// take is the field's value in its shape, scrubbed; nil when it has another shape.
func (f *field) take(s shape, v any) any {
	switch list, isList := v.([]any); {
	case s == tree:
		return f.scrub("", v)
	case s == scalars && isList:
		for i := range list {
			if list[i] = f.take(scalar, list[i]); list[i] == nil {
				return nil
			}
		}
		return list
	}
	switch text, isText := v.(string); {
	case s == web && isText:
		return cleanURL(text)
	case s == web:
		return nil
	case isText:
		return clean(text, MaxString)
	}
	switch v.(type) {
	case bool, int64:
		return v
	}
	return nil
}

// scrub cleans a tree: the texts in it, the names of its members, and the values of those whose name says that they give access.
func (f *field) scrub(name string, v any) any {
	switch v := v.(type) {
	case string:
		if isURL(name) {
			return cleanURL(v)
		}
		return clean(v, MaxString)
	case []any:
		for i := range v {
			v[i] = f.scrub(name, v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, member := range slices.Sorted(maps.Keys(v)) {
			cleaned := clean(member, maxName)
			if _, taken := out[cleaned]; taken { // two names that are the same once they are clean
				f.removed = append(f.removed, f.name+"."+cleaned)
				continue
			}
			if givesAccess(cleaned) {
				out[cleaned] = redacted
			} else {
				out[cleaned] = f.scrub(cleaned, v[member])
			}
		}
		return out
	}
	return v
}

// normal turns a Go value into what JSON has: nil, bool, string, int64, []any, map[string]any, all of them new. What a caller of the API can
// get wrong is a fault; a value that no JSON has is a mistake in the platform.
func (f *field) normal(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fault.Invalid("payload.%s is nested deeper than %d", f.name, maxDepth)
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return v, checkText("payload."+f.name, v)
	case json.Number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != string(v) {
			return nil, f.number()
		}
		return f.integer(n)
	case float64:
		if math.Trunc(v) != v || math.Abs(v) > canonical.MaxInteger || v == 0 && math.Signbit(v) {
			return nil, f.number()
		}
		return int64(v), nil
	}
	return f.reflected(reflect.ValueOf(v), depth)
}

// reflected is normal for values of named types, pointers, lists and maps.
func (f *field) reflected(v reflect.Value, depth int) (any, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return f.normal(v.Elem().Interface(), depth+1)
	case reflect.String:
		return f.normal(v.String(), depth)
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return f.integer(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return f.integer(int64(min(v.Uint(), math.MaxInt64)))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break // bytes are not text
		}
		list := make([]any, v.Len())
		for i := range list {
			var err error
			if list[i], err = f.normal(v.Index(i).Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		object := make(map[string]any, v.Len())
		for i := v.MapRange(); i.Next(); {
			member := i.Key().String()
			if err := checkText("payload."+f.name, member); err != nil {
				return nil, err
			}
			var err error
			if object[member], err = f.normal(i.Value().Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("audit: payload.%s: a %s cannot be recorded", f.name, v.Type())
}

func (f *field) integer(n int64) (any, error) {
	if n > canonical.MaxInteger || n < -canonical.MaxInteger {
		return nil, f.number()
	}
	return n, nil
}

func (f *field) number() error {
	return fault.Invalid("payload.%s: a number must be an integer within ±(2^53−1)", f.name)
}

func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fault.Invalid("%s must be valid UTF-8", what)
	}
	return nil
}
