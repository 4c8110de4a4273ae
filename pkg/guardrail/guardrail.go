// Package guardrail filters what goes into a model, into tools, out of tools and out of the model.
//
// A Guardrail is a tenant's: rules that are checked here, and, if it names one, a guardrail of Amazon Bedrock that is asked besides. A Checker runs
// both over a text (Check), over the strings of a JSON value (JSON) and over a text that is still being written (Stream).
//
// What holds:
//   - A check that cannot be made is an error, never an allow.
//   - Rules take time linear in the text, whatever the text: they run on a machine that knows no backtracking.
//   - Nothing that a rule masks or blocks is ever part of what a Stream has given out, however the text is cut into pieces; all that a Stream gives
//     out is the masked text, to the byte. It holds back what may still become part of a match and nothing else.
//   - A decision names rules and positions, never text.
//   - Of everything that matches, everything is masked: a match takes the longest text that it can, and matches that overlap are masked as one.
package guardrail

import (
	"context"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Stage is where in a turn a text is checked.
type Stage string

// The stages of a turn.
const (
	Input      Stage = "input"       // what a user or another system says to the agent
	ToolInput  Stage = "tool_input"  // what the model gives to a tool
	ToolOutput Stage = "tool_output" // what a tool gives to the model
	Output     Stage = "output"      // what the agent says
)

// Stages are all stages.
var Stages = []Stage{Input, ToolInput, ToolOutput, Output}

// Action is what becomes of a text. A later one is stricter.
type Action string

// The actions, the strictest last.
const (
	Allow Action = "allow"
	Mask  Action = "mask"
	Block Action = "block"
)

// Kind is what checks a guardrail's texts.
type Kind string

// The kinds of guardrails.
const (
	Rules   Kind = "RULES"   // its rules
	Bedrock Kind = "BEDROCK" // a guardrail of Amazon Bedrock, and its rules if it has some
)

// Guardrail is a guardrail as the API shows it.
type Guardrail struct {
	ID                   string     `json:"id"`
	Name                 string     `json:"name"`
	Description          *string    `json:"description"`
	Kind                 Kind       `json:"kind"`
	Rules                []Rule     `json:"rules"`
	Bedrock              *Managed   `json:"bedrock"`
	BlockedInputMessage  *string    `json:"blockedInputMessage"`
	BlockedOutputMessage *string    `json:"blockedOutputMessage"`
	CreatedAt            ident.Time `json:"createdAt"`
	UpdatedAt            ident.Time `json:"updatedAt"`

	compiled []*rule
}

// Guard checks texts by a guardrail. Texts are UTF-8.
type Guard interface {
	// Check decides about texts that belong together: a block of one blocks them all. An error means that there is no decision; what was to be
	// checked must not go on.
	Check(ctx context.Context, g Guardrail, stage Stage, texts []string) (Decision, error)
}

// Decision is what a guardrail decided about one or more texts.
type Decision struct {
	GuardrailID string
	Stage       Stage
	Action      Action
	Reason      string   // for the tenant to read: which rules. Empty for Allow
	Spans       []Span   // what was found, text by text, in order, disjoint within a text
	Texts       []string // what may go on, as many as were checked: masked where there are spans. Nil for Block
	Message     string   // what stands in the place of a blocked text. Empty unless Block
}

// Span is a part of a checked text that was masked, or for which it was blocked.
type Span struct {
	Kind  string `json:"kind"`  // which rule's: EMAIL, or a name that the tenant gave, in capitals. It is also what stands in its place: [EMAIL]
	Text  int    `json:"text"`  // which of the checked texts, from 0
	Start int    `json:"start"` // in the text as it was, in bytes of UTF-8
	End   int    `json:"end"`   // the byte behind the last one
}

// MaxRecordedSpans bounds the spans of a Record.
const MaxRecordedSpans = 100

// Record is a decision as a turn's record keeps it: no text of what was checked.
type Record struct {
	GuardrailID string  `json:"guardrailId"`
	Stage       Stage   `json:"stage"`
	Action      Action  `json:"action"`
	Reason      *string `json:"reason"`
	Spans       []Span  `json:"spans"` // the first MaxRecordedSpans
	Count       int     `json:"count"` // of all spans
}

// Record is d for the turn's record.
func (d Decision) Record() Record {
	r := Record{GuardrailID: d.GuardrailID, Stage: d.Stage, Action: d.Action, Spans: slices.Clone(d.Spans[:min(len(d.Spans), MaxRecordedSpans)]), Count: len(d.Spans)}
	if r.Spans == nil {
		r.Spans = []Span{}
	}
	if d.Reason != "" {
		r.Reason = &d.Reason
	}
	return r
}

// stricter reports whether a is stricter than b.
func (a Action) stricter(b Action) bool {
	order := []Action{Allow, Mask, Block}
	return slices.Index(order, a) > slices.Index(order, b)
}

// reasons are why something was decided: each once, in the order of their first appearance.
type reasons []string

func (r *reasons) add(why string) {
	if why != "" && !slices.Contains(*r, why) {
		*r = append(*r, why)
	}
}

func (r reasons) String() string { return strings.Join(r, "; ") }

// Error says that a check could not be made.
type Error struct {
	Message string // for the tenant
	cause   error  // for the log: may hold ids and addresses of the operator
}

func (e *Error) Error() string { return e.Message }

// Unwrap is the cause, for the log; it must not reach a tenant.
func (e *Error) Unwrap() error { return e.cause }

// ErrorType is what traces call it.
func (e *Error) ErrorType() string { return "guardrail" }

// Fail is a check that could not be made, because of cause.
func Fail(message string, cause error) *Error { return &Error{message, cause} }
