package bedrock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
)

// verdictOf is what a guardrail said of a text. Neither blocked nor spans: nothing.
type verdictOf struct {
	blocked bool
	message string           // the guardrail's own, if it blocked
	spans   []guardrail.Span // what it masked, or blocked for
	why     []string
}

// entity is something that a guardrail found in a text.
type entity struct {
	match string // the text
	mark  string // what the guardrail puts in its place: {EMAIL}
	kind  string // ours
	why   string
}

// read understands an answer about a text.
func read(text string, out *bedrockruntime.ApplyGuardrailOutput) (verdictOf, error) {
	if out.Action == types.GuardrailActionNone {
		return verdictOf{}, nil
	}
	if out.Action != types.GuardrailActionGuardrailIntervened {
		return verdictOf{}, fmt.Errorf("guardrail: the action %q", out.Action)
	}
	var v verdictOf
	var hidden, stopped []entity
	for _, a := range out.Assessments {
		v.why = append(v.why, blocking(a)...)
		h, s := sensitive(a.SensitiveInformationPolicy)
		hidden, stopped = append(hidden, h...), append(stopped, s...)
	}
	for _, e := range stopped {
		v.why = append(v.why, e.why)
	}
	answer := ""
	if len(out.Outputs) > 0 {
		answer = aws.ToString(out.Outputs[0].Text)
	}
	if len(v.why) > 0 || len(hidden) == 0 { // it stepped in, and if it does not say how, it has blocked
		if v.blocked, v.message = true, answer; len(v.why) == 0 {
			v.why = []string{"blocked by Amazon Bedrock"}
		}
		v.spans = occurrences(text, stopped)
		return v, nil
	}
	if len(out.Outputs) != 1 {
		return verdictOf{}, fmt.Errorf("guardrail: %d texts for one", len(out.Outputs))
	}
	for _, e := range hidden {
		v.why = append(v.why, e.why)
	}
	v.spans = align(text, answer, hidden)
	return v, nil
}

// blocking are the reasons of an assessment for a block, but for personal data.
func blocking(a types.GuardrailAssessment) (why []string) {
	if p := a.TopicPolicy; p != nil {
		for _, t := range p.Topics {
			if t.Action == types.GuardrailTopicPolicyActionBlocked {
				why = append(why, "denied topic: "+aws.ToString(t.Name))
			}
		}
	}
	if p := a.ContentPolicy; p != nil {
		for _, f := range p.Filters {
			if f.Action == types.GuardrailContentPolicyActionBlocked {
				why = append(why, "content: "+spoken(string(f.Type)))
			}
		}
	}
	if p := a.WordPolicy; p != nil {
		for _, w := range p.CustomWords { // the word is what the text says: it is no reason to show
			if w.Action == types.GuardrailWordPolicyActionBlocked {
				why = append(why, "denied word")
			}
		}
		for _, w := range p.ManagedWordLists {
			if w.Action == types.GuardrailWordPolicyActionBlocked {
				why = append(why, "denied word: "+spoken(string(w.Type)))
			}
		}
	}
	if p := a.ContextualGroundingPolicy; p != nil {
		for _, f := range p.Filters {
			if f.Action == types.GuardrailContextualGroundingPolicyActionBlocked {
				why = append(why, "contextual grounding: "+spoken(string(f.Type)))
			}
		}
	}
	return why
}

// sensitive is what was masked as sensitive information, and what was blocked for it.
func sensitive(p *types.GuardrailSensitiveInformationPolicyAssessment) (hidden, stopped []entity) {
	if p == nil {
		return nil, nil
	}
	add := func(action types.GuardrailSensitiveInformationPolicyAction, e entity) {
		switch action {
		case types.GuardrailSensitiveInformationPolicyActionAnonymized:
			hidden = append(hidden, e)
		case types.GuardrailSensitiveInformationPolicyActionBlocked:
			stopped = append(stopped, e)
		}
	}
	for _, e := range p.PiiEntities {
		kind := string(e.Type)
		if ours, is := kinds[kind]; is {
			kind = ours
		}
		why := guardrail.Why(kind)
		if why == "" {
			why = "sensitive information: " + spoken(kind)
		}
		add(e.Action, entity{match: aws.ToString(e.Match), mark: "{" + string(e.Type) + "}", kind: kind, why: why})
	}
	for _, e := range p.Regexes {
		name := aws.ToString(e.Name)
		add(e.Action, entity{match: aws.ToString(e.Match), mark: "{" + name + "}", kind: capitals(name), why: "pattern: " + name})
	}
	return hidden, stopped
}

// kinds are Bedrock's types of personal data that the platform knows by another name.
var kinds = map[string]string{"CREDIT_DEBIT_CARD_NUMBER": "CREDIT_CARD", "INTERNATIONAL_BANK_ACCOUNT_NUMBER": "IBAN", "US_SOCIAL_SECURITY_NUMBER": "US_SSN"}

func spoken(kind string) string { return strings.ToLower(strings.ReplaceAll(kind, "_", " ")) }

// capitals is a name as a kind.
func capitals(name string) string {
	kind := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
	if strings.Trim(kind, "_") == "" {
		return unknown
	}
	return kind
}

// unknown is the kind of what was masked where we cannot say as what.
const unknown = "MASKED"

// align finds out which parts of a text were masked: it goes through the text and what became of it side by side. Where that leads nowhere, all from the
// first difference to the last one counts as masked.
func align(text, answer string, hidden []entity) (spans []guardrail.Span) {
	slices.SortStableFunc(hidden, func(a, b entity) int { return len(b.match) - len(a.match) })
	i, j := 0, 0
	for j < len(answer) {
		if n := slices.IndexFunc(hidden, func(e entity) bool {
			return e.match != "" && strings.HasPrefix(answer[j:], e.mark) && strings.HasPrefix(text[i:], e.match)
		}); n >= 0 {
			e := hidden[n]
			spans = append(spans, guardrail.Span{Kind: e.kind, Start: i, End: i + len(e.match)})
			i, j = i+len(e.match), j+len(e.mark)
			continue
		}
		if i >= len(text) || text[i] != answer[j] {
			return difference(text, answer)
		}
		i, j = i+1, j+1
	}
	if i < len(text) || len(spans) == 0 {
		return difference(text, answer)
	}
	return spans
}

// difference is the part of a text in which it differs from another one, in whole characters; all of it if they are the same, for something was masked.
func difference(text, other string) []guardrail.Span {
	a, b := []rune(text), []rune(other)
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	from, to := len(string(a[:start])), min(len(string(a[:len(a)-end])), len(text))
	if from >= to {
		from, to = 0, len(text)
	}
	return []guardrail.Span{{Kind: unknown, Start: from, End: to}}
}

// occurrences are the places of what a text was blocked for.
func occurrences(text string, stopped []entity) (spans []guardrail.Span) {
	for _, e := range stopped {
		if at := strings.Index(text, e.match); at >= 0 && e.match != "" {
			spans = append(spans, guardrail.Span{Kind: e.kind, Start: at, End: at + len(e.match)})
		}
	}
	slices.SortFunc(spans, func(a, b guardrail.Span) int { return a.Start - b.Start })
	end := 0
	return slices.DeleteFunc(spans, func(s guardrail.Span) bool {
		overlaps := s.Start < end
		end = max(end, s.End)
		return overlaps
	})
}
