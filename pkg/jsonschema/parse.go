package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Parse reads a JSON text within the limits, its numbers as they are written.
func Parse(text string) (any, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("longer than %d bytes", MaxText)
	}
	if err := shallow(text); err != nil { // before the decoder, which makes a value of every level
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("not JSON: it ends too soon")
		}
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: there is more behind the value")
	}
	return v, checkNumbers(v)
}

// shallow refuses deep nesting. Brackets in strings do not count.
func shallow(text string) error {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("nested more than %d levels deep", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checkNumbers refuses numbers whose exact value would fill the memory: 1e1000000000 is twelve characters.
func checkNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if len(v) > maxNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
			return errors.New("a number is too long or too large")
		}
	case []any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}
