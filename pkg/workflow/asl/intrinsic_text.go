package asl

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// maxChars is how much Base64 and Hash take.
const maxChars = 10_000

func charsOf(arguments []any, i int) (string, error) {
	s, err := aString(arguments, i)
	if err == nil && utf8.RuneCountInString(s) > maxChars {
		err = fmt.Errorf("argument %d is longer than %d characters", i+1, maxChars)
	}
	return s, err
}

func base64Encode(e *evaluation, arguments []any) (any, error) {
	s, err := charsOf(arguments, 0)
	if err != nil || !e.make(len(s)) {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func base64Decode(e *evaluation, arguments []any) (any, error) {
	s, err := charsOf(arguments, 0)
	if err != nil || !e.make(len(s)) {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || !utf8.Valid(b) {
		return nil, errors.New("argument 1 is no text in Base64")
	}
	return string(b), nil
}

func hash(e *evaluation, arguments []any) (any, error) {
	s, err := charsOf(arguments, 0)
	if err != nil {
		return nil, err
	}
	algorithm, err := aString(arguments, 1)
	if err != nil || !e.make(len(s)) {
		return nil, err
	}
	var sum []byte
	switch data := []byte(s); algorithm {
	case "MD5": // which some services want still: nothing is protected by these
		b := md5.Sum(data)
		sum = b[:]
	case "SHA-1":
		b := sha1.Sum(data)
		sum = b[:]
	case "SHA-256":
		b := sha256.Sum256(data)
		sum = b[:]
	case "SHA-384":
		b := sha512.Sum384(data)
		sum = b[:]
	case "SHA-512":
		b := sha512.Sum512(data)
		sum = b[:]
	default:
		return nil, errors.New("argument 2 is none of MD5, SHA-1, SHA-256, SHA-384 and SHA-512")
	}
	return hex.EncodeToString(sum), nil
}

func jsonMerge(e *evaluation, arguments []any) (any, error) {
	var objects [2]map[string]any
	for i := range objects {
		var is bool
		if objects[i], is = arguments[i].(map[string]any); !is {
			return nil, fmt.Errorf("argument %d is %s, not an object", i+1, kindOf(arguments[i]))
		}
	}
	if deep, is := arguments[2].(bool); !is || deep {
		return nil, errors.New("argument 3 is not false: only the shallow merging mode is supported")
	}
	merged := make(map[string]any, len(objects[0])+len(objects[1]))
	for _, object := range objects {
		for name, value := range object {
			merged[name] = value
		}
		e.spend(len(object))
	}
	return merged, nil
}

func jsonToString(e *evaluation, arguments []any) (any, error) {
	left := room(arguments[0], workflow.MaxData, MaxDepth)
	if left < 0 {
		e.fail(ErrorDataLimit, "States.JsonToString returns more than %d bytes", workflow.MaxData)
	}
	if !e.make(workflow.MaxData - left) {
		return nil, nil
	}
	return string(Encode(arguments[0])), nil
}

func stringToJSON(e *evaluation, arguments []any) (any, error) {
	s, err := aString(arguments, 0)
	if err != nil || !e.make(len(s)) || strings.TrimSpace(s) == "" {
		return nil, err
	}
	value, err := Decode(json.RawMessage(s))
	if err != nil {
		return nil, errors.New("argument 1 is no JSON")
	}
	return value, nil
}

// stringSplit takes each character of its second argument as one between parts. Empty parts are none.
func stringSplit(e *evaluation, arguments []any) (any, error) {
	s, err := aString(arguments, 0)
	if err != nil {
		return nil, err
	}
	between, err := aString(arguments, 1)
	if err != nil || !e.make(len(s)+len(between)) {
		return nil, err
	}
	marks := map[rune]bool{}
	for _, r := range between {
		marks[r] = true
	}
	list := []any{}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return marks[r] }) {
		if !e.spend(1) {
			break
		}
		list = append(list, part)
	}
	return list, nil
}

// format is States.Format with a template that is data: it has no backslashes.
func format(e *evaluation, arguments []any) (any, error) {
	template, err := aString(arguments, 0)
	if err != nil || !e.make(len(template)) {
		return nil, err
	}
	return e.formatted(strings.Split(template, "{}"), arguments[1:])
}

func (e *evaluation) formatted(parts []string, values []any) (any, error) {
	if len(parts) != len(values)+1 {
		return nil, fmt.Errorf("there are %d {} for %d arguments", len(parts)-1, len(values))
	}
	b := []byte(parts[0])
	for i, value := range values {
		if room(value, workflow.MaxData-len(b), MaxDepth) < 0 { // which is a little more than what is made
			e.fail(ErrorDataLimit, "States.Format returns more than %d bytes", workflow.MaxData)
			return nil, nil
		}
		b = append(appendPlain(b, value), parts[i+1]...)
	}
	e.make(len(b))
	return string(b), nil
}

// appendPlain writes a value as States.Format does: texts as they are, objects as {a=1, b=[x, y]}.
func appendPlain(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendPlain(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range names(v) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendPlain(append(append(b, name...), '='), v[name])
		}
		return append(b, '}')
	}
	return appendValue(b, value)
}
