package guardrail

import (
	"context"
	"errors"
)

// Checker checks by a guardrail's rules and, where the guardrail says so, by Bedrock. The rules come first, so that Bedrock is given what they have
// masked; the stricter of the two decides.
type Checker struct {
	Bedrock Guard // asked about guardrails of kind BEDROCK; nil: checking by one is an error
}

// What a guardrail of Bedrock's meets where there is no Bedrock.
const notHere = "The guardrail could not be checked: Amazon Bedrock is not part of this deployment."

var errNoBedrock = errors.New("guardrail: no guardrails of Amazon Bedrock here")

// Check implements Guard.
func (c Checker) Check(ctx context.Context, g Guardrail, stage Stage, texts []string) (Decision, error) {
	d, err := g.scan(stage, texts)
	if err != nil || d.Action == Block || !g.asksBedrock(stage) {
		return d, err
	}
	if c.Bedrock == nil {
		return Decision{}, Fail(notHere, errNoBedrock)
	}
	managed, err := c.Bedrock.Check(ctx, g, stage, d.Texts)
	if err != nil {
		return Decision{}, err
	}
	return d.and(managed), nil
}

// Compile gets the rules ready, which a check does by itself, each time, if nobody did before.
func (g *Guardrail) Compile() (err error) {
	g.compiled, err = compile(g.Rules)
	return err
}

func (g Guardrail) ready() ([]*rule, error) {
	if g.compiled == nil && len(g.Rules) > 0 {
		if err := g.Compile(); err != nil {
			return nil, Fail("The guardrail's rules cannot be read.", err)
		}
	}
	return g.compiled, nil
}

// scan checks texts by the rules alone.
func (g Guardrail) scan(stage Stage, texts []string) (Decision, error) {
	rules, err := g.ready()
	if err != nil {
		return Decision{}, err
	}
	d := Decision{GuardrailID: g.ID, Stage: stage, Action: Allow}
	var why reasons
	s := newScanner(rules, stage)
	for i, t := range texts {
		s.again()
		s.write(t)
		s.finish()
		d.Texts = append(d.Texts, s.take())
		for _, span := range s.spans {
			span.Text = i
			d.Spans = append(d.Spans, span)
		}
		for _, w := range s.why {
			why.add(w)
		}
		if s.block != nil {
			d.block(g.Message(stage, ""))
			break
		}
		if len(d.Spans) > 0 {
			d.Action = Mask
		}
	}
	d.Reason = why.String()
	return d, nil
}

// block makes d the decision that nothing goes on.
func (d *Decision) block(message string) { d.Action, d.Texts, d.Message = Block, nil, message }

// and is d after another guard has decided about d's texts.
func (d Decision) and(next Decision) Decision {
	joined := next
	joined.GuardrailID, joined.Stage = d.GuardrailID, d.Stage
	if d.Action.stricter(next.Action) {
		joined.Action = d.Action
	}
	joined.Spans = Join(d.Spans, next.Spans)
	var why reasons
	why.add(d.Reason)
	why.add(next.Reason)
	joined.Reason = why.String()
	return joined
}
