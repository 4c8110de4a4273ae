package asl

import (
	"fmt"
	"strings"
)

// maxNested is how deep calls of intrinsic functions may be in each other: Step Functions' own.
const maxNested = 10

// call is an intrinsic function with its arguments.
type call struct {
	text      string
	name      string
	function  *intrinsic
	arguments []argument
	format    []string // of a States.Format with a literal template: the texts between its {}
}

// argument is a literal, what a path finds, or what a call returns.
type argument struct {
	value any
	path  *path
	call  *call
}

// intrinsic is a function of the language. run returns an error for arguments that it cannot take: States.IntrinsicFailure. What it says quotes no data.
type intrinsic struct {
	least, most int // arguments
	run         func(e *evaluation, arguments []any) (any, error)
}

const anyNumber = 1000 // of arguments

var intrinsics map[string]*intrinsic

func init() { // since functions name the table's types
	intrinsics = map[string]*intrinsic{
		"States.Array":          {0, anyNumber, array},
		"States.ArrayContains":  {2, 2, arrayContains},
		"States.ArrayGetItem":   {2, 2, arrayGetItem},
		"States.ArrayLength":    {1, 1, arrayLength},
		"States.ArrayPartition": {2, 2, arrayPartition},
		"States.ArrayRange":     {3, 3, arrayRange},
		"States.ArrayUnique":    {1, 1, arrayUnique},
		"States.Base64Decode":   {1, 1, base64Decode},
		"States.Base64Encode":   {1, 1, base64Encode},
		"States.Format":         {1, anyNumber, format},
		"States.Hash":           {2, 2, hash},
		"States.JsonMerge":      {3, 3, jsonMerge},
		"States.JsonToString":   {1, 1, jsonToString},
		"States.MathAdd":        {2, 2, mathAdd},
		"States.MathRandom":     {2, 3, mathRandom},
		"States.StringSplit":    {2, 2, stringSplit},
		"States.StringToJson":   {1, 1, stringToJSON},
		"States.UUID":           {0, 0, uuid},
	}
}

// parseCall reads a whole text that has to be a call.
func parseCall(text string) (*call, error) {
	c := &cursor{text: text}
	result, err := c.call(1)
	if err != nil {
		return nil, err
	}
	if c.space(); c.at < len(text) {
		return nil, c.wrong("the end of the intrinsic function")
	}
	return result, nil
}

func isCall(text string) bool { return strings.HasPrefix(text, "States.") }

func (c *cursor) call(depth int) (*call, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("%q: intrinsic functions are nested deeper than %d", clip(c.text), maxNested)
	}
	start := c.at
	open := strings.IndexByte(c.text[start:], '(')
	if open < 0 {
		return nil, c.wrong("an intrinsic function with its arguments in brackets")
	}
	result := &call{name: strings.TrimRight(c.text[start:start+open], " ")}
	if result.function = intrinsics[result.name]; result.function == nil {
		return nil, fmt.Errorf("%q: there is no intrinsic function %q", clip(c.text), clip(result.name))
	}
	c.at += open + 1
	for c.space(); !c.take(")"); c.space() {
		if len(result.arguments) > 0 {
			if !c.take(",") {
				return nil, c.wrong(", or )")
			}
			c.space()
		}
		a, raw, err := c.argument(depth)
		if err != nil {
			return nil, err
		}
		if len(result.arguments) == 0 && result.name == "States.Format" {
			if _, is := a.value.(string); is {
				result.format = templateParts(raw)
			} else if a.path == nil && a.call == nil {
				return nil, fmt.Errorf("%q: the first argument of States.Format is a string", clip(c.text))
			}
		}
		if result.arguments = append(result.arguments, a); len(result.arguments) > result.function.most {
			break
		}
	}
	result.text = c.text[start:c.at]
	return result, result.check()
}

// check says what is wrong with the number of arguments.
func (c *call) check() error {
	n, f := len(c.arguments), c.function
	if n < f.least || n > f.most {
		wanted := fmt.Sprint(f.least)
		if f.most > f.least {
			wanted = fmt.Sprintf("%d to %d", f.least, f.most)
		}
		return fmt.Errorf("%q: %s takes %s arguments", clip(c.text), c.name, wanted)
	}
	return nil
}

// argument reads one; raw is a literal text as it is written, with its backslashes.
func (c *cursor) argument(depth int) (a argument, raw string, err error) {
	switch {
	case c.peek() == '$':
		a.path, err = c.path('$', 0)
	case c.peek() == '\'':
		if raw, err = c.literalText(); err == nil {
			a.value, err = unescaped(raw)
		}
	case isCall(c.text[c.at:]):
		a.call, err = c.call(depth + 1)
	default:
		a.value, err = c.literal()
	}
	return a, raw, err
}

// literalText reads a text in single quotes, and returns what is between them.
func (c *cursor) literalText() (string, error) {
	start := c.at + 1
	for i := start; i < len(c.text); i++ {
		switch c.text[i] {
		case '\\':
			i++
		case '\'':
			c.at = i + 1
			return c.text[start:i], nil
		}
	}
	return "", c.wrong("the end of a text in single quotes")
}

// unescaped is a literal text without its backslashes: those of ' { } and \, and of what JSON has them for.
func unescaped(raw string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch raw[i] { // there is one: the quote that ends the text is not behind a backslash
		case '\'', '{', '}', '\\', '"':
			b.WriteByte(raw[i])
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		default:
			return "", fmt.Errorf("%q: a backslash before %q", clip(raw), raw[i:i+1])
		}
	}
	return b.String(), nil
}

// templateParts are the texts between the {} of a literal template. Braces behind a backslash are none.
func templateParts(raw string) (parts []string) {
	from := 0
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '\\':
			i++
		case raw[i] == '{' && i+1 < len(raw) && raw[i+1] == '}':
			part, _ := unescaped(raw[from:i])
			parts = append(parts, part)
			i++
			from = i + 1
		}
	}
	last, _ := unescaped(raw[from:])
	return append(parts, last)
}

// run is what a call returns. Arguments that it cannot take are States.IntrinsicFailure.
func (e *evaluation) run(c *call) any {
	values := make([]any, len(c.arguments))
	for i, a := range c.arguments {
		switch {
		case a.path != nil:
			value, has := e.find(a.path)
			if !has {
				e.fail(ErrorRuntime, "The function '%s' had the following error: The JsonPath argument for the field '%s' could not be found in the input", clip(c.text), clip(a.path.text))
			}
			values[i] = value
		case a.call != nil:
			values[i] = e.run(a.call)
		default:
			values[i] = a.value
		}
		if e.failed != nil {
			return nil
		}
	}
	if !e.spend(1 + len(values)) {
		return nil
	}
	var value any
	var err error
	if c.format != nil {
		value, err = e.formatted(c.format, values[1:])
	} else {
		value, err = c.function.run(e, values)
	}
	if err != nil {
		e.fail(ErrorIntrinsic, "The function '%s' had the following error: %s", clip(c.text), err)
	}
	return value
}
