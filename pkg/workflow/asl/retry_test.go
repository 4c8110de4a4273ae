package asl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

func task(t testing.TB, fields string) *asl.State {
	t.Helper()
	return state(t, `"Type": "Task", "Resource": "r", "Next": "Z", `+fields)
}

func half() float64 { return 0.5 }

func TestRetry(t *testing.T) {
	s := task(t, `"Retry": [
		{"ErrorEquals": ["A", "B"], "IntervalSeconds": 3, "BackoffRate": 1.5, "MaxAttempts": 4, "MaxDelaySeconds": 6},
		{"ErrorEquals": ["C"], "MaxAttempts": 0},
		{"ErrorEquals": ["D"], "JitterStrategy": "FULL", "IntervalSeconds": 10},
		{"ErrorEquals": ["E"], "JitterStrategy": "NONE", "BackoffRate": 1e300, "MaxAttempts": 99999999},
		{"ErrorEquals": ["States.ALL"]}]`)
	require.Equal(t, 5, s.Retriers())
	for _, c := range []struct {
		name   string
		counts []int
		which  int
		after  time.Duration
		again  bool
	}{
		{"A", nil, 0, 3 * time.Second, true},
		{"B", []int{1}, 0, 4500 * time.Millisecond, true},
		{"A", []int{2}, 0, 6 * time.Second, true}, // not 6.75
		{"A", []int{4}, 0, 0, false},
		{"C", nil, 1, 0, false},
		{"D", []int{9, 9, 1}, 2, 10 * time.Second, true},
		{"D", []int{9, 9, 3}, 2, 0, false},
		{"E", []int{0, 0, 0, 50_000}, 3, 99_999_999 * time.Second, true},
		{"X", nil, 4, time.Second, true},
		{"X", []int{0, 0, 0, 0, 1}, 4, 2 * time.Second, true},
		{"X", []int{0, 0, 0, 0, 2}, 4, 4 * time.Second, true},
		{"X", []int{0, 0, 0, 0, 3}, 4, 0, false},
		{"", nil, 4, time.Second, true},
		{asl.ErrorDataLimit, nil, 0, 0, false},
		{asl.ErrorRuntime, nil, 0, 0, false},
	} {
		which, after, again := s.Retry(asl.Failure{Error: c.name}, c.counts, half)
		require.Equal(t, c.again, again, "%+v", c)
		require.Equal(t, c.after, after, "%+v", c)
		if again {
			require.Equal(t, c.which, which, "%+v", c)
		}
	}
	_, _, again := task(t, `"Comment": "none"`).Retry(asl.Failure{Error: "A"}, nil, half)
	require.False(t, again)
}

func TestWhichErrorsAreMeant(t *testing.T) {
	all := []string{"Own", "", asl.ErrorTaskFailed, asl.ErrorTimeout, asl.ErrorHeartbeatTimeout, asl.ErrorPermissions, asl.ErrorDataLimit, asl.ErrorRuntime, asl.ErrorParameterPath,
		asl.ErrorNoChoice, "Lambda.Unknown"}
	for wanted, want := range map[string]string{
		`"States.ALL"`:                      "Own,,TaskFailed,Timeout,HeartbeatTimeout,Permissions,ParameterPathFailure,NoChoiceMatched,Lambda.Unknown",
		`"States.TaskFailed"`:               "Own,,TaskFailed,Permissions,ParameterPathFailure,NoChoiceMatched,Lambda.Unknown",
		`"States.Timeout"`:                  "Timeout,HeartbeatTimeout",
		`"States.HeartbeatTimeout"`:         "HeartbeatTimeout",
		`"States.DataLimitExceeded", "Own"`: "Own,DataLimitExceeded",
		`"States.Runtime"`:                  "",
		`"own"`:                             "",
	} {
		s := task(t, `"Catch": [{"ErrorEquals": [`+wanted+`], "Next": "Z"}]`)
		got := []string{}
		for _, name := range all {
			if _, _, caught, _ := s.Catch(asl.Failure{Error: name}, nil, nil); caught {
				got = append(got, strings.TrimPrefix(name, "States."))
			}
		}
		require.Equal(t, want, strings.Join(got, ","), wanted)
	}
}

func TestCatch(t *testing.T) {
	s := parsed(t, `{"StartAt": "S", "States": {"S": {"Type": "Parallel", "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Succeed"}}}], "Next": "Z", "OutputPath": "$.x", "Catch": [
		{"ErrorEquals": ["A"], "Next": "Y"}, {"ErrorEquals": ["B"], "ResultPath": "$.in.error", "Next": "Z"}, {"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Z"}]},
		"Y": {"Type": "Pass", "End": true}, "Z": {"Type": "Succeed"}}}`).States["S"]
	raw := data(t, `{"in": {}}`)
	for name, want := range map[string]string{
		"A": `Y {"Cause":"why","Error":"A"}`,
		"B": `Z {"in":{"error":{"Cause":"why","Error":"B"}}}`,
		"C": `Z {"in":{}}`,
	} {
		next, output, caught, bad := s.Catch(asl.Failure{Error: name, Cause: "why"}, raw, nil)
		require.True(t, caught)
		require.Nil(t, bad)
		require.Equal(t, want, next+" "+text(output))
	}
	_, _, caught, bad := s.Catch(asl.Failure{Error: "B"}, data(t, `[]`), nil)
	require.False(t, caught)
	require.Equal(t, asl.ErrorResultPath, bad.Error)
	_, _, caught, bad = s.Catch(asl.Failure{Error: "B", Cause: strings.Repeat("x", 100)}, map[string]any{"in": map[string]any{"x": strings.Repeat("x", workflow.MaxData-100)}}, nil)
	require.False(t, caught)
	require.Equal(t, asl.ErrorDataLimit, bad.Error)
	_, _, caught, bad = s.Catch(asl.Failure{Error: asl.ErrorRuntime}, raw, nil)
	require.False(t, caught)
	require.Nil(t, bad)
}
