// Package due says which schedules a clock takes, and when they are due. It is the same for every clock, and apart from the port because it brings
// the time zones with it.
package due

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/expression"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// MaxInput is how large an input may be, in bytes.
const MaxInput = 64 << 10

// The instants at which a schedule may start and end.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Check is s as clocks hold it: times in UTC and to the second, the zone named, the input compact, no bounds of an at. What it refuses is a
// fault.Error that says what to write instead; clock.ErrNeverRuns for an enabled schedule that is not due from now on.
func Check(s clock.Schedule, now time.Time) (clock.Schedule, error) {
	if !clock.ValidName(s.Name) {
		return s, fault.Invalid("a schedule's name has 1 to 64 of the characters A-Z a-z 0-9 - _ .")
	}
	e, err := expression.Parse(s.Expression)
	if err != nil {
		return s, err
	}
	zone, err := expression.Zone(s.TimeZone)
	if err != nil {
		return s, err
	}
	s.TimeZone = zone.String()
	if e.Once() {
		s.Start, s.End = time.Time{}, time.Time{}
	}
	for _, bound := range []*time.Time{&s.Start, &s.End} {
		if bound.IsZero() {
			continue
		}
		if *bound = bound.UTC().Truncate(time.Second); bound.Before(earliest) || !bound.Before(latest) {
			return s, fault.Invalid("start and end of a schedule are in the years 1970-2199")
		}
	}
	if !s.Start.IsZero() && !s.End.IsZero() && s.End.Before(s.Start) {
		return s, fault.Invalid("the schedule's end is before its start")
	}
	if s.Input, err = input(s.Input); err != nil {
		return s, err
	}
	if s.Enabled {
		made := now.Truncate(time.Second)
		if _, runs := times(e, zone, s, made).Next(made.Add(-1)); !runs {
			return s, clock.ErrNeverRuns
		}
	}
	return s, nil
}

// Times are the occurrences of a schedule. A rate without a start is counted from when the schedule was made.
func Times(s clock.Schedule, made time.Time) (expression.Times, error) {
	e, err := expression.Parse(s.Expression)
	if err != nil {
		return expression.Times{}, err
	}
	zone, err := expression.Zone(s.TimeZone)
	return times(e, zone, s, made), err
}

func times(e expression.Expression, zone *time.Location, s clock.Schedule, made time.Time) expression.Times {
	return expression.Times{Expression: e, Zone: zone, Start: s.Start, End: s.End, Made: made}
}

// escaped is the keyword's string as encoding/json writes it. The quote before it shows that the backslash is not itself escaped.
var escaped = []byte(`"\u003c` + clock.ScheduledTime[1:len(clock.ScheduledTime)-1] + `\u003e"`)

func input(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 {
		return json.RawMessage("{}"), nil
	}
	var compact bytes.Buffer
	if !utf8.Valid(text) || json.Compact(&compact, text) != nil {
		return nil, fault.Invalid("a schedule's input is not JSON")
	}
	in := bytes.ReplaceAll(compact.Bytes(), escaped, []byte(`"`+clock.ScheduledTime+`"`))
	if len(in) > MaxInput {
		return nil, fault.Invalid("a schedule's input has more than %d bytes", MaxInput)
	}
	if bytes.Count(in, []byte(clock.Keyword)) != bytes.Count(in, []byte(`"`+clock.ScheduledTime+`"`)) {
		return nil, fault.Invalid("a schedule's input holds %s…>, of which only the string %s stands for something", clock.Keyword, clock.ScheduledTime)
	}
	return in, nil
}
