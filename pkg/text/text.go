// Package text checks what callers store, and tells a field that was left out from one that is null.
package text

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Check is the rule for every text that a caller stores: valid UTF-8 without NUL, at least min and at most max bytes.
func Check(field, s string, min, max int) error {
	switch {
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return fault.Invalid("%s must be UTF-8 text without NUL", field)
	case len(s) > max:
		return fault.Invalid("%s is longer than %d bytes", field, max)
	case len(s) < min || min > 0 && strings.TrimSpace(s) == "":
		return fault.Invalid("%s must not be empty", field)
	}
	return nil
}

// CheckOptional is Check for a field that may be null.
func CheckOptional(field string, s *string, max int) error {
	if s == nil {
		return nil
	}
	return Check(field, *s, 0, max)
}

// Patch is a field of an update: absent, null, or a value.
type Patch[T any] struct {
	Set   bool // the field was given
	Value *T   // nil: null was given
}

// UnmarshalJSON is called only for a field that is present.
func (p *Patch[T]) UnmarshalJSON(b []byte) error {
	p.Set = true
	if string(b) == "null" {
		return nil
	}
	p.Value = new(T)
	return json.Unmarshal(b, p.Value)
}

// MarshalJSON renders the value, null when there is none.
func (p Patch[T]) MarshalJSON() ([]byte, error) { return json.Marshal(p.Value) }

// IsZero lets omitzero leave an absent field out.
func (p Patch[T]) IsZero() bool { return !p.Set }

// Apply writes a given field over a nullable one.
func (p Patch[T]) Apply(to **T) {
	if p.Set {
		*to = p.Value
	}
}

// CheckJSON refuses JSON text that a jsonb column cannot hold although it is JSON: an escaped NUL or a lone surrogate.
func CheckJSON(field, s string) error {
	for i := 0; i+5 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if s[i+1] != 'u' {
			i++ // an escaped backslash does not start an escape
			continue
		}
		r := hex4(s[i+2:])
		switch {
		case r == 0:
			return fault.Invalid("%s must not contain NUL", field)
		case r >= 0xdc00 && r <= 0xdfff:
			return fault.Invalid("%s contains a lone surrogate", field)
		case r >= 0xd800 && r <= 0xdbff:
			if i+11 >= len(s) || s[i+6] != '\\' || s[i+7] != 'u' || hex4(s[i+8:])&^0x3ff != 0xdc00 {
				return fault.Invalid("%s contains a lone surrogate", field)
			}
			i += 6
		}
		i += 5
	}
	return nil
}

// CompactJSON is JSON text without the white space that means nothing, as every gateway keeps it: AppSync reads an AWSJSON and writes it anew. What is
// not JSON stays as it is.
func CompactJSON(s string) string {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(s)) != nil {
		return s
	}
	return compact.String()
}

func hex4(s string) uint64 {
	n, _ := strconv.ParseUint(s[:4], 16, 32) // valid JSON: four digits follow \u
	return n
}
