//go:build long

package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// routine is the part of a tenant's routine that the tests look at.
type routine struct {
	ID       string
	Versions struct {
		Items []struct {
			Version int
			Status  string
		}
	}
}

// routineRun is a run of a routine, as the API tells it.
type routineRun struct {
	ID, Status           string
	Output, Error, Cause *string
	Steps                struct {
		Items []struct {
			State, Status string
			Attempts      int
			TurnID        *string
			ChildRunID    *string
			Approval      *struct{ Decision *string }
		}
	}
}

func (r routineRun) over() bool { return r.Status != "starting" && r.Status != "running" }

const routineRunFields = `id status output error cause steps(limit: 100) { items { state status attempts turnId childRunId approval { decision } } }`

// makeRoutine makes a routine; a repeat by the same name makes none.
func (l *lane) makeRoutine(ctx context.Context, name string, definition vars) (string, error) {
	text, err := json.Marshal(definition)
	if err != nil {
		return "", err
	}
	var made struct{ CreateRoutine routine }
	err = l.query(ctx, `mutation ($input: CreateRoutineInput!) { createRoutine(input: $input) { id } }`,
		vars{"input": vars{"name": name, "definition": string(text), "clientToken": name}}, &made)
	return made.CreateRoutine.ID, err
}

// startRoutine starts a run; a repeat with the same key starts none.
func (l *lane) startRoutine(ctx context.Context, id, key string, input vars) (string, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	var started struct{ StartRoutine routineRun }
	err = l.query(ctx, `mutation ($id: ID!, $input: AWSJSON, $key: String!) { startRoutine(id: $id, input: $input, clientToken: $key) { id } }`,
		vars{"id": id, "input": string(text), "key": key}, &started)
	return started.StartRoutine.ID, err
}

// runUntil waits until a run is as it is wanted.
func (l *lane) runUntil(t *testing.T, id string, wanted func(routineRun) bool) (r routineRun) {
	t.Helper()
	soon(t, "run "+id, func() bool {
		var answer struct{ GetRoutineRun routineRun }
		require.NoError(t, l.again(t.Context(), `query ($id: ID!) { getRoutineRun(id: $id) { `+routineRunFields+` } }`, vars{"id": id}, &answer))
		r = answer.GetRoutineRun
		return wanted(r)
	})
	return r
}

// runs are the ids of all runs of a routine.
func (l *lane) runs(t *testing.T, routineID string) (ids []string) {
	t.Helper()
	var answer struct {
		ListRoutineRuns struct{ Items []struct{ ID string } }
	}
	require.NoError(t, l.again(t.Context(), `query ($id: ID!) { listRoutineRuns(filter: {routineId: $id}, limit: 100) { items { id } } }`, vars{"id": routineID}, &answer))
	for _, r := range answer.ListRoutineRuns.Items {
		ids = append(ids, r.ID)
	}
	return ids
}

// asks are the steps by which a run asks a person.
func (l *lane) asks(t *testing.T, runID string) (steps []string) {
	t.Helper()
	var answer struct {
		ListRoutineApprovals struct {
			Items []struct{ RunID, StepID string }
		}
	}
	require.NoError(t, l.again(t.Context(), `{ listRoutineApprovals(limit: 100) { items { runId stepId } } }`, nil, &answer))
	for _, a := range answer.ListRoutineApprovals.Items {
		if a.RunID == runID {
			steps = append(steps, a.StepID)
		}
	}
	return steps
}

// asked waits until a run asks a person, and gives the step.
func (l *lane) asked(t *testing.T, runID string) (stepID string) {
	t.Helper()
	soon(t, "run "+runID+" asks", func() bool {
		steps := l.asks(t, runID)
		if len(steps) > 0 {
			require.Len(t, steps, 1)
			stepID = steps[0]
		}
		return stepID != ""
	})
	return stepID
}

func (l *lane) decide(ctx context.Context, runID, stepID, decision string) (status string, err error) {
	var answer struct{ ApproveStep struct{ Status string } }
	err = l.query(ctx, `mutation ($run: ID!, $step: ID!, $d: RoutineDecision!) { approveStep(runId: $run, stepId: $step, decision: $d) { status } }`,
		vars{"run": runID, "step": stepID, "d": decision}, &answer)
	return answer.ApproveStep.Status, err
}

// refusedBy is what the platform said to a call that it must refuse.
func refusedBy(t *testing.T, err error) string {
	t.Helper()
	var no refused
	require.True(t, errors.As(err, &no), "%v", err)
	return no.message
}

// versions are those of a routine, newest first, with their status.
func (l *lane) versions(t *testing.T, id string) []string {
	t.Helper()
	var answer struct{ GetRoutine routine }
	require.NoError(t, l.again(t.Context(), `query ($id: ID!) { getRoutine(id: $id) { versions(limit: 10) { items { version status } } } }`, vars{"id": id}, &answer))
	var found []string
	for _, v := range answer.GetRoutine.Versions.Items {
		found = append(found, v.Status)
	}
	return found
}
