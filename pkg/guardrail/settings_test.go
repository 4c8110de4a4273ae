package guardrail

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestSettingsThatCannotBe(t *testing.T) {
	rule := func(change func(*Rule)) Settings {
		r := Rule{Stages: []Stage{Input}, Action: Mask, Pattern: &Pattern{"number", `\d{4}`}}
		change(&r)
		return Settings{Name: "x", Kind: Rules, Rules: []Rule{r}}
	}
	pattern := func(p string) Settings { return rule(func(r *Rule) { r.Pattern.Pattern = p }) }
	topic := func(phrases ...string) Settings {
		return rule(func(r *Rule) { r.Pattern, r.Topic = nil, &Topic{"pay", phrases} })
	}
	managed := func(m *Managed) Settings { return Settings{Name: "x", Kind: Bedrock, Bedrock: m} }
	require.NoError(t, new(rule(func(*Rule) {})).Complete())
	require.NoError(t, new(managed(&Managed{Identifier: "arn:aws:bedrock:eu-central-1:123456789012:guardrail/ab12cd34ef56", Version: "DRAFT"})).Complete())
	for want, s := range map[string]Settings{
		"name must not be empty":                    {Kind: Rules},
		"kind must be RULES or BEDROCK":             {Name: "x"},
		"a guardrail of kind RULES needs a rule":    {Name: "x", Kind: Rules},
		"bedrock is for kind BEDROCK":               {Name: "x", Kind: Rules, Bedrock: &Managed{}},
		"a guardrail of kind BEDROCK needs bedrock": {Name: "x", Kind: Bedrock},
		"bedrock.identifier must be":                managed(&Managed{Identifier: "../other", Version: "1"}),
		"bedrock.version must be":                   managed(&Managed{Identifier: "ab12", Version: "latest"}),
		"bedrock.stages must be of":                 managed(&Managed{Identifier: "ab12", Version: "1", Stages: []Stage{"x"}}),
		"rules[0]: stages must not be empty":        rule(func(r *Rule) { r.Stages = nil }),
		"rules[0]: stages must be of":               rule(func(r *Rule) { r.Stages = []Stage{Input, Input} }),
		"rules[0]: action must be":                  rule(func(r *Rule) { r.Action = Allow }),
		"rules[0]: exactly one of":                  rule(func(r *Rule) { r.BuiltIn = []BuiltIn{EMail} }),
		"rules[0]: exactly one of builtIn":          rule(func(r *Rule) { r.Pattern = nil }),
		"rules[0]: builtIn must name":               rule(func(r *Rule) { r.Pattern, r.BuiltIn = nil, []BuiltIn{"NAME"} }),
		"rules[0]: pattern.name must be":            rule(func(r *Rule) { r.Pattern.Name = "a]b" }),
		"rules[0].pattern: not a pattern that can be used: error parsing regexp: missing": pattern("(a"),
		"may repeat without end":                                            pattern("a+b"),
		"may match 300 characters":                                          pattern("(?:a{30}){10}"),
		"it matches where there is nothing":                                 pattern("a?"),
		"invalid or unsupported Perl syntax":                                pattern("a(?=b)"),
		"pattern is longer than 500 bytes":                                  pattern(strings.Repeat("a", 501)),
		"rules[0].topic: phrases must not be empty":                         topic(),
		"a phrase must have 1 to 100 letters and digits":                    topic("?!"),
		"phrases is longer than 1000 bytes":                                 topic(strings.Repeat("a", 1001)),
		"rules holds more than 200 phrases":                                 topic(strings.Split(strings.Repeat("a ", 201)[:401], " ")...),
		"rules holds more than 50 rules":                                    {Name: "x", Kind: Rules, Rules: make([]Rule, 51)},
		"blockedInputMessage must not be empty":                             {Name: "x", Kind: Rules, BlockedInputMessage: new("")},
		"rules holds more than 20 patterns, or they take more than 1000 st": {Name: "x", Kind: Rules, Rules: many(12, own("x", "[a-f]{100}"))},
	} {
		err := s.Complete()
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
}

func many(n int, r Rule) (rules []Rule) {
	r.Stages, r.Action = Stages, Mask
	for range n {
		rules = append(rules, r)
	}
	return rules
}

func TestARecordHoldsAHundredSpans(t *testing.T) {
	d, err := Checker{}.Check(t.Context(), masking(t, own("a", "a")), Input, []string{strings.Repeat("a ", 150)})
	require.NoError(t, err)
	r := d.Record()
	require.Len(t, r.Spans, MaxRecordedSpans)
	require.Equal(t, 150, r.Count)
	require.Equal(t, "pattern: a", *r.Reason)
	require.Equal(t, Record{Stage: Input, Action: Allow, Spans: []Span{}}, Decision{Stage: Input, Action: Allow}.Record())
}
