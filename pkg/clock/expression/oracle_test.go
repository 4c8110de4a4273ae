package expression

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// matches is the oracle: whether a cron's text names a local time. It knows no sets and no months, only one minute.
func matches(text string, local time.Time) bool {
	fields := strings.Fields(text[len("cron(") : len(text)-1])
	return listed(fields[0], local.Minute(), 0, "") && listed(fields[1], local.Hour(), 0, "") && matchesDay(fields, local)
}

func matchesDay(fields []string, local time.Time) bool {
	return listed(fields[3], int(local.Month()), 1, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC") && listed(fields[5], local.Year(), 1970, "") &&
		matchesDate(fields[2], local) && matchesWeekday(fields[4], local)
}

// listed reports whether n is in a list of values, ranges and increments.
func listed(list string, n, least int, names string) bool {
	for item := range strings.SplitSeq(list, ",") {
		span, by, stepped := strings.Cut(item, "/")
		low, high, ranged := strings.Cut(span, "-")
		from, to := least, 1<<30
		if span != "*" {
			from = valued(low, least, names)
			if ranged {
				to = valued(high, least, names)
			} else if !stepped {
				to = from
			}
		}
		step := 1
		if stepped {
			step, _ = strconv.Atoi(by)
		}
		if from <= n && n <= to && (n-from)%step == 0 {
			return true
		}
	}
	return false
}

func valued(text string, least int, names string) int {
	if i := strings.Index(names, text); names != "" && i >= 0 && len(text) == 3 {
		return i/3 + least
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(text)
	}
	return n
}

func working(day time.Time) bool {
	return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
}

func matchesDate(field string, local time.Time) bool {
	date := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	last := date.AddDate(0, 1, -date.Day())
	if date.Day() > 28 { // AddDate normalizes the 31st of a short month
		last = time.Date(date.Year(), date.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	}
	switch day, isW := strings.CutSuffix(field, "W"); {
	case field == "?":
		return true
	case field == "L":
		return date.Equal(last)
	case field == "LW":
		for !working(last) {
			last = last.AddDate(0, 0, -1)
		}
		return date.Equal(last)
	case isW:
		n, _ := strconv.Atoi(day)
		if n > last.Day() || !working(date) {
			return false
		}
		// It is the nearest if no working day of the month is nearer; of two as near, the earlier does not occur, as no lone day off has two neighbours.
		distance := func(d int) int { return max(d-n, n-d) }
		for d := 1; d <= last.Day(); d++ {
			if working(date.AddDate(0, 0, d-date.Day())) && distance(d) < distance(date.Day()) {
				return false
			}
		}
		return true
	}
	return listed(field, date.Day(), 1, "")
}

func matchesWeekday(field string, local time.Time) bool {
	const names = "SUNMONTUEWEDTHUFRISAT"
	n := int(local.Weekday()) + 1
	if day, k, isNth := strings.Cut(field, "#"); isNth {
		nth, _ := strconv.Atoi(k)
		return n == valued(day, 1, names) && (local.Day()-1)/7+1 == nth
	}
	switch day, isL := strings.CutSuffix(field, "L"); {
	case field == "?":
		return true
	case field == "L":
		return n == 7
	case isL:
		return n == valued(day, 1, names) && local.AddDate(0, 0, 7).Month() != local.Month()
	}
	return listed(field, n, 1, names)
}

// minute is one of a zone's: an instant, what its clocks show, and whether they have shown it before.
type minute struct {
	instant time.Time
	repeats bool
}

// walk is each minute from one instant to another.
func walk(zone *time.Location, from, to time.Time) (all []minute) {
	shown := map[string]bool{}
	for t := from.Add(-3 * time.Hour); t.Before(to); t = t.Add(time.Minute) {
		local := t.In(zone)
		key := ""
		if local.Hour() < 4 { // clocks are changed at night
			key = local.Format("2006-01-02 15:04")
		}
		if !t.Before(from) {
			all = append(all, minute{local, shown[key]})
		}
		if key != "" {
			shown[key] = true
		}
	}
	return all
}

// expected are the minutes that the oracle names. What the fields of the day say is asked once a day.
func expected(text string, minutes []minute) (due []time.Time) {
	fields := strings.Fields(text[len("cron(") : len(text)-1])
	var atMinute [60]bool
	var atHour [24]bool
	for n := range atMinute {
		atMinute[n] = listed(fields[0], n, 0, "")
	}
	for n := range atHour {
		atHour[n] = listed(fields[1], n, 0, "")
	}
	day, onDay := 0, false
	for _, m := range minutes {
		if m.repeats || !atMinute[m.instant.Minute()] || !atHour[m.instant.Hour()] {
			continue
		}
		if m.instant.YearDay() != day {
			day, onDay = m.instant.YearDay(), matchesDay(fields, m.instant)
		}
		if onDay {
			due = append(due, m.instant)
		}
	}
	return due
}

// The zones of these tests: an hour in spring and autumn, the same on other days, half an hour on the other half of the earth, none.
var zoneNames = []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC"}

// TestNextIsWhatTheMinutesSay goes through a leap year minute by minute.
func TestNextIsWhatTheMinutesSay(t *testing.T) {
	from, to := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range zoneNames {
		zone, err := Zone(name)
		require.NoError(t, err)
		minutes := walk(zone, from, to)
		for _, text := range []string{
			"cron(* * * * ? *)", "cron(*/7 0-3 * * ? *)", "cron(30 2 * * ? *)", "cron(30 1 * * ? *)", "cron(45 1,2 * * ? *)", "cron(0/30 0/2 * * ? 2028)", "cron(1/10 * * * ? *)",
			"cron(0 0 31 * ? *)", "cron(0 0 29 2 ? *)", "cron(59 23 28-31 FEB,APR,12 ? *)", "cron(0 12 1-31/10 */3 ? *)", "cron(0 0 L * ? *)", "cron(0 0 LW * ? *)",
			"cron(5 6 1W * ? *)", "cron(5 6 15W * ? *)", "cron(5 6 30W * ? *)", "cron(5 6 31W * ? *)",
			"cron(0 9 ? * MON-FRI *)", "cron(0 9 ? * 1,7 *)", "cron(0 9 ? * * *)", "cron(0 9 ? * L *)", "cron(0 9 ? * 5L *)", "cron(0 9 ? * SUNL *)", "cron(2 2 ? * 1#2 *)", "cron(1 1 ? 11 SUN#1 *)", "cron(0 9 ? * SAT#5 2028)",
			"cron(0 0 30 2 ? *)", "cron(0 0 1 1 ? 2027,2029-2030)",
		} {
			e, err := Parse(text)
			require.NoError(t, err)
			want := expected(text, minutes)
			times := Times{Expression: e, Zone: zone, End: to.Add(-1)}
			got := times.NextN(from.Add(-1), len(want)+1)
			require.Len(t, got, len(want), "%s in %s", text, name)
			for i := range want {
				require.True(t, want[i].Equal(got[i]), "%s in %s: run %d is %s, should be %s", text, name, i, got[i], want[i])
			}
		}
	}
}

// TestNextOfAnyExpression: the same for expressions that nobody thought of, around the days on which clocks are changed; and Last is Next's mirror.
func TestNextOfAnyExpression(t *testing.T) {
	type span struct {
		zone     *time.Location
		from, to time.Time
		minutes  []minute
	}
	var spans []span
	for _, name := range zoneNames {
		zone, err := Zone(name)
		require.NoError(t, err)
		for _, day := range []time.Time{time.Date(2030, 3, 8, 0, 0, 0, 0, time.UTC), time.Date(2031, 10, 1, 0, 0, 0, 0, time.UTC)} {
			to := day.AddDate(0, 0, 40)
			spans = append(spans, span{zone, day, to, walk(zone, day, to)})
		}
	}
	list := func(min, max int, step bool) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
				return "*"
			}
			items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				a := rapid.IntRange(min, max).Draw(t, "a")
				b := rapid.IntRange(a, max).Draw(t, "b")
				by := rapid.IntRange(1, max-min).Draw(t, "by")
				forms := []string{strconv.Itoa(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d/%d", a, by), fmt.Sprintf("%d-%d/%d", a, b, by)}
				if !step {
					forms = forms[:2]
				}
				return rapid.SampledFrom(forms).Draw(t, "form")
			}), 1, 3).Draw(t, "items")
			return strings.Join(items, ",")
		})
	}
	day := rapid.Custom(func(t *rapid.T) string {
		date := rapid.OneOf(list(1, 31, true), rapid.SampledFrom([]string{"L", "LW", "1W", "2W", "15W", "29W", "30W", "31W"}))
		weekday := rapid.OneOf(list(1, 7, false), rapid.SampledFrom([]string{"L", "1L", "4L", "SATL", "1#1", "2#5", "FRI#3", "TUE-THU"}))
		month := list(1, 12, true).Draw(t, "month")
		if rapid.Bool().Draw(t, "dates") {
			return date.Draw(t, "date") + " " + month + " ?"
		}
		return "? " + month + " " + weekday.Draw(t, "weekday")
	})
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("cron(%s %s %s %s)", list(0, 59, true).Draw(t, "minutes"), list(0, 23, true).Draw(t, "hours"), day.Draw(t, "day"), rapid.SampledFrom([]string{"*", "2030", "2000/10", "1970-2030,2031"}).Draw(t, "year"))
		e, err := Parse(text)
		require.NoError(t, err, text)
		s := rapid.SampledFrom(spans).Draw(t, "span")
		want := expected(text, s.minutes)
		times := Times{Expression: e, Zone: s.zone, Start: s.from, End: s.to.Add(-1)}
		got := times.NextN(time.Time{}, len(want)+1)
		require.Len(t, got, len(want), "%s in %s", text, s.zone)
		for i := range want {
			require.True(t, want[i].Equal(got[i]), "%s in %s: run %d is %s, should be %s", text, s.zone, i, got[i], want[i])
		}
		last, found := times.Last(time.Time{}, s.to)
		require.Equal(t, len(want) > 0, found)
		if found {
			require.True(t, last.Equal(want[len(want)-1]), "%s in %s: last is %s, should be %s", text, s.zone, last, want[len(want)-1])
		}
	})
}
