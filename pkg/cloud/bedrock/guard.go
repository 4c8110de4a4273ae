package bedrock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/cenkalti/backoff/v5"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// Guard is the guardrail.Guard of Amazon Bedrock's ApplyGuardrail operation: it asks the guardrail that a guardrail's bedrock names, and knows no
// rules.
//
// Texts that are checked together are asked about as one, a line each; one that is longer than Chars in parts, each of which begins with the last
// Overlap characters of the part before. What is found across two parts is found if it is no longer than that.
//
// Throttling and the like is met by asking again, within Limit. What then still fails, and an answer that says neither what was blocked nor where it was
// masked, ends in a *guardrail.Error, or in a block: never in an allow.
type Guard struct {
	Client   *Client       // Required
	Attempts int           // all, the first included; default 4
	Limit    time.Duration // for one check, with all its attempts; default 10 s
	Chars    int           // of one call; default 10,000: the least of the quotas for one second is 25,000
	Overlap  int           // default 200
	Log      *slog.Logger  // told of what fails; default: nobody
}

// NewGuard completes g.
func NewGuard(g Guard) *Guard {
	if g.Attempts <= 0 {
		g.Attempts = 4
	}
	if g.Limit <= 0 {
		g.Limit = 10 * time.Second
	}
	if g.Chars <= 0 {
		g.Chars = 10_000
	}
	if g.Overlap <= 0 {
		g.Overlap = 200
	}
	if g.Log == nil {
		g.Log = slog.New(slog.DiscardHandler)
	}
	return &g
}

// Check implements guardrail.Guard.
func (b *Guard) Check(ctx context.Context, g guardrail.Guardrail, stage guardrail.Stage, texts []string) (guardrail.Decision, error) {
	if g.Bedrock == nil {
		return guardrail.Decision{}, guardrail.Fail("The guardrail could not be checked: it names no guardrail of Amazon Bedrock.", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	d := guardrail.Decision{GuardrailID: g.ID, Stage: stage, Action: guardrail.Allow, Texts: texts}
	all := strings.Join(texts, "\n")
	var found []guardrail.Span // in all
	var why []string
	for at := 0; at < len(all) || at == 0; {
		part, last := first(all[at:], b.Chars)
		v, err := b.ask(ctx, *g.Bedrock, stage, part)
		if err != nil {
			return guardrail.Decision{}, err
		}
		end := len(part)
		if !last && !v.blocked {
			end = guardrail.Cut(part, b.Overlap, v.spans)
		}
		for _, s := range v.spans {
			if s.Start < end {
				s.Start, s.End = s.Start+at, s.End+at
				found = append(found, s)
			}
		}
		why = append(why, v.why...)
		if v.blocked {
			d.Action, d.Texts, d.Message = guardrail.Block, nil, g.Message(stage, v.message)
			break
		}
		if last {
			break
		}
		at += end
	}
	d.Spans = split(found, texts)
	if d.Action == guardrail.Allow && len(d.Spans) > 0 {
		d.Action, d.Texts = guardrail.Mask, masked(texts, d.Spans)
	}
	if d.Action != guardrail.Allow {
		d.Reason = once(why)
	}
	return d, nil
}

// ask asks about one text until there is an answer.
func (b *Guard) ask(ctx context.Context, m guardrail.Managed, stage guardrail.Stage, text string) (verdictOf, error) {
	if strings.TrimSpace(text) == "" {
		return verdictOf{}, nil
	}
	input := &bedrockruntime.ApplyGuardrailInput{GuardrailIdentifier: &m.Identifier, GuardrailVersion: &m.Version, Source: types.GuardrailContentSourceInput,
		Content: []types.GuardrailContentBlock{&types.GuardrailContentBlockMemberText{Value: types.GuardrailTextBlock{Text: aws.String(text)}}}}
	if stage == guardrail.Output || stage == guardrail.ToolInput { // what the model made
		input.Source = types.GuardrailContentSourceOutput
	}
	var last *model.Error
	out, err := backoff.Retry(ctx, func() (*bedrockruntime.ApplyGuardrailOutput, error) {
		out, err := b.Client.client.ApplyGuardrail(ctx, input)
		if err == nil {
			return out, nil
		}
		if last = classify(ctx, err, false); !last.Temporary() {
			return nil, backoff.Permanent(last)
		}
		return nil, last
	}, backoff.WithMaxTries(uint(b.Attempts)), backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, RandomizationFactor: 1, Multiplier: 3, MaxInterval: 2 * time.Second}),
		backoff.WithNotify(func(_ error, pause time.Duration) {
			b.Log.WarnContext(ctx, "a guardrail could not be asked, asking again", "guardrail", m.Identifier, "reason", last.Reason, "pause", pause, "cause", last.Unwrap())
		}))
	if err != nil {
		return verdictOf{}, guardrail.Fail("The guardrail could not be checked: "+unasked(last, m), errors.Join(last, err))
	}
	v, err := read(text, out)
	if err != nil {
		return verdictOf{}, guardrail.Fail("The guardrail could not be checked: Amazon Bedrock's answer could not be read.", err)
	}
	return v, nil
}

// unasked says why there is no answer, for the tenant.
func unasked(e *model.Error, m guardrail.Managed) string {
	if e != nil {
		switch e.Reason {
		case model.Throttled:
			return "Amazon Bedrock is receiving too many requests. Please try again in a moment."
		case model.Missing:
			return fmt.Sprintf("Amazon Bedrock has no guardrail %s in version %s here.", m.Identifier, m.Version)
		case model.Denied:
			return fmt.Sprintf("the platform may not use the guardrail %s of Amazon Bedrock.", m.Identifier)
		case model.Invalid:
			return "Amazon Bedrock refused the request as invalid."
		case model.Canceled:
			return "the request was cancelled."
		}
	}
	return "Amazon Bedrock did not answer."
}

// first is the beginning of a text, of up to n characters, and whether that is all of it.
func first(text string, n int) (part string, all bool) {
	for i := range text {
		if n == 0 {
			return text[:i], false
		}
		n--
	}
	return text, true
}

// split are spans of texts that were joined by line breaks, as spans of each.
func split(found []guardrail.Span, texts []string) (spans []guardrail.Span) {
	at := 0
	for i, t := range texts {
		for _, s := range found {
			if start, end := max(s.Start-at, 0), min(s.End-at, len(t)); start < end {
				spans = append(spans, guardrail.Span{Kind: s.Kind, Text: i, Start: start, End: end})
			}
		}
		at += len(t) + 1
	}
	return spans
}

func masked(texts []string, spans []guardrail.Span) (out []string) {
	for i, t := range texts {
		var own []guardrail.Span
		for _, s := range spans {
			if s.Text == i {
				own = append(own, s)
			}
		}
		out = append(out, guardrail.Render(t, own))
	}
	return out
}

// once are reasons, each one time.
func once(why []string) string {
	var all []string
	seen := map[string]bool{}
	for _, w := range why {
		if !seen[w] {
			seen[w], all = true, append(all, w)
		}
	}
	return strings.Join(all, "; ")
}
