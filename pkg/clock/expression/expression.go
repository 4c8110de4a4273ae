// Package expression is Amazon EventBridge Scheduler's own grammar of schedules, and when they run:
//
//	rate(<n> minutes|hours|days)                    every n, counted from the start or from when the schedule was made
//	cron(minutes hours day-of-month month day-of-week year)
//	at(yyyy-mm-ddThh:mm:ss)                         once
//
// What holds, as the user guide says it (https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html):
//   - cron and at are local times of a zone of the IANA database; rate is not: a day of it has 24 hours.
//   - "When time shifts forward in the Spring, if a cron expression falls on a non-existent date and time, your schedule invocation is skipped."
//     An at that falls there never runs.
//   - "When time shifts backwards in the Fall, your schedule runs only once": "before the shift occurs, but does not repeat the schedule invocation
//     again after the time shift". That is so for each local time, so what runs each minute pauses while the hour is repeated.
//   - A rate without a start runs at once, then each n; with one, its first run is at the start. Start and end may themselves be runs. An at
//     ignores both.
//   - Days of the week are 1-7 for SUN-SAT. One of day-of-month and day-of-week is ?, the other is not.
//
// Where the guide is silent, what is certain to be understood by the service is taken and the rest refused: names in capitals, six fields, ranges
// from low to high, no list with *, L, W or #. L, W and # mean what they mean in Quartz, where they come from: LW is the month's last weekday
// (Monday to Friday), a lone L of day-of-week is Saturday, 31W is in months of 31 days only, and W never leaves its month.
//
// The zones are linked into whoever imports this package (time/tzdata, 0.4 MiB), because functions run where there are no zone files; a machine's
// own files are preferred where there are some.
package expression

import (
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// MaxLength is how long an expression may be, in bytes.
const MaxLength = 256

// The years in which anything runs.
const (
	firstYear = 1970
	lastYear  = 2199
)

// Expression is a parsed one. The zero value never runs.
type Expression struct {
	text  string
	every time.Duration // of rate
	cron  *cron
	once  *wall // of at
}

// String is the text it was parsed from.
func (e Expression) String() string { return e.text }

// Once reports whether it is an at: it runs once, and ignores start and end.
func (e Expression) Once() bool { return e.once != nil }

// Rate is the time between the runs of a rate; 0 for others.
func (e Expression) Rate() time.Duration { return e.every }

// Parse reads an expression. An error is a ValidationError that names the field and what it may hold; it may be shown to who wrote the text.
func Parse(text string) (Expression, error) {
	e := Expression{text: text}
	if len(text) > MaxLength {
		return e, fault.Invalid("a schedule expression has at most %d characters", MaxLength)
	}
	kind, rest, _ := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	var err error
	switch {
	case !closed:
		err = errKind(text)
	case kind == "rate":
		e.every, err = parseRate(inner)
	case kind == "cron":
		e.cron, err = parseCron(inner)
	case kind == "at":
		e.once, err = parseAt(inner)
	default:
		err = errKind(text)
	}
	if err != nil {
		return Expression{}, err
	}
	return e, nil
}

func errKind(text string) error {
	return fault.Invalid("%s is no schedule expression: write rate(5 minutes), cron(minutes hours day-of-month month day-of-week year) or at(yyyy-mm-ddThh:mm:ss)", quoted(text))
}

const days = 24 * time.Hour

var units = map[string]time.Duration{"minute": time.Minute, "minutes": time.Minute, "hour": time.Hour, "hours": time.Hour, "day": days, "days": days}

func parseRate(text string) (time.Duration, error) {
	value, unit, _ := strings.Cut(text, " ")
	each := units[strings.TrimLeft(unit, " ")]
	if each == 0 {
		return 0, fault.Invalid("rate(%s): the unit is not one of minute, minutes, hour, hours, day, days, as in rate(5 minutes)", short(text))
	}
	n, ok := number(value, 9)
	if !ok || n < 1 || value[0] == '0' {
		return 0, fault.Invalid("rate(%s): the value is not a whole number from 1 on, as in rate(5 minutes)", short(text))
	}
	const longest = (lastYear - firstYear) * 365 * days
	if time.Duration(n) > longest/each {
		return 0, fault.Invalid("rate(%s): the value is more than %d years", short(text), lastYear-firstYear)
	}
	return time.Duration(n) * each, nil
}

func parseAt(text string) (*wall, error) {
	const layout = "2006-01-02T15:04:05"
	t, err := time.Parse(layout, text)
	if err != nil || len(text) != len(layout) {
		return nil, fault.Invalid("at(%s) is not at(yyyy-mm-ddThh:mm:ss) with a date and time that exist, as in at(2030-11-20T13:00:00)", short(text))
	}
	if t.Year() < firstYear || t.Year() > lastYear {
		return nil, fault.Invalid("at(%s): the year is not in %d-%d", text, firstYear, lastYear)
	}
	return &wall{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second()}, nil
}

// number is a text of so many digits at most.
func number(text string, most int) (n int, ok bool) {
	if text == "" || len(text) > most || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// short is a text as an error repeats it: printable, and not all of a long one.
func short(text string) string {
	q := quoted(text)
	return q[1 : len(q)-1]
}

func quoted(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}
