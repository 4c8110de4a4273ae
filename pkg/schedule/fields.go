package schedule

import (
	"encoding/json"
	"time"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/clock/expression"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Fields are what a caller says of a schedule.
type Fields struct {
	Name       text.Patch[string]     `json:"name,omitzero"`
	AgentID    text.Patch[string]     `json:"agentId,omitzero"`
	RoutineID  text.Patch[string]     `json:"routineId,omitzero"`
	Prompt     text.Patch[string]     `json:"prompt,omitzero"`
	Input      text.Patch[string]     `json:"input,omitzero"`
	Title      text.Patch[string]     `json:"title,omitzero"`
	Metadata   text.Patch[string]     `json:"metadata,omitzero"`
	Expression text.Patch[string]     `json:"expression,omitzero"`
	TimeZone   text.Patch[string]     `json:"timeZone,omitzero"`
	StartAt    text.Patch[ident.Time] `json:"startAt,omitzero"`
	EndAt      text.Patch[ident.Time] `json:"endAt,omitzero"`
	Enabled    text.Patch[bool]       `json:"enabled,omitzero"`
	Missed     text.Patch[Missed]     `json:"missed,omitzero"`
	Loop       text.Patch[Loop]       `json:"loop,omitzero"`
}

// apply changes s by the given fields and checks what it says then. Null is the default, where there is one. What changes when s runs is a new revision,
// which begins now.
func (f Fields) apply(s *Schedule, now time.Time) error {
	if f.Name.Set && f.Name.Value == nil || f.Expression.Set && f.Expression.Value == nil {
		return fault.Invalid("name and expression must not be null")
	}
	was := *s
	give(f.Name, &s.Name, "")
	give(f.Expression, &s.Expression, "")
	give(f.TimeZone, &s.TimeZone, "")
	give(f.Enabled, &s.Enabled, true)
	give(f.Missed, &s.Missed, MissedSkip)
	f.AgentID.Apply(&s.AgentID)
	f.RoutineID.Apply(&s.RoutineID)
	f.Prompt.Apply(&s.Prompt)
	f.Input.Apply(&s.Input)
	f.Title.Apply(&s.Title)
	f.Metadata.Apply(&s.Metadata)
	f.StartAt.Apply(&s.StartAt)
	f.EndAt.Apply(&s.EndAt)
	f.Loop.Apply(&s.Loop)
	if err := s.check(); err != nil {
		return err
	}
	return s.settleTimes(was, now)
}

// give writes a given field over one that has a default.
func give[T any](p text.Patch[T], to *T, fallback T) {
	switch {
	case p.Set && p.Value != nil:
		*to = *p.Value
	case p.Set:
		*to = fallback
	}
}

// settleTimes checks when s runs, puts it as clocks do, and counts a change of it.
func (s *Schedule) settleTimes(was Schedule, now time.Time) error {
	e, err := expression.Parse(s.Expression)
	if err != nil {
		return err
	}
	if e.Once() && (s.StartAt != nil || s.EndAt != nil) {
		return fault.Invalid("an at() has no startAt and no endAt: it runs once")
	}
	c, err := due.Check(s.quiet(), now)
	if err != nil {
		return err
	}
	s.TimeZone = c.TimeZone
	for _, bound := range []**ident.Time{&s.StartAt, &s.EndAt} {
		if *bound != nil { // to the second, as clocks have it
			*bound = &ident.Time{Time: (*bound).Truncate(time.Second)}
		}
	}
	if was.revision > 0 && s.Enabled == was.Enabled && s.sameTimes(was) {
		return nil
	}
	s.since = now.UTC().Truncate(time.Second)
	if e.Rate() > 0 && s.StartAt == nil {
		s.since = s.since.Add(firstRun)
	}
	if _, err := due.Check(s.onClock(""), now); err != nil { // also that an enabled one runs at all
		return err
	}
	s.revision++
	return nil
}

// quiet is what the clock is to hold, not to be run: it may be over.
func (s Schedule) quiet() clock.Schedule {
	c := s.onClock("")
	c.Enabled = false
	return c
}

func (s Schedule) sameTimes(other Schedule) bool {
	return s.Expression == other.Expression && s.TimeZone == other.TimeZone && same(s.StartAt, other.StartAt) && same(s.EndAt, other.EndAt)
}

func same(a, b *ident.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(b.Time)
}

// check refuses what no schedule may have, and completes what was left out.
func (s *Schedule) check() error {
	if err := text.Check("name", s.Name, 1, 200); err != nil {
		return err
	}
	if s.Missed != MissedSkip && s.Missed != MissedRunOnce {
		return fault.Invalid("missed must be %s or %s", MissedSkip, MissedRunOnce)
	}
	if (s.AgentID == nil) == (s.RoutineID == nil) {
		return fault.Invalid("a schedule has an agentId or a routineId, not both")
	}
	if s.RoutineID != nil {
		return s.checkRoutines()
	}
	if s.Input != nil {
		return fault.Invalid("input is a routine's: an agent has a prompt")
	}
	if s.Prompt == nil {
		return fault.Invalid("prompt is required: an agent's schedule tells it what to do")
	}
	if err := text.Check("prompt", *s.Prompt, 1, thread.MaxBody); err != nil {
		return err
	}
	if err := thread.Check(s.Title, s.Metadata); err != nil {
		return err
	}
	if s.Metadata != nil {
		s.Metadata = new(text.CompactJSON(*s.Metadata))
	}
	if s.Loop == nil {
		return nil
	}
	l, err := s.Loop.check()
	s.Loop = &l
	return err
}

func (s *Schedule) checkRoutines() error {
	for field, given := range map[string]bool{"prompt": s.Prompt != nil, "title": s.Title != nil, "metadata": s.Metadata != nil, "loop": s.Loop != nil} {
		if given {
			return fault.Invalid("%s is an agent's: a routine has an input", field)
		}
	}
	if s.Input == nil {
		return nil
	}
	if err := text.Check("input", *s.Input, 1, maxInput); err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(*s.Input), &object) != nil || object == nil {
		return fault.Invalid("input must be a JSON object")
	}
	s.Input = new(text.CompactJSON(*s.Input))
	return text.CheckJSON("input", *s.Input)
}

func (l Loop) check() (Loop, error) {
	if l.MaxIterations < 1 || l.MaxIterations > MaxIterations {
		return l, fault.Invalid("loop: maxIterations must be from 1 to %d", MaxIterations)
	}
	if l.ContinuationPrompt != nil {
		if err := text.Check("continuationPrompt", *l.ContinuationPrompt, 1, thread.MaxBody); err != nil {
			return l, err
		}
	}
	if b := l.Budget; b != nil {
		if b.Tokens == nil && b.USDMicros == nil {
			return l, fault.Invalid("loop: budget holds tokens, usdMicros or both")
		}
		for name, n := range map[string]*int64{"tokens": b.Tokens, "usdMicros": b.USDMicros} {
			if n != nil && (*n < 1 || *n > maxBudget) {
				return l, fault.Invalid("loop: %s must be from 1 to %d", name, maxBudget)
			}
		}
	}
	var err error
	if l.Goal, err = grade.CheckAgents(l.Goal); err != nil {
		return l, fault.Invalid("loop: goal: %s", fault.From(err).Message)
	}
	if l.Goal == nil {
		l.Goal = []evaluator.Spec{}
	}
	return l, nil
}
