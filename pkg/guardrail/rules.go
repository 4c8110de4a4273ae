package guardrail

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// rule is one thing to look for.
type rule struct {
	*program
	kind   string // EMAIL
	why    string // personal data: e-mail address
	action Action
	stages []Stage
	phrase bool // it is compared as phrases are
	order  int  // among the rules
}

// compile makes rules of what a tenant said.
func compile(said []Rule) (rules []*rule, err error) {
	patterns, instructions, phrases := 0, 0, 0
	for i, r := range said {
		switch {
		case r.Pattern != nil:
			patterns++
			p, err := compilePattern(*r.Pattern)
			if err != nil {
				return nil, fault.Invalid("rules[%d].pattern: %s", i, err)
			}
			if instructions += len(p.insts); instructions > maxInstructions || patterns > maxPatterns {
				return nil, fault.Invalid("rules holds more than %d patterns, or they take more than %d steps together: a class that may repeat 50 times takes 50", maxPatterns, maxInstructions)
			}
			rules = append(rules, &rule{program: p, kind: capitals(r.Pattern.Name), why: "pattern: " + r.Pattern.Name, action: r.Action, stages: r.Stages})
		case r.Topic != nil:
			if phrases += len(r.Topic.Phrases); phrases > maxPhrases {
				return nil, fault.Invalid("rules holds more than %d phrases", maxPhrases)
			}
			programs, err := compileTopic(*r.Topic)
			if err != nil {
				return nil, fault.Invalid("rules[%d].topic: %s", i, err)
			}
			for _, p := range programs {
				rules = append(rules, &rule{program: p, kind: capitals(r.Topic.Name), why: "denied topic: " + r.Topic.Name, action: r.Action, stages: r.Stages, phrase: true})
			}
		default:
			for _, b := range r.BuiltIn {
				known := builtIns[b]
				for _, p := range known.programs() {
					rules = append(rules, &rule{program: p, kind: string(b), why: known.why, action: r.Action, stages: r.Stages})
				}
			}
		}
	}
	for i, r := range rules {
		r.order = i
	}
	return rules, nil
}

func compilePattern(p Pattern) (*program, error) {
	if err := text.Check("pattern", p.Pattern, 1, maxPattern); err != nil {
		return nil, err
	}
	compiled, err := translate(p.Pattern, true)
	if err != nil {
		return nil, fault.Invalid("not a pattern that can be used: %s", err)
	}
	return compiled, nil
}

// compileTopic makes one program of all phrases, apart by whether they begin and end at the border of a word.
func compileTopic(t Topic) (programs []*program, err error) {
	if len(t.Phrases) == 0 {
		return nil, fault.Invalid("phrases must not be empty")
	}
	bordered := map[[2]bool][]string{}
	for _, said := range t.Phrases {
		if err := text.Check("phrases", said, 1, 10*maxPhrase); err != nil {
			return nil, err
		}
		phrase := phraseText(said)
		if n := utf8.RuneCountInString(phrase); n == 0 || n > maxPhrase {
			return nil, fault.Invalid("a phrase must have 1 to %d letters and digits", maxPhrase)
		}
		first, _ := utf8.DecodeRuneInString(phrase)
		last, _ := utf8.DecodeLastRuneInString(phrase)
		at := [2]bool{!unspaced(first), !unspaced(last)}
		bordered[at] = append(bordered[at], regexp.QuoteMeta(phrase))
	}
	for _, at := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		phrases := bordered[at]
		if phrases == nil {
			continue
		}
		slices.Sort(phrases) // beginnings that they have in common are then read once
		expression := "(?:" + strings.Join(slices.Compact(phrases), "|") + ")"
		if at[0] {
			expression = `\b` + expression
		}
		if at[1] {
			expression += `\b`
		}
		p, err := translate(expression, false)
		if err != nil {
			return nil, fault.Invalid("not phrases that can be used: %s", err)
		}
		programs = append(programs, p)
	}
	return programs, nil
}
