//go:build long

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scheduleRun is a run of a schedule, as the API tells it.
type scheduleRun struct {
	ID, Status string
	StopReason *string
	Error      *string
	ThreadID   string
	FinishedAt *time.Time
	Iterations []struct {
		Number      int
		TurnID      string
		Status      string
		GoalReached *bool
		FinishedAt  *time.Time
	}
}

const scheduleRunFields = `id status stopReason error threadId finishedAt iterations { number turnId status goalReached finishedAt }`

// loop is a schedule that a person has run, whose agent goes on for two turns. Whoever asked asks again after each death.
func (l *lane) loop(t *testing.T, c cut) {
	g := ground{key: "loop-" + c.key()}
	var err error
	g.spent, _, err = l.money(t.Context())
	require.NoError(t, err)
	bodies := []string{"/say One.", "/say Two."}
	var made struct{ CreateSchedule struct{ ID string } }
	require.NoError(t, l.query(t.Context(), `mutation ($input: CreateScheduleInput!) { createSchedule(input: $input) { id } }`, vars{"input": vars{
		"name": g.key, "agentId": l.agent, "prompt": bodies[0], "expression": "rate(1 day)", "enabled": false,
		"loop": vars{"maxIterations": 2, "continuationPrompt": bodies[1], "goal": []vars{{"type": "length", "minCharacters": 1000}}}}}, &made))
	run := func() string {
		var asked struct{ RunScheduleNow struct{ ID string } }
		_ = l.query(t.Context(), `mutation ($id: ID!, $key: String!) { runScheduleNow(id: $id, clientToken: $key) { id } }`,
			vars{"id": made.CreateSchedule.ID, "key": g.key}, &asked)
		return asked.RunScheduleNow.ID
	}
	l.kill(t, c.point, c.first(), func() { run() })
	l.restartBy(t, c.second(), func() { run() })
	id := run()
	require.NotEmpty(t, id)
	require.Equal(t, id, run())

	var told struct{ GetScheduleRun scheduleRun }
	soon(t, "run "+id, func() bool {
		require.NoError(t, l.again(t.Context(), `query ($id: ID!) { getScheduleRun(id: $id) { `+scheduleRunFields+` } }`, vars{"id": id}, &told))
		return told.GetScheduleRun.FinishedAt != nil
	})
	r := told.GetScheduleRun
	require.Nil(t, r.Error)
	require.Equal(t, "succeeded", r.Status)
	require.Equal(t, "maxIterations", *r.StopReason)
	require.Len(t, r.Iterations, 2)
	var turns []string
	for n, i := range r.Iterations {
		require.Equal(t, n+1, i.Number)
		require.Equal(t, "succeeded", i.Status)
		require.NotNil(t, i.FinishedAt)
		require.NotNil(t, i.GoalReached)
		require.False(t, *i.GoalReached)
		turns = append(turns, i.TurnID)
	}
	var all struct {
		GetSchedule struct {
			Runs struct{ Items []struct{ ID string } }
		}
	}
	require.NoError(t, l.query(t.Context(), `query ($id: ID!) { getSchedule(id: $id) { runs(limit: 10) { items { id } } } }`, vars{"id": made.CreateSchedule.ID}, &all))
	require.Len(t, all.GetSchedule.Runs.Items, 1)

	h, err := l.read(t.Context(), r.ThreadID)
	require.NoError(t, err)
	l.whole(t, h, "closed", 1, bodies, turns...)
	require.Equal(t, "One.", h.replies(turns[0])[0].Body)
	require.Equal(t, "Two.", h.replies(turns[1])[0].Body)
	l.paid(t, g, h)
	l.nothingLeft(t)
}
