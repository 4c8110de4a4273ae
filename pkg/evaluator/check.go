package evaluator

import (
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// The limits of a list.
const (
	MaxList    = 10
	maxName    = 64
	maxText    = 16 << 10
	maxTexts   = 20
	maxPattern = 1 << 10
	maxSchema  = 16 << 10
	maxModelID = 2048
	maxNumber  = 1_000_000_000
)

// Check refuses a list that no agent and no evaluation may have, and gives it back with what was left out. A schema is only looked at by grade.Check.
func Check(list []Spec) ([]Spec, error) {
	if len(list) > MaxList {
		return nil, fault.Invalid("evaluators holds more than %d entries", MaxList)
	}
	checked := make([]Spec, 0, len(list))
	names := map[string]bool{}
	for _, s := range list {
		if s.Name == "" {
			s.Name = string(s.Type)
		}
		if err := s.check(); err != nil {
			return nil, err
		}
		if names[s.Name] {
			return nil, fault.Invalid("two evaluators are named %q: give each a name of its own", s.Name)
		}
		names[s.Name] = true
		if s.Schema != nil {
			compact := text.CompactJSON(*s.Schema)
			s.Schema = &compact
		}
		checked = append(checked, s)
	}
	return checked, nil
}

// CheckAgents is Check for a list whose samples expect nothing: those of an agent's turns.
func CheckAgents(list []Spec) ([]Spec, error) {
	list, err := Check(list)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Expects() {
			parameter := map[Type]string{Exact: "text", Contains: "texts"}[s.Type]
			return nil, fault.Invalid("evaluator %q: %s is required: only the cases of an evaluation expect something", s.Name, parameter)
		}
	}
	return list, nil
}

func (s Spec) check() error {
	if err := text.Check("an evaluator's name", s.Name, 1, maxName); err != nil {
		return err
	}
	if strings.TrimSpace(s.Name) != s.Name {
		return fault.Invalid("an evaluator's name must not begin or end with white space")
	}
	allowed, known := parameters[s.Type]
	if !known {
		return fault.Invalid("%q is not a type of evaluator", s.Type)
	}
	for name, given := range s.given() {
		if given && !strings.Contains(allowed, " "+name+" ") {
			return fault.Invalid("evaluator %q: %s is not a parameter of type %s", s.Name, name, s.Type)
		}
	}
	if err := s.checkParameters(); err != nil {
		return fault.Invalid("evaluator %q: %s", s.Name, fault.From(err).Message)
	}
	return nil
}

// parameters are those of each type, with spaces around.
var parameters = map[Type]string{
	Exact:      " text ignoreCase ",
	Contains:   " texts match ignoreCase ",
	Regex:      " pattern ",
	JSONSchema: " schema ",
	Length:     " minCharacters maxCharacters minWords maxWords ",
	Latency:    " maxMs ",
	Cost:       " maxMicros ",
	Rubric:     " rubric modelId ",
}

func (s Spec) given() map[string]bool {
	return map[string]bool{"text": s.Text != nil, "texts": s.Texts != nil, "match": s.Match != nil, "ignoreCase": s.IgnoreCase != nil, "pattern": s.Pattern != nil,
		"schema": s.Schema != nil, "minCharacters": s.MinCharacters != nil, "maxCharacters": s.MaxCharacters != nil, "minWords": s.MinWords != nil,
		"maxWords": s.MaxWords != nil, "maxMs": s.MaxMs != nil, "maxMicros": s.MaxMicros != nil, "rubric": s.Rubric != nil, "modelId": s.ModelID != nil}
}

func (s Spec) checkParameters() error {
	switch s.Type {
	case Exact:
		if s.Text != nil {
			return text.Check("text", *s.Text, 0, maxText)
		}
	case Contains:
		return s.checkTexts()
	case Regex:
		if err := required("pattern", s.Pattern, maxPattern); err != nil {
			return err
		}
		if _, err := regexp.Compile(*s.Pattern); err != nil {
			return fault.Invalid("pattern: %v", err)
		}
	case JSONSchema:
		if err := required("schema", s.Schema, maxSchema); err != nil {
			return err
		}
	case Length:
		return s.checkBounds()
	case Latency:
		return number("maxMs", s.MaxMs)
	case Cost:
		return number("maxMicros", s.MaxMicros)
	case Rubric:
		if err := required("rubric", s.Rubric, maxText); err != nil {
			return err
		}
		return required("modelId", s.ModelID, maxModelID)
	}
	return nil
}

func (s Spec) checkTexts() error {
	if len(s.Texts) > maxTexts {
		return fault.Invalid("texts holds more than %d entries", maxTexts)
	}
	for _, t := range s.Texts {
		if err := text.Check("texts", t, 1, maxText/maxTexts); err != nil {
			return err
		}
	}
	if s.Match != nil && *s.Match != All && *s.Match != Any {
		return fault.Invalid("match must be ALL or ANY")
	}
	return nil
}

func (s Spec) checkBounds() error {
	if s.MinCharacters == nil && s.MaxCharacters == nil && s.MinWords == nil && s.MaxWords == nil {
		return fault.Invalid("at least one of minCharacters, maxCharacters, minWords and maxWords is required")
	}
	for name, n := range map[string]*int{"minCharacters": s.MinCharacters, "maxCharacters": s.MaxCharacters, "minWords": s.MinWords, "maxWords": s.MaxWords} {
		if n != nil {
			if err := number(name, n); err != nil {
				return err
			}
		}
	}
	if s.MinCharacters != nil && s.MaxCharacters != nil && *s.MinCharacters > *s.MaxCharacters || s.MinWords != nil && s.MaxWords != nil && *s.MinWords > *s.MaxWords {
		return fault.Invalid("no answer is that short and that long")
	}
	return nil
}

func required(name string, s *string, max int) error {
	if s == nil {
		return fault.Invalid("%s is required", name)
	}
	return text.Check(name, *s, 1, max)
}

func number(name string, n *int) error {
	if n == nil {
		return fault.Invalid("%s is required", name)
	}
	if *n < 0 || *n > maxNumber {
		return fault.Invalid("%s must be from 0 to %d", name, maxNumber)
	}
	return nil
}
