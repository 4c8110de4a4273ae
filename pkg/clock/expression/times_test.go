package expression

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func parsed(t testing.TB, text, zone string) Times {
	t.Helper()
	e, err := Parse(text)
	require.NoError(t, err)
	z, err := Zone(zone)
	require.NoError(t, err)
	return Times{Expression: e, Zone: z}
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return at
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		text, zone, after string
		want              []string // runs, as the zone's clocks show them
	}{
		// Month ends.
		{"cron(0 0 31 * ? *)", "UTC", "2027-01-31T00:00:00Z", []string{"2027-03-31T00:00:00Z", "2027-05-31T00:00:00Z", "2027-07-31T00:00:00Z", "2027-08-31T00:00:00Z"}},
		{"cron(0 0 L * ? *)", "UTC", "2027-01-31T00:00:00Z", []string{"2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z", "2027-04-30T00:00:00Z"}},
		{"cron(59 23 L 12 ? *)", "Europe/Berlin", "2027-01-01T00:00:00Z", []string{"2027-12-31T23:59:00+01:00", "2028-12-31T23:59:00+01:00"}},
		{"cron(0 0 30 * ? *)", "UTC", "2027-01-30T00:00:01Z", []string{"2027-03-30T00:00:00Z"}},
		// Leap days, also of a century.
		{"cron(0 0 29 2 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"cron(0 0 29 2 ? *)", "UTC", "2097-01-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"cron(0 0 L 2 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"}},
		// The weekday nearest to a day never leaves the month. 1 May 2027 and 1 August 2026 are Saturdays; 31 January 2027 is a Sunday.
		{"cron(0 9 1W 5 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-05-03T09:00:00Z"}},
		{"cron(0 9 31W 1 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-29T09:00:00Z"}},
		{"cron(0 9 2W 5 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-05-03T09:00:00Z"}},
		{"cron(0 9 15W 5 ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-05-14T09:00:00Z"}},
		{"cron(0 9 31W * ? *)", "UTC", "2027-02-01T00:00:00Z", []string{"2027-03-31T09:00:00Z", "2027-05-31T09:00:00Z"}},
		{"cron(0 9 LW * ? *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-29T09:00:00Z", "2027-02-26T09:00:00Z", "2027-03-31T09:00:00Z"}},
		// Days of the week: 1 is Sunday; L is Saturday, 5L the last Thursday; # counts.
		{"cron(0 9 ? * 1 *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-03T09:00:00Z", "2027-01-10T09:00:00Z"}},
		{"cron(0 9 ? * L *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-02T09:00:00Z"}},
		{"cron(0 9 ? * 5L *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-28T09:00:00Z", "2027-02-25T09:00:00Z"}},
		{"cron(15 10 ? * 6L 2022-2023)", "UTC", "2023-11-01T00:00:00Z", []string{"2023-11-24T10:15:00Z", "2023-12-29T10:15:00Z"}},
		{"cron(0 8 ? * MON#1 *)", "America/Los_Angeles", "2027-02-02T00:00:00Z", []string{"2027-03-01T08:00:00-08:00", "2027-04-05T08:00:00-07:00"}},
		{"cron(0 9 ? * 3#2 *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-12T09:00:00Z", "2027-02-09T09:00:00Z"}},
		{"cron(0 9 ? * SUN#5 *)", "UTC", "2027-01-01T00:00:00Z", []string{"2027-01-31T09:00:00Z", "2027-05-30T09:00:00Z"}},
		// Years.
		{"cron(0 0 1 1 ? 2030/50)", "UTC", "2027-01-01T00:00:00Z", []string{"2030-01-01T00:00:00Z", "2080-01-01T00:00:00Z", "2130-01-01T00:00:00Z", "2180-01-01T00:00:00Z"}},
		{"cron(0 0 1 1 ? *)", "UTC", "1950-01-01T00:00:00Z", []string{"1970-01-01T00:00:00Z", "1971-01-01T00:00:00Z"}},
		{"cron(59 23 31 12 ? *)", "UTC", "2199-12-31T23:58:59Z", []string{"2199-12-31T23:59:00Z"}},

		// New York: 14 March 2027, 2:00 becomes 3:00; 7 November 2027, 2:00 becomes 1:00.
		{"cron(30 2 * * ? *)", "America/New_York", "2027-03-13T08:00:00Z", []string{"2027-03-15T02:30:00-04:00", "2027-03-16T02:30:00-04:00"}},
		{"cron(0 3 * * ? *)", "America/New_York", "2027-03-14T00:00:00Z", []string{"2027-03-14T03:00:00-04:00"}},
		{"cron(59 1 * * ? *)", "America/New_York", "2027-03-14T00:00:00Z", []string{"2027-03-14T01:59:00-05:00"}},
		{"cron(30 1 * * ? *)", "America/New_York", "2027-11-06T12:00:00Z", []string{"2027-11-07T01:30:00-04:00", "2027-11-08T01:30:00-05:00"}},
		{"cron(0/20 1-2 * * ? *)", "America/New_York", "2027-11-07T05:20:00Z", []string{"2027-11-07T01:40:00-04:00", "2027-11-07T02:00:00-05:00"}},
		{"cron(30 1 * * ? *)", "America/New_York", "2027-11-07T06:15:00Z", []string{"2027-11-08T01:30:00-05:00"}}, // from within the repeated hour
		// Berlin: 28 March 2027, 2:00 becomes 3:00; 31 October 2027, 3:00 becomes 2:00.
		{"cron(0 2 * * ? *)", "Europe/Berlin", "2027-03-27T02:00:00Z", []string{"2027-03-29T02:00:00+02:00"}},
		{"cron(*/30 2 * * ? *)", "Europe/Berlin", "2027-10-30T12:00:00Z", []string{"2027-10-31T02:00:00+02:00", "2027-10-31T02:30:00+02:00", "2027-11-01T02:00:00+01:00"}},
		{"cron(0 3 * * ? *)", "Europe/Berlin", "2027-10-30T12:00:00Z", []string{"2027-10-31T03:00:00+01:00"}},
		// Lord Howe: 3 October 2027, 2:00 becomes 2:30; 4 April 2027, 2:00 becomes 1:30.
		{"cron(15 2 * * ? *)", "Australia/Lord_Howe", "2027-10-01T20:00:00Z", []string{"2027-10-04T02:15:00+11:00"}},
		{"cron(30 2 * * ? *)", "Australia/Lord_Howe", "2027-10-02T12:00:00Z", []string{"2027-10-03T02:30:00+11:00"}},
		{"cron(45 1 * * ? *)", "Australia/Lord_Howe", "2027-04-03T12:00:00Z", []string{"2027-04-04T01:45:00+11:00", "2027-04-05T01:45:00+10:30"}},
		{"cron(15 1 * * ? *)", "Australia/Lord_Howe", "2027-04-03T12:00:00Z", []string{"2027-04-04T01:15:00+11:00"}},
		// Other clocks: midnight that is skipped (Cairo), a day that is skipped (Apia, 30 December 2011).
		{"cron(0 0 * * ? *)", "Africa/Cairo", "2027-04-29T12:00:00Z", []string{"2027-05-01T00:00:00+03:00"}},
		{"cron(0 12 30 * ? *)", "Pacific/Apia", "2011-12-01T00:00:00Z", []string{"2012-01-30T12:00:00+14:00"}},

		// Once. In the repeated hour it is the first time.
		{"at(2022-11-20T13:00:00)", "America/Los_Angeles", "2022-01-01T00:00:00Z", []string{"2022-11-20T13:00:00-08:00"}},
		{"at(2027-11-07T01:30:59)", "America/New_York", "2022-01-01T00:00:00Z", []string{"2027-11-07T01:30:59-04:00"}},
	} {
		t.Run(fmt.Sprint(c.text, " ", c.zone, " ", c.after), func(t *testing.T) {
			got := parsed(t, c.text, c.zone).NextN(instant(t, c.after), len(c.want))
			require.Len(t, got, len(c.want))
			for i, want := range c.want {
				require.Equal(t, want, got[i].Format(time.RFC3339))
			}
		})
	}
}

func TestNeverAgain(t *testing.T) {
	for _, c := range [][3]string{
		{"cron(0 0 30 2 ? *)", "UTC", "1970-01-01T00:00:00Z"},
		{"cron(0 0 31W 4,6,9,11 ? *)", "UTC", "1970-01-01T00:00:00Z"},
		{"cron(0 0 1 1 ? 2026)", "UTC", "2026-01-01T00:00:00Z"},
		{"cron(* * * * ? *)", "UTC", "2199-12-31T23:59:00Z"},
		{"cron(* * * * ? *)", "UTC", "9000-01-01T00:00:00Z"},
		{"rate(1 minute)", "UTC", "2199-12-31T23:59:00Z"},
		{"rate(1 minute)", "UTC", "9000-01-01T00:00:00Z"},
		{"cron(30 2 14 3 ? 2027)", "America/New_York", "1970-01-01T00:00:00Z"},
		{"at(2027-03-14T02:30:00)", "America/New_York", "1970-01-01T00:00:00Z"},
		{"at(2027-10-03T02:15:00)", "Australia/Lord_Howe", "1970-01-01T00:00:00Z"},
		{"at(2027-01-01T00:00:00)", "UTC", "2027-01-01T00:00:00Z"},
	} {
		_, found := parsed(t, c[0], c[1]).Next(instant(t, c[2]))
		require.False(t, found, "%v", c)
	}
}

// A rate is counted from its start, or from when it was made, and knows no zone.
func TestRate(t *testing.T) {
	made := instant(t, "2027-03-13T12:34:56Z")
	r := parsed(t, "rate(1 days)", "America/New_York")
	r.Made = made
	show := func(all []time.Time) (texts []string) {
		for _, due := range all {
			texts = append(texts, due.UTC().Format(time.RFC3339Nano))
		}
		return texts
	}
	require.Equal(t, []string{"2027-03-13T12:34:56Z", "2027-03-14T12:34:56Z", "2027-03-15T12:34:56Z"}, show(r.NextN(made.Add(-1), 3)), "at once, and 24 hours are a day")
	require.Equal(t, []string{"2027-03-14T12:34:56Z"}, show(r.NextN(made, 1)))

	r.Start = made.Add(-36 * time.Hour)
	require.Equal(t, []string{"2027-03-12T00:34:56Z", "2027-03-13T00:34:56Z"}, show(r.NextN(time.Time{}, 2)), "the first is at the start")
	require.Equal(t, []string{"2027-03-14T00:34:56Z"}, show(r.NextN(made, 1)))
	r.Start = made.Add(time.Hour)
	r.End = r.Start.Add(48 * time.Hour)
	require.Equal(t, []string{"2027-03-13T13:34:56Z", "2027-03-14T13:34:56Z", "2027-03-15T13:34:56Z"}, show(r.NextN(made, 5)), "start and end are runs")

	r = parsed(t, "rate(15 minutes)", "")
	require.Equal(t, []string{"2027-03-13T12:45:00Z", "2027-03-13T13:00:00Z"}, show(r.NextN(made, 2)), "from nothing, the hour's quarters")
	r.Made = made.Add(123 * time.Millisecond)
	require.Equal(t, []string{"2027-03-13T12:49:56.123Z"}, show(r.NextN(r.Made, 1)))
}

func TestStartAndEnd(t *testing.T) {
	c := parsed(t, "cron(0 * * * ? *)", "UTC")
	c.Start, c.End = instant(t, "2027-01-01T10:00:00Z"), instant(t, "2027-01-01T12:00:00Z")
	require.Len(t, c.NextN(time.Time{}, 9), 3, "both may be runs")
	c.Start, c.End = c.Start.Add(1), c.End.Add(-1)
	require.Len(t, c.NextN(time.Time{}, 9), 1)
	once := parsed(t, "at(2030-01-01T00:00:00)", "UTC")
	once.Start, once.End = instant(t, "2031-01-01T00:00:00Z"), instant(t, "2029-01-01T00:00:00Z")
	require.Len(t, once.NextN(time.Time{}, 9), 1, "ignored")
	require.True(t, once.Expression.Once())
	require.False(t, c.Expression.Once())
}

func TestLast(t *testing.T) {
	now := instant(t, "2027-06-15T12:00:30Z")
	for _, c := range []struct{ text, after, want string }{
		{"cron(* * * * ? *)", "2020-01-01T00:00:00Z", "2027-06-15T12:00:00Z"},
		{"rate(7 days)", "2020-01-01T00:00:00Z", "2027-06-10T00:00:00Z"},
		{"cron(0 0 29 2 ? *)", "1970-01-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"at(1999-12-31T23:59:00)", "1970-01-01T00:00:00Z", "1999-12-31T23:59:00Z"},
		{"cron(0 12 15 6 ? *)", "2027-06-15T11:59:59.999Z", "2027-06-15T12:00:00Z"},
		{"cron(0 12 15 6 ? *)", "2027-06-15T12:00:00Z", ""},
		{"at(2028-01-01T00:00:00)", "1970-01-01T00:00:00Z", ""},
		{"cron(* * * * ? *)", "2028-01-01T00:00:00Z", ""},
	} {
		due, found := parsed(t, c.text, "UTC").Last(instant(t, c.after), now)
		require.Equal(t, c.want != "", found, c)
		if found {
			require.Equal(t, c.want, due.UTC().Format(time.RFC3339), c)
		}
	}
}
