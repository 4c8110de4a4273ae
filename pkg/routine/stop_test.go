package routine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

// starts are the engine's runs; a start does before first, and is then told of.
type starts struct {
	engine.Runs
	before func() error
	arn    string
}

func (s *starts) Start(ctx context.Context, machine, name string, input json.RawMessage) (arn string, err error) {
	if s.before != nil {
		if err := s.before(); err != nil {
			return "", err
		}
	}
	s.arn, err = s.Runs.Start(ctx, machine, name, input)
	return s.arn, err
}

var errAway = errors.New("the engine is out of reach")

// A run that the engine was not given needs no engine to end.
func TestStopWithoutTheEngine(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`))
	require.NoError(t, err)
	waiting := ident.New()
	run, err := w.start(routine.NewRun{RoutineID: r.ID, CallbackID: &waiting})
	require.NoError(t, err)
	w.settler.Machines, w.settler.Runs = nil, &starts{Runs: w.engine, before: func() error { return errAway }}
	for range 2 {
		stopped, err := w.settler.Stop(t.Context(), w.TenantID, run.ID, new("enough"))
		require.NoError(t, err)
		require.Equal(t, routine.Aborted, stopped.Status)
		require.Equal(t, "Stopped: enough", *stopped.Error+": "+*stopped.Cause)
		require.Nil(t, stopped.ARN)
	}
	require.Equal(t, []callback.Task{{TenantID: w.TenantID, CallbackID: waiting}}, w.answered, "who waits is told as of every end")
	w.due()
	w.sweep()
	require.Equal(t, routine.Aborted, w.get(run.ID).Status)
}

// A run ends without the engine while it is given to it: it is stopped there.
func TestStopAgainstStart(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`))
	for name, ends := range map[string]func(runID string){
		"stopped": func(runID string) {
			_, err := w.settler.Stop(t.Context(), w.TenantID, runID, nil)
			require.NoError(t, err)
		},
		routine.NotStarted: func(runID string) {
			w.change(`update routine_runs set created_at = created_at - interval '2 days' where id = $1`, runID)
			other := *w.settler
			other.Signal, other.Runs = nil, &starts{Runs: w.engine, before: func() error { return errAway }}
			require.NoError(t, other.Settle(t.Context(), w.TenantID, runID))
			require.Equal(t, routine.NotStarted, *w.get(runID).Error)
		},
	} {
		run, err := w.start(routine.NewRun{RoutineID: r.ID})
		require.NoError(t, err)
		launches := &starts{Runs: w.engine}
		w.settler.Runs = launches
		w.settler.Signal = func(point string) {
			if point == "run started" {
				ends(run.ID)
			}
		}
		launched, err := w.settler.Launch(t.Context(), w.TenantID, run.ID)
		w.settler.Signal = nil
		require.NoError(t, err, name)
		require.True(t, launched.Status.Over(), name)
		now, err := w.engine.Describe(t.Context(), launches.arn)
		require.NoError(t, err)
		require.Equal(t, engine.Aborted, now.Status, name)
		require.Equal(t, *launched.Error, now.Error, name)
		require.Equal(t, launched.Status, w.get(run.ID).Status)
	}
}

// A run that another function launched is none that could not be started.
func TestNotStartedAgainstStart(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`))
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)
	w.change(`update routine_runs set created_at = created_at - interval '2 days'`)
	w.settler.Runs = &starts{Runs: w.engine, before: func() error {
		other := *w.settler
		other.Runs = w.engine
		_, err := other.Launch(t.Context(), w.TenantID, run.ID)
		return errors.Join(err, errAway)
	}}
	require.NoError(t, w.settler.Settle(t.Context(), w.TenantID, run.ID))
	require.Equal(t, routine.Running, w.get(run.ID).Status)
}
