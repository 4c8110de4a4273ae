package expression

import (
	"math/bits"
	"regexp"
	"sync"
	"time"
	_ "time/tzdata" // functions run where there are no zone files

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Times are the occurrences of an expression: when it is due.
type Times struct {
	Expression Expression
	Zone       *time.Location // of cron and at; nil: UTC
	Start, End time.Time      // the first and the last instant at which it may be due; zero: none. An at ignores them
	Made       time.Time      // what a rate without a start is counted from: its first occurrence
}

// Next is the first occurrence after an instant, in the zone; false if there is none up to the year 2199.
func (t Times) Next(after time.Time) (due time.Time, found bool) {
	zone := t.Zone
	if zone == nil {
		zone = time.UTC
	}
	e := t.Expression
	if e.once != nil {
		due, found = e.once.in(zone)
		return due, found && due.After(after)
	}
	if !t.Start.IsZero() && after.Before(t.Start) {
		after = t.Start.Add(-1)
	}
	switch {
	case e.cron != nil:
		due, found = e.cron.next(after, zone)
	case e.every > 0:
		due, found = t.nextOfRate(after)
		due = due.In(zone)
	}
	if !found || !t.End.IsZero() && due.After(t.End) {
		return time.Time{}, false
	}
	return due, true
}

// NextN are the first n occurrences after an instant, fewer if there are no more.
func (t Times) NextN(after time.Time, n int) (all []time.Time) {
	for range n {
		due, found := t.Next(after)
		if !found {
			break
		}
		all, after = append(all, due), due
	}
	return all
}

// Last is the last occurrence after one instant and not after another: of those that were missed meanwhile, the one that counts.
func (t Times) Last(after, until time.Time) (due time.Time, found bool) {
	const long = 10 * 365 * days
	for span := time.Hour; ; span *= 24 { // what is due often is not gone through from its beginning
		from := until.Add(-span)
		if span > long || from.Before(after) {
			from = after
		}
		for next, more := t.Next(from); more && !next.After(until); next, more = t.Next(next) {
			due, found = next, true
		}
		if found || from.Equal(after) {
			return due, found
		}
	}
}

func (t Times) nextOfRate(after time.Time) (time.Time, bool) {
	anchor := t.Made
	if !t.Start.IsZero() {
		anchor = t.Start
	}
	if anchor.IsZero() {
		anchor = time.Unix(0, 0)
	}
	due := anchor
	if !after.Before(anchor) {
		every := int64(t.Expression.every / time.Second)
		whole := (after.Unix() - anchor.Unix()) / every // in seconds: a Duration ends after 292 years
		due = time.Unix(anchor.Unix()+whole*every, int64(anchor.Nanosecond()))
		if !due.After(after) {
			due = due.Add(t.Expression.every)
		}
	}
	return due, due.UTC().Year() >= firstYear && due.UTC().Year() <= lastYear
}

// wall is a local time.
type wall struct{ year, month, day, hour, minute, second int }

// in is the first instant at which the clocks of a zone show it; false if they never do.
func (w wall) in(zone *time.Location) (time.Time, bool) {
	t := time.Date(w.year, time.Month(w.month), w.day, w.hour, w.minute, w.second, 0, zone)
	if t.Hour() != w.hour || t.Minute() != w.minute || t.Day() != w.day {
		return time.Time{}, false
	}
	// Of a time that is shown twice, Date promises neither.
	shift, _ := t.ZoneBounds()
	if shift.IsZero() {
		return t, true
	}
	_, offset := t.Zone()
	_, before := shift.Add(-time.Second).Zone()
	if earlier := t.Add(time.Duration(offset-before) * time.Second); before > offset && earlier.Before(shift) {
		t = earlier
	}
	return t, true
}

// next goes through the local times in their order, which is also that of the instants at which they are first shown.
func (c *cron) next(after time.Time, zone *time.Location) (time.Time, bool) {
	local := after.In(zone)
	w := wall{local.Year(), int(local.Month()), local.Day(), local.Hour(), local.Minute(), 0}
	for c.from(&w) {
		if due, exists := w.in(zone); exists && due.After(after) {
			return due, true
		}
		w.minute++
	}
	return time.Time{}, false
}

// from moves w to the first local time of the expression that is w or later; false if there is none.
func (c *cron) from(w *wall) bool {
	for {
		year := firstYear + c.years.from(w.year-firstYear)
		if year < firstYear {
			return false
		}
		if year > w.year {
			*w = wall{year: year, month: 1, day: 1}
		}
		month := c.months.from(w.month)
		if month < 0 {
			*w = wall{year: year + 1, month: 1, day: 1}
			continue
		}
		if month > w.month {
			*w = wall{year: year, month: month, day: 1}
		}
		later := c.daysOf(year, month) & (^uint32(0) << w.day)
		if later == 0 {
			*w = wall{year: year, month: month + 1, day: 1}
			continue
		}
		if day := bits.TrailingZeros32(later); day > w.day {
			*w = wall{year: year, month: month, day: day}
		}
		hour := c.hours.from(w.hour)
		if hour < 0 {
			*w = wall{year: year, month: month, day: w.day + 1}
			continue
		}
		if hour > w.hour {
			w.hour, w.minute = hour, 0
		}
		minute := c.minutes.from(w.minute)
		if minute < 0 {
			w.hour, w.minute = hour+1, 0
			continue
		}
		w.minute = minute
		return true
	}
}

var (
	zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$`)
	zones    sync.Map // by name; only those that exist, which are 600
)

// Zone is a zone of the IANA database; the empty name is UTC. Names are as the database writes them: Europe/Berlin.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if zone, known := zones.Load(name); known {
		return zone.(*time.Location), nil
	}
	if name != "Local" && len(name) <= 50 && zoneName.MatchString(name) {
		if zone, err := time.LoadLocation(name); err == nil {
			zones.Store(name, zone)
			return zone, nil
		}
	}
	return nil, fault.Invalid("%s is not a time zone of the IANA database, such as UTC or Europe/Berlin", quoted(name))
}
