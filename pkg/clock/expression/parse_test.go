package expression

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestParse(t *testing.T) {
	for _, text := range []string{
		// of the user guide
		"rate(5 minutes)", "rate(1 days)", "cron(15 10 ? * 6L 2022-2023)", "cron(30 8 * * ? *)", "cron(30 2 * * ? *)", "at(2022-11-20T13:00:00)",
		"cron(1/10 * * * ? *)", "cron(0 0 1-15 JAN,FEB,MAR ? *)", "cron(0 0 3W * ? *)", "cron(0 0 ? * 3#2 *)", "cron(0 0 7 * ? *)",
		// taken by the service, https://github.com/localstack/localstack/issues/13572
		"cron(0-15/1 8-8 ? * 2,3,4,5,6,7 *)", "cron(30-30 13-13 ? * 2,4,6 *)", "cron(1-31/30 1-1 ? * 1,7 *)",
		"rate(1 minute)", "rate(5 minute)", "rate(1 hour)", "rate(12 hours)", "rate(1 day)", "rate(83585 days)",
		"cron(0/5 8-17 ? * MON-FRI *)", "cron(*/59 */23 */30 */11 ? */229)", "cron(00 09 01 01 ? 1970)", "cron(0 0 L FEB ? 2199)", "cron(0 0 LW * ? *)", "cron(0 0 31W * ? *)",
		"cron(0 0 ? * L *)", "cron(0 0 ? * SUN,2,SAT *)", "cron(0 0 ? * MON#1 *)", "cron(0 0 ? * FRIL *)", "cron(0 0 30 2 ? *)", "cron(0 0 ? * * *)", "cron( 0  0 ? * * * )",
		"at(1970-01-01T00:00:00)", "at(2199-12-31T23:59:59)", "at(2028-02-29T12:00:30)",
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, text, e.String())
	}
}

// What a user reads names the field, what was written, and what may be.
func TestRefused(t *testing.T) {
	const kinds = "is no schedule expression: write rate(5 minutes), cron(minutes hours day-of-month month day-of-week year) or at(yyyy-mm-ddThh:mm:ss)"
	for text, want := range map[string]string{
		"":                                kinds,
		"every day":                       `"every day" ` + kinds,
		"rate(5 minutes":                  kinds,
		"Rate(5 minutes)":                 kinds,
		"rate (5 minutes)":                kinds,
		"rate(5 minutes) ":                kinds,
		"* * * * *":                       kinds,
		strings.Repeat("x", 257):          "at most 256 characters",
		"rate(5)":                         "rate(5): the unit is not one of minute, minutes, hour, hours, day, days",
		"rate(5 seconds)":                 "rate(5 seconds): the unit",
		"rate(5 Minutes)":                 "the unit",
		"rate(5 minutes )":                "the unit",
		"rate(0 minutes)":                 "the value is not a whole number from 1 on",
		"rate(-1 minutes)":                "the value",
		"rate(+1 minutes)":                "the value",
		"rate(1.5 hours)":                 "the value",
		"rate(05 minutes)":                "the value",
		"rate(99999999999999999999 days)": "the value",
		"rate(999999999 days)":            "more than 229 years",
		"at(2030-02-30T00:00:00)":         "at(2030-02-30T00:00:00) is not at(yyyy-mm-ddThh:mm:ss) with a date and time that exist",
		"at(2027-02-29T00:00:00)":         "exist",
		"at(2030-01-01T24:00:00)":         "exist",
		"at(2030-01-01T00:00)":            "exist",
		"at(2030-01-01T00:00:00Z)":        "exist",
		"at(2030-01-01T00:00:00.5)":       "exist",
		"at(2030-01-01 00:00:00)":         "exist",
		"at(1969-12-31T23:59:59)":         "the year is not in 1970-2199",
		"at(2200-01-01T00:00:00)":         "the year is not in 1970-2199",
		"cron(0 8 * * ?)":                 "cron(0 8 * * ?) has 5 fields, not the six: minutes hours day-of-month month day-of-week year",
		"cron()":                          "has 0 fields",
		"cron(0 0 8 * * ? *)":             "has 7 fields",
		"cron(0\t8 * * ? *)":              "fields are separated by spaces",
		"cron(0 8 * * ? ٢)":               "holds a character that no field may hold",
		"cron(60 8 * * ? *)":              `cron, field minutes: "60" is not a value; allowed: 0-59 with , - * /`,
		"cron(? 8 * * ? *)":               "field minutes",
		"cron(0/0 8 * * ? *)":             "has an increment that is not allowed",
		"cron(0/60 8 * * ? *)":            "has an increment that is not allowed",
		"cron(0/ 8 * * ? *)":              "has an increment that is not allowed",
		"cron(/5 8 * * ? *)":              "is not a value",
		"cron(5,,6 8 * * ? *)":            "is not a value",
		"cron(*,6 8 * * ? *)":             "has * among others",
		"cron(6,*/7 8 * * ? *)":           "has * among others",
		"cron(30-10 8 * * ? *)":           "goes from high to low",
		"cron(1-2-3 8 * * ? *)":           "is not a range of values",
		"cron(0 24 * * ? *)":              `cron, field hours: "24" is not a value; allowed: 0-23 with , - * /`,
		"cron(0 22-2 * * ? *)":            "goes from high to low",
		"cron(0 8 0 * ? *)":               `field day-of-month: "0" is not a value`,
		"cron(0 8 32 * ? *)":              "field day-of-month",
		"cron(0 8 32W * ? *)":             "is not one day with W",
		"cron(0 8 1-5W * ? *)":            "is not one day with W",
		"cron(0 8 W * ? *)":               "is not one day with W",
		"cron(0 8 15,L * ? *)":            "has L or W among others",
		"cron(0 8 L-3 * ? *)":             "has L or W among others",
		"cron(0 8 15W,20 * ? *)":          "has L or W among others",
		"cron(0 8 5L * ? *)":              "has L or W among others",
		"cron(0 8 * 0 ? *)":               `field month: "0" is not a value; allowed: 1-12 or JAN-DEC`,
		"cron(0 8 * jan ? *)":             "field month",
		"cron(0 8 * JANUARY ? *)":         "field month",
		"cron(0 8 * ? ? *)":               "field month",
		"cron(0 8 ? * 0 *)":               `field day-of-week: "0" is not a value; allowed: 1-7 (1 is Sunday) or SUN-SAT`,
		"cron(0 8 ? * 8 *)":               "field day-of-week",
		"cron(0 8 ? * mon *)":             "field day-of-week",
		"cron(0 8 ? * FRI-MON *)":         "goes from high to low",
		"cron(0 8 ? * 2/2 *)":             "has an increment that is not allowed",
		"cron(0 8 ? * 3#1,6#3 *)":         "is not one day with #1 to #5",
		"cron(0 8 ? * 3#6 *)":             "is not one day with #1 to #5",
		"cron(0 8 ? * 3#0 *)":             "is not one day with #1 to #5",
		"cron(0 8 ? * # *)":               "is not one day with #1 to #5",
		"cron(0 8 ? * 8L *)":              "is not one day with L",
		"cron(0 8 ? * MON,FRIL *)":        "is not one day with L",
		"cron(0 8 ? * L,MON *)":           "is not a value",
		"cron(0 8 ? * 3W *)":              "field day-of-week",
		"cron(0 8 * * * *)":               `the fields day-of-month "*" and day-of-week "*" both say which days; one of them must be ?`,
		"cron(0 8 1 * MON *)":             "one of them must be ?",
		"cron(0 8 ? * ? *)":               "are both ?",
		"cron(0 8 * * ? 1969)":            `field year: "1969" is not a value; allowed: 1970-2199`,
		"cron(0 8 * * ? 2200)":            "field year",
		"cron(0 8 * * ? 02030)":           "field year",
		"cron(0 8 * * ? 2030/230)":        "has an increment that is not allowed",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, "%q", text)
		var refused *fault.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, fault.ValidationError, refused.Type)
	}
}

func TestZone(t *testing.T) {
	for _, name := range []string{"UTC", "Etc/GMT+5", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "EST5EDT"} {
		zone, err := Zone(name)
		require.NoError(t, err)
		require.Equal(t, name, zone.String())
		again, err := Zone(name)
		require.NoError(t, err)
		require.Same(t, zone, again)
	}
	utc, err := Zone("")
	require.NoError(t, err)
	require.Equal(t, time.UTC, utc)
	for _, name := range []string{"Local", "europe/berlin", "Europe/Bielefeld", "../etc/passwd", "/etc/localtime", "posix/Europe/Berlin", "CEST", "UTC+1", "Europe/", " UTC", "Europe/Berlin\n"} {
		_, err := Zone(name)
		require.ErrorContains(t, err, "is not a time zone of the IANA database", "%q", name)
	}
}

// The zero value and what was refused never run.
func TestZeroValue(t *testing.T) {
	_, found := Times{}.Next(time.Time{})
	require.False(t, found)
	e, err := Parse("rate(x)")
	require.Error(t, err)
	require.Zero(t, e)
}

// FuzzParse: what is taken runs only when the fields say so, in order; what is refused is told briefly.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"rate(5 minutes)", "at(2028-03-26T02:30:00)", "cron(15 10 ? * 6L 2022-2023)", "cron(0/5 8-17 ? * MON-FRI *)", "cron(0 0 31W JAN,6-12/2 ? 2028/4)",
		"cron(0 0 LW * ? *)", "cron(59 23 ? 2 SUN#5 *)", "cron(0 0 30 2 ? *)", "cron(1-2-3 * * * ? *)", "rate(999999999 days)"} {
		f.Add(text, int64(1_900_000_000))
	}
	zone, err := Zone("Australia/Lord_Howe")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string, after int64) {
		e, err := Parse(text)
		if err != nil {
			var refused *fault.Error
			require.True(t, errors.As(err, &refused))
			require.Less(t, len(refused.Message), 1000)
			require.True(t, utf8.ValidString(refused.Message))
			return
		}
		again, err := Parse(e.String())
		require.NoError(t, err)
		require.Equal(t, e, again)
		from := time.Unix(after%(1<<33), 0)
		for _, due := range (Times{Expression: e, Zone: zone}).NextN(from, 3) {
			require.True(t, due.After(from), "%s: %s is not after %s", text, due, from)
			local := due.In(zone)
			if e.cron != nil {
				require.True(t, matches(text, local), "%s: %s", text, local)
				require.Zero(t, local.Second())
			}
			from = due
		}
	})
}

func ExampleParse() {
	_, err := Parse("cron(0 8 ? * 8 *)")
	fmt.Println(err)
	// Output: cron, field day-of-week: "8" is not a value; allowed: 1-7 (1 is Sunday) or SUN-SAT with , - * or ? or L, a day with L, or a day with #1 to #5
}
