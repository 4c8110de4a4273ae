// Package grade rates what an agent answered, by evaluators.
//
// What holds:
//
//   - Every evaluator gives a score from 0 to 1 and a reason of at most 500 bytes, whatever the answer. All but the rubric's are pure: the same
//     sample gives the same score and reason.
//   - A rubric asks a model, which is shown the sample as marked data and never as instructions. A verdict that cannot be read is asked for once
//     more; then, and when the model refuses for good, the score is 0 and the reason says so. Only a failure that may pass is an error.
//   - What grading cost is counted apart from what the turn cost.
package grade

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/jsonschema"
)

// Sample is what is rated: one turn.
type Sample struct {
	Input        string        // what the agent was asked
	Output       string        // its reply
	Expected     *string       // what the case expects; nil: nothing
	Latency      time.Duration // from the turn's start to its end
	CostMicros   *int64        // millionths of a US dollar; nil: unknown
	Tokens       int           // in and out
	ToolOutcomes []ToolOutcome // in the order of the calls
}

// ToolOutcome is how a tool call ended.
type ToolOutcome struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Score is what an evaluator made of a sample.
type Score struct {
	Evaluator string  `json:"evaluator"`
	Score     float64 `json:"score"`  // 0 to 1
	Reason    string  `json:"reason"` // for people
}

// maxReason is the most bytes of a reason.
const maxReason = 500

// Check is evaluator.Check, and refuses a schema that is none.
func Check(list []evaluator.Spec) ([]evaluator.Spec, error) {
	list, err := evaluator.Check(list)
	if err != nil {
		return nil, err
	}
	return list, checkSchemas(list)
}

// CheckAgents is evaluator.CheckAgents, and refuses a schema that is none.
func CheckAgents(list []evaluator.Spec) ([]evaluator.Spec, error) {
	list, err := evaluator.CheckAgents(list)
	if err != nil {
		return nil, err
	}
	return list, checkSchemas(list)
}

func checkSchemas(list []evaluator.Spec) error {
	for _, s := range list {
		if s.Type != evaluator.JSONSchema {
			continue
		}
		if _, err := jsonschema.Compile(*s.Schema); err != nil {
			return fault.Invalid("evaluator %q: schema: %s", s.Name, cut(err.Error()))
		}
	}
	return nil
}

// Pure rates by any evaluator but a rubric.
func Pure(s evaluator.Spec, x Sample) Score {
	var passed bool
	var reason string
	switch s.Type {
	case evaluator.Exact:
		passed, reason = exact(s, x)
	case evaluator.Contains:
		passed, reason = contains(s, x)
	case evaluator.Regex:
		passed, reason = matches(s, x)
	case evaluator.JSONSchema:
		passed, reason = conforms(s, x)
	case evaluator.Length:
		passed, reason = bounded(s, x)
	case evaluator.Latency:
		passed, reason = quick(s, x)
	case evaluator.Cost:
		passed, reason = cheap(s, x)
	default:
		reason = "nothing rates by this type"
	}
	score := Score{Evaluator: s.Name, Reason: cut(reason)}
	if passed {
		score.Score = 1
	}
	return score
}

// cut makes a text a reason: valid, without NUL, on one line and short.
func cut(reason string) string {
	reason = strings.Join(strings.Fields(strings.ReplaceAll(strings.ToValidUTF8(reason, "�"), "\x00", "�")), " ")
	if len(reason) <= maxReason {
		return reason
	}
	const more = "…"
	end := maxReason - len(more)
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end] + more
}
