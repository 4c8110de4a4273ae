// Package canonical writes, checks and transforms the one JSON text that the audit log hashes: RFC 8785 (JCS), restricted so that it is one-to-one.
//
// Invariants:
//   - A value has exactly one canonical text, and a text is the canonical form of at most one value. Two documents with the same bytes are the same document.
//   - Refuse, never repair: what a lesser library would round, replace or drop is an error here, so no other document can be made to hash alike.
//   - Check(text) is nil exactly when Transform(nil, text) gives text back, and then encoding/json reads the same value from it.
//   - What Append and Transform write passes Check.
//
// The form: no white space; names ascending by UTF-16 code units, none twice; strings in valid UTF-8 with only `\b \t \n \f \r \" \\` and, for the other
// control characters, `\u00xx` (lower case) escaped; numbers only integers within ±(2⁵³−1), in plain digits.
//
// Refused: invalid UTF-8, surrogates that are not a pair in the right order, names that occur twice, fractions, exponents (1.0 and 1e2 too, although they
// are integers: RFC 8785 would write them 1 and 100, the same bytes as another document's), -0, integers beyond ±(2⁵³−1), NaN and infinities, nesting deeper than
// MaxDepth.
package canonical

import "strconv"

// MaxDepth is how many arrays and objects may lie one in another: [[]] is two deep.
const MaxDepth = 64

// MaxInteger is the largest integer that every JSON reader holds exactly: 2⁵³−1 (RFC 7493 §2.2). The smallest is -MaxInteger.
const MaxInteger = 1<<53 - 1

// Raw is a canonical JSON text that Check passed, or that this package wrote. Append copies it as it is.
type Raw []byte

// Error says what is refused and where. It quotes names of members, but never values.
type Error struct {
	What   string // for example "name occurs twice"
	Offset int    // byte offset in the text; -1 when a Go value was refused
	Path   string // where in the Go value, for example `payload.list[2]`; empty for a text, and for the outermost value
}

func (e *Error) Error() string {
	switch {
	case e.Offset >= 0:
		return "canonical JSON: byte " + strconv.Itoa(e.Offset) + ": " + e.What
	case e.Path != "":
		return "canonical JSON: " + e.Path + ": " + e.What
	}
	return "canonical JSON: " + e.What
}

// What can be wrong.
const (
	wrongEnd        = "the text ends too early"
	wrongTail       = "something follows the value"
	wrongByte       = "unexpected character"
	wrongSpace      = "white space is not canonical"
	wrongUTF8       = "invalid UTF-8"
	wrongControl    = "control character that is not escaped"
	wrongEscape     = "no such escape"
	wrongForm       = "not the canonical spelling of the character"
	wrongSurrogate  = "surrogate without its other half"
	wrongDepth      = "nested more than 64 deep"
	wrongTwice      = "name occurs twice"
	wrongOrder      = "name out of order"
	wrongNumber     = "not a number"
	wrongFraction   = "number with a fraction or an exponent"
	wrongMinusZero  = "-0 is not an integer of its own"
	wrongMagnitude  = "integer beyond ±(2^53−1)"
	wrongNotInteger = "number that is not an integer"
	wrongType       = "no JSON value of Go type "
	wrongRaw        = "empty Raw"
)
