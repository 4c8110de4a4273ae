package guardrail

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The windows in which Bedrock is asked about a text that is being written, in characters: a window is closed at the first end of a sentence behind
// windowLeast, or at windowMost. The last windowKept of it are held back and asked about again with the next one.
const (
	windowLeast = 500
	windowMost  = 1_000
	windowKept  = 200
)

// Stream checks a text while it is being written.
//
// Rules hold back what may still become part of a match, and nothing else. If Bedrock is asked, text is held back until a window of it is cleared: what
// Bedrock finds in a text that has it whole is never shown if it is no longer than windowKept characters; of something longer that lies across two
// windows the beginning may be.
//
// Of a blocked text that is shown which comes before the match (for Bedrock: before the window), and nothing more.
type Stream struct {
	checker Checker
	g       Guardrail
	stage   Stage
	rules   *scanner

	asks    bool
	pending []byte // what the rules let through, and Bedrock has not cleared
	at      int    // where it begins, in bytes of all that the rules let through
	fresh   int    // characters of it that no window held yet
	ended   bool   // a sentence has ended with the last character
	spans   []Span // that Bedrock found, in all that the rules let through
	why     reasons
	blocked bool
	message string
}

// Stream begins to check a text at a stage.
func (c Checker) Stream(g Guardrail, stage Stage) (*Stream, error) {
	rules, err := g.ready()
	if err != nil {
		return nil, err
	}
	s := &Stream{checker: c, g: g, stage: stage, rules: newScanner(rules, stage), asks: g.asksBedrock(stage)}
	if s.asks && c.Bedrock == nil {
		return nil, Fail(notHere, errNoBedrock)
	}
	return s, nil
}

// Reset begins again, with another text.
func (s *Stream) Reset() {
	s.rules.again()
	*s = Stream{checker: s.checker, g: s.g, stage: s.stage, rules: s.rules, asks: s.asks}
}

// Write takes the next piece of the text, and gives out what may be shown: pieces of the masked text, which may be empty. After an error, or once the text
// is blocked, nothing more may be shown.
func (s *Stream) Write(ctx context.Context, delta string) (shown string, err error) {
	if s.Blocked() {
		return "", nil
	}
	s.rules.write(delta)
	return s.clear(ctx, s.rules.take(), s.rules.block != nil)
}

// Close says that the text is over, and gives out the rest of it.
func (s *Stream) Close(ctx context.Context) (shown string, err error) {
	if s.Blocked() {
		return "", nil
	}
	s.rules.finish()
	return s.clear(ctx, s.rules.take(), true)
}

// Blocked reports whether the text is blocked.
func (s *Stream) Blocked() bool { return s.blocked || s.rules.ended }

// Decision is what was decided so far; all there is, once the text is closed or blocked. It has no texts.
func (s *Stream) Decision() Decision {
	d := Decision{GuardrailID: s.g.ID, Stage: s.stage, Action: Allow, Spans: Join(s.rules.spans, s.spans)}
	var why reasons
	why.add(s.rules.why.String())
	why.add(s.why.String())
	d.Reason = why.String()
	switch {
	case s.blocked:
		d.block(s.message)
	case s.rules.block != nil:
		d.block(s.g.Message(s.stage, ""))
	case len(d.Spans) > 0:
		d.Action = Mask
	}
	return d
}

// clear asks Bedrock about what the rules let through, window by window.
func (s *Stream) clear(ctx context.Context, passed string, over bool) (shown string, err error) {
	if !s.asks {
		return passed, nil
	}
	for len(passed) > 0 {
		r, size := utf8.DecodeRuneInString(passed)
		s.pending, passed = append(s.pending, passed[:size]...), passed[size:]
		s.fresh++
		if s.fresh >= windowMost || s.fresh >= windowLeast && (s.ended && unicode.IsSpace(r) || strings.ContainsRune("\n。！？", r)) {
			part, err := s.ask(ctx, windowKept)
			if shown += part; err != nil || s.blocked {
				return shown, err
			}
		}
		s.ended = strings.ContainsRune(".!?…", r) || s.ended && unicode.IsPunct(r)
	}
	if over && s.fresh > 0 {
		part, err := s.ask(ctx, 0)
		return shown + part, err
	}
	if over {
		shown += s.cut(len(s.pending), nil)
	}
	return shown, nil
}

// ask asks about what is pending, and gives out all but its last characters.
func (s *Stream) ask(ctx context.Context, keep int) (shown string, err error) {
	s.fresh = 0
	d, err := s.checker.Bedrock.Check(ctx, s.g, s.stage, []string{string(s.pending)})
	if err != nil {
		return "", err
	}
	if d.Action == Block {
		s.blocked, s.message = true, d.Message
		s.why.add(d.Reason)
		for _, found := range d.Spans {
			s.spans = append(s.spans, Span{Kind: found.Kind, Start: s.at + found.Start, End: s.at + found.End})
		}
		return "", nil
	}
	end := Cut(string(s.pending), keep, d.Spans)
	n := 0
	for n < len(d.Spans) && d.Spans[n].End <= end {
		n++
	}
	if n > 0 {
		s.why.add(d.Reason)
	}
	return s.cut(end, d.Spans[:n]), nil
}

// cut gives out what is pending up to end, with these spans masked.
func (s *Stream) cut(end int, spans []Span) (shown string) {
	shown = Render(string(s.pending[:end]), spans)
	for _, found := range spans {
		s.spans = append(s.spans, Span{Kind: found.Kind, Start: s.at + found.Start, End: s.at + found.End})
	}
	s.pending, s.at = s.pending[end:], s.at+end
	return shown
}
