package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a schedule says of when it is due next: ends of months, leap days, both changes of the clocks in three zones, and L, W, # and ?. A start in a far year
// makes the answers the same on every day.
func TestNextRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		expression, zone, from string
		next                   []string // in UTC
	}{
		// Ends of months, and days that not every month has.
		{"cron(0 0 31 * ? *)", "UTC", "2096-01-01", []string{"2096-01-31T00:00", "2096-03-31T00:00", "2096-05-31T00:00", "2096-07-31T00:00", "2096-08-31T00:00"}},
		{"cron(0 0 L * ? *)", "UTC", "2096-01-01", []string{"2096-01-31T00:00", "2096-02-29T00:00", "2096-03-31T00:00", "2096-04-30T00:00", "2096-05-31T00:00"}},
		{"cron(59 23 L 2 ? *)", "America/New_York", "2097-01-01", []string{"2097-03-01T04:59", "2098-03-01T04:59", "2099-03-01T04:59", "2100-03-01T04:59", "2101-03-01T04:59"}},
		// Leap days: 2100 has none.
		{"cron(0 12 29 2 ? *)", "UTC", "2092-01-01", []string{"2092-02-29T12:00", "2096-02-29T12:00", "2104-02-29T12:00", "2108-02-29T12:00", "2112-02-29T12:00"}},
		{"cron(0 12 29 2 ? 2096-2103)", "UTC", "2092-01-01", []string{"2096-02-29T12:00"}},
		{"rate(1 day)", "UTC", "2096-02-28", []string{"2096-02-28T00:00", "2096-02-29T00:00", "2096-03-01T00:00", "2096-03-02T00:00", "2096-03-03T00:00"}},
		{"rate(1 day)", "UTC", "2100-02-27", []string{"2100-02-27T00:00", "2100-02-28T00:00", "2100-03-01T00:00", "2100-03-02T00:00", "2100-03-03T00:00"}},
		// Clocks forward: a local time that the day has not is left out. On 2096-03-25 Berlin's go from 02:00 to 03:00, on 2096-03-11 New York's, on
		// 2096-10-07 Lord Howe's from 02:00 to 02:30.
		{"cron(30 2 * * ? *)", "Europe/Berlin", "2096-03-24", []string{"2096-03-24T01:30", "2096-03-26T00:30", "2096-03-27T00:30", "2096-03-28T00:30", "2096-03-29T00:30"}},
		{"cron(30 2 * * ? *)", "America/New_York", "2096-03-10", []string{"2096-03-10T07:30", "2096-03-12T06:30", "2096-03-13T06:30", "2096-03-14T06:30", "2096-03-15T06:30"}},
		{"cron(15 2 * * ? *)", "Australia/Lord_Howe", "2096-10-05", []string{"2096-10-05T15:45", "2096-10-07T15:15", "2096-10-08T15:15", "2096-10-09T15:15", "2096-10-10T15:15"}},
		// Clocks back: a local time that the day has twice runs the first time. Berlin on 2096-10-28, New York on 2096-11-04, Lord Howe on 2096-04-01 by
		// half an hour.
		{"cron(30 2 * * ? *)", "Europe/Berlin", "2096-10-27", []string{"2096-10-27T00:30", "2096-10-28T00:30", "2096-10-29T01:30", "2096-10-30T01:30", "2096-10-31T01:30"}},
		{"cron(30 1 * * ? *)", "America/New_York", "2096-11-03", []string{"2096-11-03T05:30", "2096-11-04T05:30", "2096-11-05T06:30", "2096-11-06T06:30", "2096-11-07T06:30"}},
		{"cron(45 1 * * ? *)", "Australia/Lord_Howe", "2096-03-30", []string{"2096-03-30T14:45", "2096-03-31T14:45", "2096-04-01T15:15", "2096-04-02T15:15", "2096-04-03T15:15"}},
		{"cron(0/30 1-2 28 10 ? 2096)", "Europe/Berlin", "2096-10-27", []string{"2096-10-27T23:00", "2096-10-27T23:30", "2096-10-28T00:00", "2096-10-28T00:30"}},
		// A rate's day has 24 hours, whatever the clocks do.
		{"rate(1 day)", "Europe/Berlin", "2096-03-24", []string{"2096-03-24T00:00", "2096-03-25T00:00", "2096-03-26T00:00", "2096-03-27T00:00", "2096-03-28T00:00"}},
		// W: the nearest weekday, in its month. 2096-09-01 is a Saturday, 2096-07-01 a Sunday, 2096-03-31 a Saturday.
		{"cron(0 9 1W * ? *)", "UTC", "2096-06-02", []string{"2096-07-02T09:00", "2096-08-01T09:00", "2096-09-03T09:00", "2096-10-01T09:00", "2096-11-01T09:00"}},
		{"cron(0 9 15W * ? *)", "UTC", "2096-04-01", []string{"2096-04-16T09:00", "2096-05-15T09:00", "2096-06-15T09:00", "2096-07-16T09:00", "2096-08-15T09:00"}},
		{"cron(0 9 LW * ? *)", "UTC", "2096-03-01", []string{"2096-03-30T09:00", "2096-04-30T09:00", "2096-05-31T09:00", "2096-06-29T09:00", "2096-07-31T09:00"}},
		// #: the n-th of its name in the month; not every month has a fifth.
		{"cron(0 9 ? * 2#1 *)", "UTC", "2096-01-01", []string{"2096-01-02T09:00", "2096-02-06T09:00", "2096-03-05T09:00", "2096-04-02T09:00", "2096-05-07T09:00"}},
		{"cron(0 9 ? * FRI#5 *)", "UTC", "2096-01-01", []string{"2096-03-30T09:00", "2096-06-29T09:00", "2096-08-31T09:00", "2096-11-30T09:00", "2097-03-29T09:00"}},
		// L of a day of the week: the last of its name.
		{"cron(0 9 ? * 6L *)", "UTC", "2096-01-01", []string{"2096-01-27T09:00", "2096-02-24T09:00", "2096-03-30T09:00", "2096-04-27T09:00", "2096-05-25T09:00"}},
		// ?: the other of the two days says when.
		{"cron(0 9 ? * MON-FRI *)", "UTC", "2096-02-24", []string{"2096-02-24T09:00", "2096-02-27T09:00", "2096-02-28T09:00", "2096-02-29T09:00", "2096-03-01T09:00"}},
		{"cron(0/20 23 31 12 ? 2099)", "UTC", "2096-01-01", []string{"2099-12-31T23:00", "2099-12-31T23:20", "2099-12-31T23:40"}},
	} {
		s := d.create(object{"name": c.expression, "expression": c.expression, "timeZone": c.zone, "startAt": c.from + "T00:00:00Z"})
		var next []string
		for _, due := range s.NextRuns {
			next = append(next, due.Format("2006-01-02T15:04"))
		}
		require.Equal(t, c.next, next, "%s %s", c.expression, c.zone)
	}
	once := d.create(object{"expression": "at(2096-10-28T02:30:00)", "timeZone": "Europe/Berlin"})
	require.Len(t, once.NextRuns, 1)
	require.Equal(t, "2096-10-28T00:30:00.000000Z", once.NextRuns[0].String())
	ends := d.create(object{"expression": "rate(12 hours)", "startAt": "2096-01-01T00:00:00Z", "endAt": "2096-01-02T00:00:00Z"})
	require.Len(t, ends.NextRuns, 3, "start and end may be runs themselves")
}
