//go:build long

package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// started is a routine's only run, whoever started it, over and with its output.
func (l *lane) started(t *testing.T, routineID string) (runID string) {
	t.Helper()
	runs := l.runs(t, routineID)
	require.Len(t, runs, 1)
	r := l.runUntil(t, runs[0], routineRun.over)
	require.Nil(t, r.Error)
	require.Equal(t, "succeeded", r.Status)
	require.JSONEq(t, `{"done": true}`, *r.Output)
	require.Len(t, r.Steps.Items, 1)
	return r.ID
}

// scheduled is a routine that a schedule starts.
func (l *lane) scheduled(t *testing.T, c cut) {
	key := "scheduled-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, pass)
	require.NoError(t, err)
	var made struct{ CreateSchedule struct{ ID string } }
	require.NoError(t, l.query(t.Context(), `mutation ($input: CreateScheduleInput!) { createSchedule(input: $input) { id } }`, vars{"input": vars{
		"name": key, "routineId": id, "expression": "rate(1 day)", "enabled": false}}, &made))
	ask := func() (r struct{ RunScheduleNow struct{ ID string } }, err error) {
		err = l.query(t.Context(), `mutation ($id: ID!, $key: String!) { runScheduleNow(id: $id, clientToken: $key) { id } }`, vars{"id": made.CreateSchedule.ID, "key": key}, &r)
		return r, err
	}
	l.kill(t, c.point, c.first(), func() { _, _ = ask() })
	l.restart(t, c.second())
	asked, err := ask()
	require.NoError(t, err)
	var run struct {
		GetScheduleRun struct {
			Status       string
			RoutineRunID *string
		}
	}
	soon(t, "the schedule's run", func() bool {
		require.NoError(t, l.again(t.Context(), `query ($id: ID!) { getScheduleRun(id: $id) { status routineRunId } }`, vars{"id": asked.RunScheduleNow.ID}, &run))
		return run.GetScheduleRun.Status != "running"
	})
	require.Equal(t, "succeeded", run.GetScheduleRun.Status)
	require.Equal(t, l.started(t, id), *run.GetScheduleRun.RoutineRunID)
	l.nothingLeft(t)
}

// called is a routine that another system's call starts; the call's repeat, with its key, is the same run.
func (l *lane) called(t *testing.T, c cut) {
	key := "called-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, pass)
	require.NoError(t, err)
	var made struct{ ID, Token string }
	status, err := l.post(t.Context(), "/api/webhooks", vars{"name": key, "target_type": "routine", "routine_id": id, "rate_limit": 1000}, &made,
		"Content-Type", "application/json", "Authorization", l.token)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)
	call := func() (run string, err error) {
		var a struct {
			RunID string `json:"run_id"`
		}
		_, err = l.post(t.Context(), "/webhooks/"+made.ID, vars{"order": 1}, &a, "Content-Type", "application/json", "Authorization", "Bearer "+made.Token, "Idempotency-Key", key)
		return a.RunID, err
	}
	l.kill(t, c.point, c.first(), func() { _, _ = call() })
	l.restart(t, c.second())
	run, err := call()
	require.NoError(t, err)
	require.Equal(t, l.started(t, id), run)
	l.nothingLeft(t)
}

// agents is a routine that an agent starts in a turn.
func (l *lane) agents(t *testing.T, c cut) {
	g := l.ground(t, c)
	key := "agents-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, pass)
	require.NoError(t, err)
	body := `/tool start_routine {"routine":"` + key + `"}`
	l.kill(t, c.point, c.first(), l.say(t, g, body))
	l.restart(t, c.second())
	turnID := l.repeated(t, g, body)
	h := l.held(t, g, c.attempts, 1, []string{body}, turnID)
	require.Equal(t, []outcome{{Name: "start_routine", Status: "ok"}}, h.turn(turnID).ToolOutcomes)
	require.Contains(t, h.replies(turnID)[0].Body, l.started(t, id))
	l.nothingLeft(t)
}

// denied is a run that a person refuses what it asks.
func (l *lane) denied(t *testing.T, c cut) {
	key := "denied-" + c.key()
	id, err := l.makeRoutine(t.Context(), key, ask)
	require.NoError(t, err)
	run, err := l.startRoutine(t.Context(), id, key, vars{})
	require.NoError(t, err)
	step := l.asked(t, run)
	l.kill(t, c.point, c.first(), func() { _, _ = l.decide(t.Context(), run, step, "DENIED") })
	l.restart(t, c.second())
	status, err := l.decide(t.Context(), run, step, "DENIED")
	require.NoError(t, err)
	require.Equal(t, "denied", status)
	_, err = l.decide(t.Context(), run, step, "APPROVED")
	require.Contains(t, refusedBy(t, err), "denied already")
	r := l.runUntil(t, run, routineRun.over)
	require.Equal(t, "failed", r.Status)
	require.Equal(t, "Denied", *r.Error)
	require.Equal(t, []string{run}, l.runs(t, id))
	l.nothingLeft(t)
}
