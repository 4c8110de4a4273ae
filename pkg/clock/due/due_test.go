package due_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

var now = time.Date(2027, 3, 1, 12, 0, 0, 500, time.UTC)

func TestCheckPutsInOrder(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	got, err := due.Check(clock.Schedule{Name: "a.B-c_1", Expression: "rate(5 minutes)", Start: time.Date(2027, 3, 2, 1, 0, 0, 999, berlin), Enabled: true,
		Input: json.RawMessage("{ \"text\": \"Grüße \\u003c\\u003e\",\n \"n\": 1.0 }")}, now)
	require.NoError(t, err)
	require.Equal(t, clock.Schedule{Name: "a.B-c_1", Expression: "rate(5 minutes)", TimeZone: "UTC", Start: time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC), Enabled: true,
		Input: json.RawMessage(`{"text":"Grüße \u003c\u003e","n":1.0}`)}, got)
	again, err := due.Check(got, now)
	require.NoError(t, err)
	require.Equal(t, got, again)

	got, err = due.Check(clock.Schedule{Name: "once", Expression: "at(2030-01-01T00:00:00)", TimeZone: "Europe/Berlin", Start: now, End: now.Add(-time.Hour), Enabled: true}, now)
	require.NoError(t, err)
	require.Equal(t, clock.Schedule{Name: "once", Expression: "at(2030-01-01T00:00:00)", TimeZone: "Europe/Berlin", Enabled: true, Input: json.RawMessage("{}")}, got, "an at has no bounds")
}

// The keyword arrives however the JSON was written.
func TestScheduledTime(t *testing.T) {
	occurrence := time.Date(2030, 1, 2, 4, 4, 5, 0, time.FixedZone("CET", 3600))
	marshalled, err := json.Marshal(map[string]any{"at": clock.ScheduledTime, "also": []string{clock.ScheduledTime}})
	require.NoError(t, err)
	require.NotContains(t, string(marshalled), "<")
	for _, text := range []string{string(marshalled), `{"also":["<aws.scheduler.scheduled-time>"],"at":"<aws.scheduler.scheduled-time>"}`} {
		s, err := due.Check(clock.Schedule{Name: "n", Expression: "rate(1 day)", Input: json.RawMessage(text)}, now)
		require.NoError(t, err)
		require.Contains(t, string(s.Input), clock.ScheduledTime)
		require.JSONEq(t, `{"at":"2030-01-02T03:04:05Z","also":["2030-01-02T03:04:05Z"]}`, string(s.InputOf(occurrence)))
	}
	// A text that only looks so is left alone: here the backslash is one of the text's.
	s, err := due.Check(clock.Schedule{Name: "n", Expression: "rate(1 day)", Input: json.RawMessage(`"\\u003caws.scheduler.scheduled-time\\u003e"`)}, now)
	require.NoError(t, err)
	require.Equal(t, string(s.Input), string(s.InputOf(occurrence)))
}

func TestRefused(t *testing.T) {
	good := clock.Schedule{Name: "n", Expression: "rate(1 day)", Enabled: true}
	for want, change := range map[string]func(*clock.Schedule){
		"a schedule's name has 1 to 64":                  func(s *clock.Schedule) { s.Name = "a b" },
		"name has 1 to 64 of":                            func(s *clock.Schedule) { s.Name = strings.Repeat("x", 65) },
		"1 to 64 of the characters":                      func(s *clock.Schedule) { s.Name = "" },
		"of the characters A-Z":                          func(s *clock.Schedule) { s.Name = "naïve" },
		"field day-of-week":                              func(s *clock.Schedule) { s.Expression = "cron(0 0 ? * 8 *)" },
		"is not a time zone":                             func(s *clock.Schedule) { s.TimeZone = "Mars/Olympus" },
		"in the years 1970-2199":                         func(s *clock.Schedule) { s.Start = time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC) },
		"years 1970-2199":                                func(s *clock.Schedule) { s.End = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) },
		"end is before its start":                        func(s *clock.Schedule) { s.Start, s.End = now.Add(2*time.Hour), now.Add(time.Hour) },
		"input is not JSON":                              func(s *clock.Schedule) { s.Input = json.RawMessage(`{"a":`) },
		"is not JSON":                                    func(s *clock.Schedule) { s.Input = json.RawMessage("\"\xff\"") },
		"more than 65536 bytes":                          func(s *clock.Schedule) { s.Input = json.RawMessage(`"` + strings.Repeat("x", due.MaxInput) + `"`) },
		"of which only the string":                       func(s *clock.Schedule) { s.Input = json.RawMessage(`"<aws.scheduler.execution-id>"`) },
		"only the string <aws.scheduler.scheduled-time>": func(s *clock.Schedule) { s.Input = json.RawMessage(`"at <aws.scheduler.scheduled-time>"`) },
	} {
		s := good
		change(&s)
		_, err := due.Check(s, now)
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
}

func TestNeverRuns(t *testing.T) {
	for _, s := range []clock.Schedule{
		{Expression: "at(2027-03-01T11:59:59)"},
		{Expression: "at(2027-03-14T02:30:00)", TimeZone: "America/New_York"},
		{Expression: "cron(0 0 30 2 ? *)"},
		{Expression: "rate(1 day)", End: now.Add(-time.Second)},
		{Expression: "cron(0 0 1 * ? *)", Start: now, End: now.Add(time.Hour)},
	} {
		s.Name, s.Enabled = "n", true
		_, err := due.Check(s, now)
		require.ErrorIs(t, err, clock.ErrNeverRuns, s.Expression)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
		s.Enabled = false
		_, err = due.Check(s, now)
		require.NoError(t, err, "it may be kept")
	}
	_, err := due.Check(clock.Schedule{Name: "n", Expression: "at(2027-03-01T12:00:00)", Enabled: true}, now)
	require.NoError(t, err, "this very second")
}
