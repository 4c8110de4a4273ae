package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// What everybody has to keep to. They are Step Functions' own, but for the machine's name: a deployment puts up to 34 bytes before it.
const (
	MaxMachine    = 54        // bytes of a machine's name
	MaxName       = 80        // bytes of a run's name
	MaxDefinition = 1 << 20   // bytes of a definition
	MaxData       = 256 << 10 // bytes of an input or output
	MaxCode       = 256       // bytes of an error's code; what is longer is cut
	MaxCause      = 32 << 10  // bytes of its text; what is longer is cut
	MaxToken      = 2048      // bytes of a token
)

// Why a call was refused.
var (
	ErrName          = errors.New("not a name")
	ErrData          = errors.New("not JSON")
	ErrTooLarge      = errors.New("too large")
	ErrDefinition    = errors.New("not a definition that can run") // always in a *DefinitionError
	ErrMachineExists = errors.New("there is a machine of that name with another definition")
	ErrNoMachine     = errors.New("there is no such machine")
	ErrRunExists     = errors.New("there is a run of that name with another input")
	ErrNoRun         = errors.New("there is no such run")
	ErrNoTask        = errors.New("there is no task with that token")
	ErrTaskOver      = errors.New("the task is over: it timed out, or has been answered")
	ErrThrottled     = errors.New("the engine asks to try again later")
)

// DefinitionError says what is wrong with a definition, in the engine's words.
type DefinitionError struct{ Problems []Problem }

// Problem is one thing that is wrong with a definition.
type Problem struct {
	Code     string // the engine's, such as SCHEMA_VALIDATION_FAILED; may be empty
	Message  string
	Location string // JSON pointer into the definition; may be empty
}

func (e *DefinitionError) Error() string {
	var b strings.Builder
	b.WriteString("workflow: " + ErrDefinition.Error())
	for _, p := range e.Problems {
		b.WriteString("; ")
		if p.Location != "" {
			b.WriteString(p.Location + ": ")
		}
		b.WriteString(p.Message)
	}
	return b.String()
}

// Is makes it an ErrDefinition.
func (e *DefinitionError) Is(target error) bool { return target == ErrDefinition }

var (
	isMachine = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_-]{1,%d}$`, MaxMachine)).MatchString
	isName    = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_-]{1,%d}$`, MaxName)).MatchString
)

// CheckMachine says why no machine can have that name: ErrName. Engines check by it, and by those below.
func CheckMachine(machine string) error {
	if !isMachine(machine) {
		return fmt.Errorf("workflow: machine %.80q: %w: 1 to %d letters, digits, - and _", machine, ErrName, MaxMachine)
	}
	return nil
}

// CheckName says why no run can have that name: ErrName.
func CheckName(name string) error {
	if !isName(name) {
		return fmt.Errorf("workflow: run %.80q: %w: 1 to %d letters, digits, - and _", name, ErrName, MaxName)
	}
	return nil
}

// CheckDefinition says that a definition is ErrTooLarge.
func CheckDefinition(definition string) error {
	if len(definition) > MaxDefinition {
		return fmt.Errorf("workflow: definition of %d bytes: %w: at most %d", len(definition), ErrTooLarge, MaxDefinition)
	}
	return nil
}

// CheckToken says that no task can have that token: ErrNoTask.
func CheckToken(token string) error {
	if token == "" || len(token) > MaxToken {
		return fmt.Errorf("workflow: %w", ErrNoTask)
	}
	return nil
}

// Data is an input or output as it travels: without the white space around tokens, which is how texts are the same. It is ErrData if it is not one JSON
// value in UTF-8, and ErrTooLarge.
func Data(text json.RawMessage) (string, error) {
	var b bytes.Buffer
	if !utf8.Valid(text) || json.Compact(&b, text) != nil { // which does not look into strings
		return "", fmt.Errorf("workflow: data: %w", ErrData)
	}
	if b.Len() > MaxData {
		return "", fmt.Errorf("workflow: data of %d bytes: %w: at most %d", b.Len(), ErrTooLarge, MaxData)
	}
	return b.String(), nil
}

// Reason is an error's code and text, cut to what may travel: what a run failed of is worth more than its last words.
func Reason(code, cause string) (string, string) { return cut(code, MaxCode), cut(cause, MaxCause) }

// cut keeps characters whole.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
