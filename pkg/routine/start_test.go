package routine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestStart(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	run, err := w.start(routine.NewRun{Name: "mine", Input: json.RawMessage(` { "a": [1, 2.50] } `), StartedBy: routine.StartedBy{Type: routine.ByWebhook, ID: r.ID}})
	require.NoError(t, err)
	require.Equal(t, []any{r.ID, "mine", 1, routine.Starting, `{"a":[1,2.50]}`, 1}, []any{run.RoutineID, run.RoutineName, run.Version, run.Status, *run.Input, run.Depth})
	require.Equal(t, routine.StartedBy{Type: routine.ByWebhook, ID: r.ID}, run.StartedBy)

	// Whoever may ask twice gives the run's id.
	id := ident.New()
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			run, err := w.start(routine.NewRun{RoutineID: r.ID, RunID: id})
			require.NoError(t, err)
			require.Equal(t, id, run.ID)
		})
	}
	together.Wait()
	require.Equal(t, "2", w.text(`select count(*)::text from routine_runs`))

	for name, c := range map[string]struct {
		n    routine.NewRun
		kind fault.Type
		says string
	}{
		"no such routine":        {routine.NewRun{RoutineID: ident.New()}, fault.NotFound, "routine not found"},
		"no id":                  {routine.NewRun{RoutineID: "mine"}, fault.NotFound, "routine not found"},
		"no such name":           {routine.NewRun{Name: "Mine"}, fault.NotFound, "routine not found"},
		"no name":                {routine.NewRun{}, fault.NotFound, "routine not found"},
		"no JSON":                {routine.NewRun{RoutineID: r.ID, Input: json.RawMessage(`{`)}, fault.ValidationError, "input must be JSON"},
		"a large input":          {routine.NewRun{RoutineID: r.ID, Input: json.RawMessage(`"` + strings.Repeat("x", engine.MaxData) + `"`)}, fault.ValidationError, "input is longer than 262144 bytes"},
		"a parent that is gone":  {routine.NewRun{RoutineID: r.ID, ParentRunID: new(ident.New())}, fault.NotFound, "routine run not found"},
		"the name is not an id":  {routine.NewRun{RoutineID: "'; drop table routines; --"}, fault.NotFound, "routine not found"},
		"the name holds nothing": {routine.NewRun{Name: ""}, fault.NotFound, "routine not found"},
	} {
		_, err := w.start(c.n)
		require.Error(t, err, name)
		refused(t, err, c.kind, c.says)
	}
}

func TestAsManyRunsAsATenantMayHave(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	var together sync.WaitGroup
	answers := make(chan error, routine.MaxRuns+5)
	for range routine.MaxRuns + 5 {
		together.Go(func() {
			_, err := w.start(routine.NewRun{RoutineID: r.ID})
			answers <- err
		})
	}
	together.Wait()
	refusals := 0
	for range routine.MaxRuns + 5 {
		if err := <-answers; err != nil {
			refused(t, err, fault.RateLimitExceeded, "50 runs of routines go on")
			refusals++
		}
	}
	require.Equal(t, 5, refusals)
	require.Equal(t, fmt.Sprint(routine.MaxRuns), w.text(`select count(*)::text from routine_runs`))
	w.run()
	w.due()
	w.sweep()
	require.Eventually(t, func() bool {
		w.due()
		w.sweep()
		_, err := w.start(routine.NewRun{RoutineID: r.ID})
		return err == nil
	}, eventually, tick, "one that is over makes room")
}

func TestRunsThatStartRuns(t *testing.T) {
	w := newWorld(t)
	r, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	for depth := 2; depth <= routine.MaxDepth; depth++ {
		require.NoError(t, err)
		run, err = w.start(routine.NewRun{RoutineID: r.ID, ParentRunID: new(run.ID)})
		require.Equal(t, depth, run.Depth)
	}
	require.NoError(t, err)
	_, err = w.start(routine.NewRun{RoutineID: r.ID, ParentRunID: &run.ID})
	refused(t, err, fault.ValidationError, "runs that start runs may be 5 deep")
	w.change(`update routine_runs set status = 'aborted', finished_at = now(), look_after = null`)
	_, err = w.start(routine.NewRun{RoutineID: r.ID, ParentRunID: &run.ID})
	refused(t, err, fault.ValidationError, "the run that starts it is over")
}

func TestTenantsAreApart(t *testing.T) {
	w := newWorld(t)
	other := w.db.World(t, "globex")
	r, err := w.create("mine", passes("x"))
	require.NoError(t, err)
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)

	acme := w.World
	w.World = other
	_, err = routine.Get(t.Context(), w.db.App.In(w.TenantID), r.ID, nil)
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.start(routine.NewRun{RoutineID: r.ID})
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.start(routine.NewRun{Name: "mine"})
	refused(t, err, fault.NotFound, "routine not found")
	_, err = w.update(r.ID, fields("theirs", passes("y")))
	refused(t, err, fault.NotFound, "routine not found")
	_, err = routine.GetRun(t.Context(), w.db.App.In(w.TenantID), run.ID)
	refused(t, err, fault.NotFound, "routine run not found")
	_, err = w.settler.Launch(t.Context(), w.TenantID, run.ID)
	refused(t, err, fault.NotFound, "routine run not found")
	require.Empty(t, w.versions(r.ID))
	theirs, err := w.create("mine", passes("z"))
	require.NoError(t, err, "a name is a tenant's")
	mine, err := w.start(routine.NewRun{RoutineID: theirs.ID})
	require.NoError(t, err)
	_, err = w.start(routine.NewRun{RoutineID: theirs.ID, ParentRunID: &run.ID})
	refused(t, err, fault.NotFound, "routine run not found")
	for _, c := range []string{w.TenantID, acme.TenantID} {
		list, err := routine.List(t.Context(), w.db.App.In(c), nil, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		runs, err := routine.Runs(t.Context(), w.db.App.In(c), routine.RunFilter{}, nil, 10)
		require.NoError(t, err)
		require.Len(t, runs, 1)
	}
	require.NotEqual(t, run.ID, mine.ID)
}
