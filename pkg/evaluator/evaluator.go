// Package evaluator holds how an agent's answer is rated, as data: a type and its parameters. Package grade does it.
//
// They are apart because agents carry evaluators, and every function that reads an agent would link what rating takes.
package evaluator

import "time"

// Type is a way to rate an answer.
type Type string

const (
	Exact      Type = "exact"       // the answer is the text
	Contains   Type = "contains"    // the answer has all texts in it, or any of them
	Regex      Type = "regex"       // the pattern (RE2) is found in the answer
	JSONSchema Type = "json_schema" // the answer is JSON that the schema allows
	Length     Type = "length"      // the answer is within bounds of characters and words
	Latency    Type = "latency"     // the turn took at most so long
	Cost       Type = "cost"        // the turn cost at most so much
	Rubric     Type = "rubric"      // a model says how well the answer meets the rubric
)

// Match is how many of the texts an answer must have in it.
type Match string

const (
	All Match = "ALL"
	Any Match = "ANY"
)

// Spec is one evaluator. Only the parameters of its type are set.
type Spec struct {
	Name          string   `json:"name"` // unique in its list, 1 to 64 bytes; left out: the type
	Type          Type     `json:"type"`
	Text          *string  `json:"text,omitempty"`          // exact; nil: what the case expects
	Texts         []string `json:"texts,omitempty"`         // contains, 1 to 20; none: what the case expects
	Match         *Match   `json:"match,omitempty"`         // contains; nil: All
	IgnoreCase    *bool    `json:"ignoreCase,omitempty"`    // exact, contains; nil: false
	Pattern       *string  `json:"pattern,omitempty"`       // regex
	Schema        *string  `json:"schema,omitempty"`        // json_schema: the schema's JSON text
	MinCharacters *int     `json:"minCharacters,omitempty"` // length, in Unicode code points
	MaxCharacters *int     `json:"maxCharacters,omitempty"`
	MinWords      *int     `json:"minWords,omitempty"` // length: what white space separates
	MaxWords      *int     `json:"maxWords,omitempty"`
	MaxMs         *int     `json:"maxMs,omitempty"`     // latency, milliseconds
	MaxMicros     *int     `json:"maxMicros,omitempty"` // cost, millionths of a US dollar
	Rubric        *string  `json:"rubric,omitempty"`    // rubric
	ModelID       *string  `json:"modelId,omitempty"`   // rubric: the model that grades
}

// Expects reports whether what a case expects is what the answer is compared with.
func (s Spec) Expects() bool {
	return s.Type == Exact && s.Text == nil || s.Type == Contains && len(s.Texts) == 0
}

// Function rates a turn; Task is what it is invoked with. Whoever ends a turn that is to be rated (has_evaluators, in SQL, of its agent) as
// succeeded sets its score_after to ScoreGrace from then, in the same transaction, and invokes the function after the commit. A call that is lost is
// found by a sweep once that time has passed.
const (
	Function   = "evaluate-turn"
	ScoreGrace = time.Minute
)

// Task names a turn; the zero Task asks for a sweep.
type Task struct {
	TenantID string `json:"tenantId"`
	TurnID   string `json:"turnId"`
}
