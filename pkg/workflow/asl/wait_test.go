package asl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

func TestUntil(t *testing.T) {
	entered := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	const in = `{"n": 90, "zero": 0, "minus": -1, "half": 1.5, "s": "90", "much": 100000000, "t": "2016-03-14T01:59:00.5+01:00", "bad": "2016-03-14"}`
	for field, want := range map[string]string{
		`"Seconds": 0`:                         "2026-02-03T04:05:06.000000007Z",
		`"Seconds": 10`:                        "2026-02-03T04:05:16.000000007Z",
		`"SecondsPath": "$.n"`:                 "2026-02-03T04:06:36.000000007Z",
		`"SecondsPath": "$.zero"`:              "2026-02-03T04:05:06.000000007Z",
		`"SecondsPath": "$$.State.RetryCount"`: "2026-02-03T04:05:06.000000007Z",
		`"SecondsPath": "$.minus"`:             asl.ErrorRuntime,
		`"SecondsPath": "$.half"`:              asl.ErrorRuntime,
		`"SecondsPath": "$.s"`:                 asl.ErrorRuntime,
		`"SecondsPath": "$.much"`:              asl.ErrorRuntime,
		`"SecondsPath": "$.nothing"`:           asl.ErrorRuntime,
		`"Timestamp": "2016-03-14T01:59:00Z"`:  "2016-03-14T01:59:00Z",
		`"TimestampPath": "$.t"`:               "2016-03-14T00:59:00.5Z",
		`"TimestampPath": "$.bad"`:             asl.ErrorRuntime,
		`"TimestampPath": "$.n"`:               asl.ErrorRuntime,
		`"TimestampPath": "$.nothing"`:         asl.ErrorRuntime,
	} {
		s := state(t, `"Type": "Wait", "Next": "Z", `+field)
		at, f := s.Until(data(t, in), object(), entered)
		got := at.UTC().Format(time.RFC3339Nano)
		if f != nil {
			got = f.Error
		}
		require.Equal(t, want, got, field)
	}
}

func TestDeadline(t *testing.T) {
	const in = `{"n": 90, "zero": 0, "s": "90"}`
	for fields, want := range map[string]string{
		`"Comment": ""`: "0s 0s",
		`"TimeoutSeconds": 3, "HeartbeatSeconds": 2`:         "3s 2s",
		`"HeartbeatSeconds": 2`:                              "0s 2s",
		`"TimeoutSecondsPath": "$.n"`:                        "1m30s 0s",
		`"TimeoutSeconds": 5, "HeartbeatSecondsPath": "$.n"`: "5s 1m30s",
		`"TimeoutSecondsPath": "$.zero"`:                     asl.ErrorRuntime,
		`"TimeoutSecondsPath": "$.s"`:                        asl.ErrorRuntime,
		`"HeartbeatSecondsPath": "$.nothing"`:                asl.ErrorRuntime,
	} {
		s := state(t, `"Type": "Task", "Resource": "r", "Next": "Z", `+fields)
		timeout, heartbeat, f := s.Deadline(data(t, in), object())
		got := timeout.String() + " " + heartbeat.String()
		if f != nil {
			got = f.Error
		}
		require.Equal(t, want, got, fields)
	}
}

func TestFails(t *testing.T) {
	const in = `{"e": "Code", "c": "text", "n": 1}`
	for fields, want := range map[string]asl.Failure{
		``:                             {},
		`, "Error": "E"`:               {Error: "E"},
		`, "Error": "E", "Cause": "C"`: {Error: "E", Cause: "C"},
		`, "ErrorPath": "$.e", "CausePath": "$.c"`:                                        {Error: "Code", Cause: "text"},
		`, "ErrorPath": "$$.State.Name", "CausePath": "States.Format('{} {}', $.c, $.n)"`: {Error: "S", Cause: "text 1"},
	} {
		s := parsed(t, `{"StartAt": "S", "States": {"S": {"Type": "Fail"`+fields+`}}}`).States["S"]
		require.True(t, s.End)
		require.Equal(t, want, s.Fails(data(t, in), object()), fields)
	}
	for _, fields := range []string{`"ErrorPath": "$.nothing"`, `"CausePath": "$.n"`, `"CausePath": "States.ArrayGetItem(States.Array(1), 0)"`} {
		s := parsed(t, `{"StartAt": "S", "States": {"S": {"Type": "Fail", `+fields+`}}}`).States["S"]
		require.Equal(t, asl.ErrorRuntime, s.Fails(data(t, in), object()).Error, fields)
	}
	s := parsed(t, `{"StartAt": "S", "States": {"S": {"Type": "Fail", "CausePath": "States.Format('{}')"}}}`).States["S"]
	require.Equal(t, asl.ErrorIntrinsic, s.Fails(data(t, in), object()).Error)
}
