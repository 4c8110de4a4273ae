// Package jsonschema checks JSON against schemas that strangers wrote.
//
// What holds, whatever the schema and the text:
//
//   - Nothing is fetched: a reference that leads out of the schema is refused when it is compiled.
//   - The work is bounded: an evaluation ends after MaxWork steps. In a few hundred bytes, a schema can ask for more steps than there is time for.
//   - Patterns are RE2, which is linear; numbers are exact, and of at most 100 digits.
//   - The same schema and text give the same answer.
//
// Schemas are of draft 2020-12, 2019-09, 7 or 6, as $schema says; without one, of 2020-12. Formats and contents are annotations: they refuse nothing.
// $dynamicRef and $recursiveRef are refused: what they lead to is not known before.
package jsonschema

import (
	"errors"
	"fmt"
)

// The limits of schemas and texts.
const (
	MaxSchema = 16 << 10 // bytes of a schema
	MaxText   = 1 << 20  // bytes of a text
	MaxDepth  = 64       // levels of nesting, of either
	MaxWork   = 100_000  // steps: less than a second and 100 MB, whatever they are
	maxNumber = 100      // characters of a number
	maxStates = 10_000   // of all patterns of a schema, as RE2 has them
)

// Schema is a compiled schema. It may be used by many goroutines at once.
type Schema struct {
	root   *node
	tracks bool // what was looked at, for unevaluatedItems and unevaluatedProperties
}

// Compile reads a schema; the error is for its author.
func Compile(text string) (*Schema, error) {
	if len(text) > MaxSchema {
		return nil, fmt.Errorf("longer than %d bytes", MaxSchema)
	}
	doc, err := Parse(text)
	if err != nil {
		return nil, err
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("neither an object nor a boolean")
	}
	return compile(doc)
}

// Validate says why the text is not what the schema asks for; nil when it is.
func (s *Schema) Validate(text string) error {
	v, err := Parse(text)
	if err != nil {
		return err
	}
	return s.ValidateValue(v)
}

// ValidateValue is Validate for what Parse gave.
func (s *Schema) ValidateValue(v any) error {
	e := evaluation{left: MaxWork, tracks: s.tracks}
	wrong := e.check(s.root, v, nil, nil)
	switch {
	case e.left < 0:
		return fmt.Errorf("checking it takes more than %d steps", MaxWork)
	case wrong != nil:
		return wrong.error()
	}
	return nil
}
