package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// stage is a definition's scene without a database.
func stage(t *testing.T, states string) *scene {
	t.Helper()
	e := &Engine{secret: []byte("key"), config: Config{Prefix: "test-"}}
	definition := define(states)
	m, err := asl.Parse(definition, e.dialect())
	require.NoError(t, err)
	return &scene{program: newProgram(definition, m), context: func() (asl.Context, error) { return asl.Context{}, nil },
		token: func(attempt int) string { return e.token(1, 2, attempt) }, call: e.plan, random: func() float64 { return 0.5 }}
}

func given(t *testing.T, kept string) value {
	t.Helper()
	v, err := textOf(kept)
	require.NoError(t, err)
	return v
}

// A transition goes through all that waits for nothing, and tells each step with the visit that it is of.
func TestAdvanceGoesThrough(t *testing.T) {
	s := stage(t, `"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Wait", "Seconds": 0, "Next": "C"}, "C": {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "D"}]}, "D": `+
		task("d", `"TimeoutSeconds": 60, "Next": "E"`)+`, "E": {"Type": "Succeed"}`)
	m := s.advance(place{phase: entering, input: given(t, `{"n":1}`)}, event{}, began)
	require.Equal(t, calling, m.phase)
	require.Equal(t, call{function: "d", payload: []byte(`{"n":1}`)}, *m.call)
	require.Equal(t, began.Add(time.Minute), m.deadline)
	var visits []int
	for _, one := range m.steps {
		visits = append(visits, one.visit)
	}
	require.Equal(t, []int{-1, -1, -3, -3, -5, -5, -7}, visits)
	require.Equal(t, -7, m.visit)

	m.visit = 7 // as it is when it was written
	result := given(t, `2`)
	m = s.advance(m.place, event{result: &result}, began)
	require.Equal(t, over, m.phase)
	require.Equal(t, `2`, m.input.text)
	require.Equal(t, []int{7, -2, -2}, []int{m.steps[0].visit, m.steps[1].visit, m.steps[2].visit})
}

// A circle is left after so many states, to be gone on with.
func TestAdvanceIsBounded(t *testing.T) {
	m := stage(t, `"A": {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "B"}], "Default": "C"}, "B": {"Type": "Pass", "Next": "A"}, "C": {"Type": "Succeed"}`).
		advance(place{phase: entering, input: given(t, `{"n":1}`)}, event{}, began)
	require.Equal(t, entering, m.phase)
	require.Len(t, m.steps, 2*through)
}

// A failed attempt is made again when its time has come, with a token of its own; then it is caught.
func TestAdvanceTriesAgain(t *testing.T) {
	s := stage(t, `"A": `+token("a", `"HeartbeatSeconds": 30, "TimeoutSeconds": 60, "Retry": [{"ErrorEquals": ["Other"]}, {"ErrorEquals": ["Busy"], "IntervalSeconds": 4, "MaxAttempts": 1}],
		"Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "B"}], "End": true`)+`, "B": {"Type": "Pass", "End": true}`)
	busy := event{failure: &asl.Failure{Error: "Busy", Cause: "why"}}
	first := s.advance(place{phase: entering, input: given(t, `{}`)}, event{}, began)
	require.Equal(t, []any{calling, 1, began.Add(time.Minute), began.Add(30 * time.Second)}, []any{first.phase, first.attempt, first.deadline, first.beat})
	require.Contains(t, string(first.call.payload), `"token":"`+s.token(1)+`"`)

	same := s.advance(first.place, event{}, began)
	require.Empty(t, same.steps, "it was killed in between: the same call")
	require.Equal(t, first.call, same.call)

	m := s.advance(first.place, busy, began)
	require.Equal(t, []any{pausing, began.Add(4 * time.Second)}, []any{m.phase, m.wake})
	m = s.advance(m.place, event{}, began.Add(4*time.Second))
	require.Equal(t, []any{calling, 2, workflow.StateRetried, time.Time{}}, []any{m.phase, m.attempt, m.steps[0].kind, m.wake})
	require.Contains(t, string(m.call.payload), `"token":"`+s.token(2)+`"`)
	require.Contains(t, string(m.call.payload), `"try":1`)

	m.phase = holding
	require.Equal(t, began.Add(34*time.Second), s.advance(m.place, event{}, began.Add(5*time.Second)).wake, "nothing is due")
	late := s.advance(m.place, event{}, began.Add(34*time.Second))
	require.Equal(t, "States.HeartbeatTimeout", late.steps[0].Error)
	late = s.advance(m.place, event{}, began.Add(64*time.Second))
	require.Equal(t, "States.Timeout", late.steps[0].Error)
	m = s.advance(m.place, busy, began.Add(5*time.Second))
	require.Equal(t, over, m.phase)
	require.JSONEq(t, `{"failure": {"Error": "Busy", "Cause": "why"}}`, m.input.text)
	require.Empty(t, first.steps[0].Error)
	require.Empty(t, first.retries, "what a move was made of stays as it was")
}

// A branch parts into others, as many as may, and goes on when they are over.
func TestAdvanceParts(t *testing.T) {
	s := stage(t, `"A": {"Type": "Map", "MaxConcurrency": 2, "End": true, "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Pass", "End": true}}}}`)
	m := s.advance(place{phase: entering, input: given(t, `["x","y","z"]`)}, event{}, began)
	require.Equal(t, []any{parted, true, 3, 2, 2}, []any{m.phase, m.fresh, m.total, m.made, len(m.children)})
	require.Equal(t, child{"B", given(t, `"y"`), &item{1, "y"}}, m.children[1])

	m.place.ended = 1
	more := s.advance(m.place, event{}, began)
	require.Equal(t, []any{parted, false, 3, 1}, []any{more.phase, more.fresh, more.made, len(more.children)})
	more.place.ended = 2
	require.Empty(t, s.advance(more.place, event{}, began).children, "none is left to begin")
	more.place.ended = 3
	m = s.advance(more.place, event{outputs: []any{"x", "y", "z"}}, began)
	require.Equal(t, []any{over, `["x","y","z"]`}, []any{m.phase, m.input.text})

	more.place.size = workflow.MaxData + 1
	require.Equal(t, "States.DataLimitExceeded", s.advance(more.place, event{}, began).failure.Error)
}
