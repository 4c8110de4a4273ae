package guardrail

import (
	"regexp"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Settings are what a tenant says of a guardrail.
type Settings struct {
	Name                 string   `json:"name"`
	Description          *string  `json:"description"`
	Kind                 Kind     `json:"kind"`
	Rules                []Rule   `json:"rules"`
	Bedrock              *Managed `json:"bedrock"`              // required for kind BEDROCK, and for no other
	BlockedInputMessage  *string  `json:"blockedInputMessage"`  // instead of an input or a tool's result that is blocked; nil: a sentence of the platform's
	BlockedOutputMessage *string  `json:"blockedOutputMessage"` // instead of an answer or a tool's input that is blocked; nil: a sentence of the platform's
}

// Settings are what its tenant said of g.
func (g Guardrail) Settings() Settings {
	return Settings{Name: g.Name, Description: g.Description, Kind: g.Kind, Rules: g.Rules, Bedrock: g.Bedrock,
		BlockedInputMessage: g.BlockedInputMessage, BlockedOutputMessage: g.BlockedOutputMessage}
}

// With is g with other settings.
func (g Guardrail) With(s Settings) Guardrail {
	g.Name, g.Description, g.Kind, g.Rules, g.Bedrock = s.Name, s.Description, s.Kind, s.Rules, s.Bedrock
	g.BlockedInputMessage, g.BlockedOutputMessage, g.compiled = s.BlockedInputMessage, s.BlockedOutputMessage, nil
	return g
}

// Rule is one thing that a guardrail looks for. Exactly one of BuiltIn, Pattern and Topic is given.
type Rule struct {
	Stages  []Stage   `json:"stages"`  // where
	Action  Action    `json:"action"`  // Mask or Block
	BuiltIn []BuiltIn `json:"builtIn"` // what the platform knows
	Pattern *Pattern  `json:"pattern"` // a pattern of the tenant's
	Topic   *Topic    `json:"topic"`   // phrases
}

// Pattern is a regular expression of RE2, without a part that may repeat without end. \b knows all letters and digits. It is compared with the text in
// Unicode's form NFKC, without characters that nobody sees.
type Pattern struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern"`
}

// Topic is what must not be spoken of, as phrases: whole words, in which neither case nor accents nor what separates the words counts.
type Topic struct {
	Name    string   `json:"name"`
	Phrases []string `json:"phrases"`
}

// Managed names a guardrail of Amazon Bedrock.
type Managed struct {
	Identifier string  `json:"identifier"` // its id, or ARN
	Version    string  `json:"version"`    // a number, or DRAFT
	Stages     []Stage `json:"stages"`     // where; empty: everywhere
}

// The bounds of a guardrail.
const (
	maxRules        = 50
	maxPatterns     = 20    // own ones, of all rules
	maxPattern      = 500   // bytes of one
	maxMatch        = 256   // characters that one may match
	maxInstructions = 1_000 // of all own patterns' programs
	maxPhrases      = 200   // of all topics
	maxPhrase       = 100   // characters of one, as it is compared
	maxMessage      = 4 << 10
)

const (
	defaultInputMessage  = "This message was blocked by a guardrail."
	defaultOutputMessage = "The answer was blocked by a guardrail."
)

var (
	ruleName          = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 _-]{0,62}[A-Za-z0-9])?$`)
	managedIdentifier = regexp.MustCompile(`^([a-z0-9]+(-[a-z0-9]+)*|arn:aws(-[a-z]+)*:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+)$`)
	managedVersion    = regexp.MustCompile(`^([1-9][0-9]{0,7}|DRAFT)$`)
)

// Complete fills in what was left out, and refuses what cannot be.
func (s *Settings) Complete() error {
	if s.Rules == nil {
		s.Rules = []Rule{}
	}
	if err := text.Check("name", s.Name, 1, 200); err != nil {
		return err
	}
	if err := text.CheckOptional("description", s.Description, 4<<10); err != nil {
		return err
	}
	for field, message := range map[string]*string{"blockedInputMessage": s.BlockedInputMessage, "blockedOutputMessage": s.BlockedOutputMessage} {
		if message == nil {
			continue
		}
		if err := text.Check(field, *message, 1, maxMessage); err != nil {
			return err
		}
	}
	if err := s.checkKind(); err != nil {
		return err
	}
	if len(s.Rules) > maxRules {
		return fault.Invalid("rules holds more than %d rules", maxRules)
	}
	for i := range s.Rules {
		if err := s.Rules[i].complete(); err != nil {
			return fault.Invalid("rules[%d]: %s", i, err)
		}
	}
	_, err := compile(s.Rules)
	return err
}

func (s *Settings) checkKind() error {
	switch {
	case s.Kind != Rules && s.Kind != Bedrock:
		return fault.Invalid("kind must be RULES or BEDROCK")
	case s.Kind == Rules && s.Bedrock != nil:
		return fault.Invalid("bedrock is for kind BEDROCK")
	case s.Kind == Rules && len(s.Rules) == 0:
		return fault.Invalid("a guardrail of kind RULES needs a rule")
	case s.Kind == Bedrock && s.Bedrock == nil:
		return fault.Invalid("a guardrail of kind BEDROCK needs bedrock")
	case s.Bedrock == nil:
		return nil
	case !managedIdentifier.MatchString(s.Bedrock.Identifier) || len(s.Bedrock.Identifier) > 2048:
		return fault.Invalid("bedrock.identifier must be the id of a guardrail of Amazon Bedrock, or its ARN")
	case !managedVersion.MatchString(s.Bedrock.Version):
		return fault.Invalid("bedrock.version must be a number, or DRAFT")
	}
	if len(s.Bedrock.Stages) == 0 {
		s.Bedrock.Stages = slices.Clone(Stages)
	}
	return checkStages("bedrock.stages", s.Bedrock.Stages)
}

func checkStages(field string, stages []Stage) error {
	if len(stages) == 0 {
		return fault.Invalid("%s must not be empty", field)
	}
	for i, s := range stages {
		if !slices.Contains(Stages, s) || slices.Contains(stages[:i], s) {
			return fault.Invalid("%s must be of input, tool_input, tool_output and output, each once", field)
		}
	}
	return nil
}

func (r *Rule) complete() error {
	if err := checkStages("stages", r.Stages); err != nil {
		return err
	}
	if r.Action != Mask && r.Action != Block {
		return fault.Invalid("action must be mask or block")
	}
	given := 0
	for _, is := range []bool{len(r.BuiltIn) > 0, r.Pattern != nil, r.Topic != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return fault.Invalid("exactly one of builtIn, pattern and topic must be given")
	}
	if r.BuiltIn == nil {
		r.BuiltIn = []BuiltIn{}
	}
	for i, b := range r.BuiltIn {
		if _, known := builtIns[b]; !known || slices.Contains(r.BuiltIn[:i], b) {
			return fault.Invalid("builtIn must name what the platform knows, each once")
		}
	}
	if r.Pattern != nil {
		return checkName("pattern.name", r.Pattern.Name)
	}
	if r.Topic != nil {
		return checkName("topic.name", r.Topic.Name)
	}
	return nil
}

func checkName(field, name string) error {
	if !ruleName.MatchString(name) {
		return fault.Invalid("%s must be 1 to 64 letters, digits, spaces, hyphens and underscores, and begin and end with a letter or digit", field)
	}
	return nil
}

// capitals is a tenant's name as a kind: "employee number" is EMPLOYEE_NUMBER.
func capitals(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToUpper(name))
}

// Message is what stands in the place of what was blocked at a stage: the guardrail's own, or else another one's, or else the platform's.
func (g Guardrail) Message(stage Stage, anothers string) string {
	own, standard := g.BlockedInputMessage, defaultInputMessage
	if stage == Output || stage == ToolInput {
		own, standard = g.BlockedOutputMessage, defaultOutputMessage
	}
	switch {
	case own != nil:
		return *own
	case anothers != "":
		return anothers
	}
	return standard
}

// asksBedrock reports whether Bedrock is asked at a stage.
func (g Guardrail) asksBedrock(stage Stage) bool {
	return g.Bedrock != nil && slices.Contains(g.Bedrock.Stages, stage)
}

// Covers reports whether anything is looked for at a stage.
func (g Guardrail) Covers(stage Stage) bool {
	return g.asksBedrock(stage) || slices.ContainsFunc(g.Rules, func(r Rule) bool { return slices.Contains(r.Stages, stage) })
}
