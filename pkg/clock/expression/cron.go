package expression

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// set is a set of small numbers.
type set [4]uint64

func (s *set) add(n int) { s[n/64] |= 1 << (n % 64) }

// from is the first member that is n or more, -1 if there is none.
func (s *set) from(n int) int {
	n = max(n, 0)
	for i := n / 64; i < len(s); i++ {
		word := s[i]
		if i == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// rule is how a cron chooses the days of a month.
type rule int

const (
	dates          rule = iota // in days
	lastDay                    // L
	lastWeekday                // LW
	nearestWeekday             // nW
	weekdays                   // in days, 1 is Sunday
	lastOfWeekday              // nL
	nthWeekday                 // n#k
)

type cron struct {
	minutes, hours, months, years set // years are counted from firstYear
	rule                          rule
	days                          set // of dates and weekdays
	n, k                          int
}

// field is one of the six.
type field struct {
	name     string
	min, max int
	names    []string // of min, min+1, …
	noStep   bool
	allowed  string
}

var (
	minutes    = field{name: "minutes", max: 59, allowed: "0-59 with , - * /"}
	hours      = field{name: "hours", max: 23, allowed: "0-23 with , - * /"}
	dayOfMonth = field{name: "day-of-month", min: 1, max: 31, allowed: "1-31 with , - * / or ? or L, LW, or a day with W"}
	month      = field{name: "month", min: 1, max: 12, allowed: "1-12 or JAN-DEC with , - * /",
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	dayOfWeek = field{name: "day-of-week", min: 1, max: 7, noStep: true, allowed: "1-7 (1 is Sunday) or SUN-SAT with , - * or ? or L, a day with L, or a day with #1 to #5",
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
	year = field{name: "year", min: firstYear, max: lastYear, allowed: "1970-2199 with , - * /"}
)

// refuse is the error of a field's text.
func (f field) refuse(text, why string) error {
	return fault.Invalid("cron, field %s: %s %s; allowed: %s", f.name, quoted(text), why, f.allowed)
}

func parseCron(text string) (*cron, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && (r < '!' || r > '~') }) {
		return nil, fault.Invalid("cron(%s) holds a character that no field may hold; fields are separated by spaces", short(text))
	}
	fields := strings.Fields(text)
	if len(fields) != 6 {
		return nil, fault.Invalid("cron(%s) has %d fields, not the six: minutes hours day-of-month month day-of-week year, as in cron(30 8 ? * MON-FRI *)", short(text), len(fields))
	}
	c := &cron{}
	for _, to := range []struct {
		text string
		field
		*set
	}{{fields[0], minutes, &c.minutes}, {fields[1], hours, &c.hours}, {fields[3], month, &c.months}, {fields[5], year, &c.years}} {
		var err error
		if *to.set, err = to.parse(to.text); err != nil {
			return nil, err
		}
	}
	byDate, byWeekday := fields[2], fields[4]
	switch {
	case byDate == "?" && byWeekday == "?":
		return nil, fault.Invalid("cron: the fields day-of-month and day-of-week are both ?; one of them must say which days")
	case byDate != "?" && byWeekday != "?":
		return nil, fault.Invalid("cron: the fields day-of-month %s and day-of-week %s both say which days; one of them must be ?", quoted(byDate), quoted(byWeekday))
	case byWeekday == "?":
		return c, c.parseDates(byDate)
	}
	return c, c.parseWeekdays(byWeekday)
}

func (c *cron) parseDates(text string) (err error) {
	day, isW := strings.CutSuffix(text, "W")
	switch {
	case text == "L":
		c.rule = lastDay
	case text == "LW":
		c.rule = lastWeekday
	case isW:
		n, known := dayOfMonth.value(day)
		if !known {
			return dayOfMonth.refuse(text, "is not one day with W")
		}
		c.rule, c.n = nearestWeekday, n
	case strings.ContainsAny(text, "LW"):
		return dayOfMonth.refuse(text, "has L or W among others")
	default:
		c.rule = dates
		c.days, err = dayOfMonth.parse(text)
	}
	return err
}

func (c *cron) parseWeekdays(text string) (err error) {
	day, isLast := strings.CutSuffix(text, "L")
	_, isName := dayOfWeek.value(text)
	if before, k, isNth := strings.Cut(text, "#"); isNth {
		n, known := dayOfWeek.value(before)
		kth, ok := number(k, 1)
		if !known || !ok || kth < 1 || kth > 5 {
			return dayOfWeek.refuse(text, "is not one day with #1 to #5")
		}
		c.rule, c.n, c.k = nthWeekday, n, kth
		return nil
	}
	switch {
	case text == "L":
		c.rule = weekdays
		c.days.add(7)
	case isLast && !isName:
		n, known := dayOfWeek.value(day)
		if !known {
			return dayOfWeek.refuse(text, "is not one day with L")
		}
		c.rule, c.n = lastOfWeekday, n
	default:
		c.rule = weekdays
		c.days, err = dayOfWeek.parse(text)
	}
	return err
}

// parse reads a list of values, ranges and increments. Years are counted from the field's least.
func (f field) parse(text string) (s set, err error) {
	items := strings.Split(text, ",")
	for _, item := range items {
		if len(items) > 1 && strings.HasPrefix(item, "*") {
			return s, f.refuse(text, "has * among others")
		}
		from, to, step, err := f.item(item)
		if err != nil {
			return s, err
		}
		for n := from; n <= to; n += step {
			if f.min == firstYear {
				s.add(n - firstYear)
			} else {
				s.add(n)
			}
		}
	}
	return s, nil
}

// item reads *, a, a-b, and each with /step; a/step goes on to the field's end.
func (f field) item(text string) (from, to, step int, err error) {
	span, by, stepped := strings.Cut(text, "/")
	low, high, ranged := strings.Cut(span, "-")
	var known bool
	if span == "*" {
		from, to = f.min, f.max
	} else {
		if from, known = f.value(low); !known {
			return 0, 0, 0, f.refuse(text, "is not a value")
		}
		to = from
		if ranged {
			if to, known = f.value(high); !known {
				return 0, 0, 0, f.refuse(text, "is not a range of values")
			}
		} else if stepped {
			to = f.max
		}
		if from > to {
			return 0, 0, 0, f.refuse(text, "goes from high to low")
		}
	}
	step = 1
	if stepped {
		n, ok := number(by, 4)
		if f.noStep || !ok || n < 1 || n > f.max-f.min {
			return 0, 0, 0, f.refuse(text, "has an increment that is not allowed")
		}
		step = n
	}
	return from, to, step, nil
}

// value is a number or a name in the field's bounds.
func (f field) value(text string) (n int, known bool) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, true
	}
	n, ok := number(text, 4)
	return n, ok && n >= f.min && n <= f.max
}

// daysOf are the days of a month on which it runs, day d as bit d.
func (c *cron) daysOf(year, month int) uint32 {
	length := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	first := int(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Weekday()) // 0 is Sunday
	weekday := func(day int) int { return (first+day-1)%7 + 1 }                         // 1 is Sunday
	switch c.rule {
	case dates:
		return uint32(c.days[0]) & (1<<(length+1) - 2)
	case lastDay:
		return 1 << length
	case lastWeekday:
		return 1 << nearest(length, length, weekday(length))
	case nearestWeekday:
		if c.n > length {
			return 0
		}
		return 1 << nearest(c.n, length, weekday(c.n))
	case weekdays:
		var mask uint32
		for day := range length {
			if c.days.from(weekday(day+1)) == weekday(day+1) {
				mask |= 1 << (day + 1)
			}
		}
		return mask
	}
	day := 1 + (c.n-weekday(1)+7)%7 // the first of that weekday
	if c.rule == lastOfWeekday {
		return 1 << (day + (length-day)/7*7)
	}
	if day += 7 * (c.k - 1); day > length {
		return 0
	}
	return 1 << day
}

// nearest is the day from Monday to Friday that is nearest to a day in a month of that length.
func nearest(day, length, weekday int) int {
	switch {
	case weekday == 7 && day == 1:
		return 3
	case weekday == 7:
		return day - 1
	case weekday == 1 && day == length:
		return day - 2
	case weekday == 1:
		return day + 1
	}
	return day
}
