package routine_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

// A run over each verb: what its task is told reaches begin-step, and what that answers is the task's result.
func TestARunOfEveryVerb(t *testing.T) {
	w := newWorld(t)
	w.begin = func(c routine.Call) any { return object{"did": c.Verb} }
	w.run()
	parameters := map[routine.Verb]string{
		routine.RunTurn:         fmt.Sprintf(`{"agentId": %q, "prompt.$": "States.Format('Of {}.', $.day)"}`, w.AgentID),
		routine.CallTool:        fmt.Sprintf(`{"agentId": %q, "tool": "read_thread", "input": {"id.$": "$.day", "deep": {"n.$": "$.n"}}}`, w.AgentID),
		routine.WaitForApproval: fmt.Sprintf(`{"prompt": "May I?", "approvers": [%q]}`, w.UserID),
		routine.SendMail:        `{"to": ["owner@acme.test"], "subject": "s", "text.$": "$.day"}`,
		routine.StartRoutine:    `{"routine": "mine", "input.$": "$"}`,
	}
	told := map[routine.Verb]string{
		routine.RunTurn:         fmt.Sprintf(`{"agentId": %q, "prompt": "Of Monday."}`, w.AgentID),
		routine.CallTool:        fmt.Sprintf(`{"agentId": %q, "tool": "read_thread", "input": {"id": "Monday", "deep": {"n": 1.50}}}`, w.AgentID),
		routine.WaitForApproval: parameters[routine.WaitForApproval],
		routine.SendMail:        `{"to": ["owner@acme.test"], "subject": "s", "text": "Monday"}`,
		routine.StartRoutine:    `{"routine": "mine", "input": {"day": "Monday", "n": 1.50}}`,
	}
	_, err := w.create("mine", machine("A", `"A": {"Type": "Succeed"}`))
	require.NoError(t, err)
	for _, verb := range routine.Verbs {
		r := w.made(machine("A", `"A": `+task(verb, parameters[verb], `"ResultPath": "$.result", "Next": "B"`)+`, "B": `+task(verb, ``, ``)))
		run := w.started(r.ID, `{"day": "Monday", "n": 1.50}`)
		first, second := w.call(), w.call()
		require.JSONEq(t, told[verb], string(first.Input), verb)
		require.Equal(t, []any{w.TenantID, r.ID, 1, run.ID, "A", verb, 0},
			[]any{first.TenantID, first.RoutineID, first.Version, first.RunID, first.State, first.Verb, first.Attempt})
		require.NotEmpty(t, first.Token)
		require.Equal(t, "B", second.State)
		require.JSONEq(t, fmt.Sprintf(`{"day": "Monday", "n": 1.50, "result": {"did": %q}}`, verb), string(second.Input), "without Parameters a task is told its input")
		run = w.over(run)
		require.Equal(t, routine.Succeeded, run.Status)
		require.JSONEq(t, fmt.Sprintf(`{"did": %q}`, verb), *run.Output)
		require.Nil(t, run.Error)
		require.NotNil(t, run.FinishedAt)
	}
}

func TestARunThatFails(t *testing.T) {
	w := newWorld(t)
	w.begin = func(c routine.Call) any {
		return refusal{"Denied", `{"errorMessage":"not on Mondays","errorType":"Denied"}`}
	}
	w.run()
	run := w.over(w.started(w.made(machine("A", `"A": `+task(routine.SendMail, ``, ``))).ID, ``))
	require.Equal(t, routine.Failed, run.Status)
	require.Equal(t, "Denied: not on Mondays", *run.Error+": "+*run.Cause)
	require.Nil(t, run.Output)
	require.JSONEq(t, `{}`, *run.Input)

	w.begin = func(routine.Call) any { return refusal{"Denied", `{"errorMessage":"not \u0000 then"}`} }
	run = w.over(w.started(run.RoutineID, ``))
	require.Equal(t, "not   then", *run.Cause, "what no text column holds does not keep a run from its end")

	caught := w.over(w.started(w.made(machine("A", `"A": `+task(routine.SendMail, ``, `"Catch": [{"ErrorEquals": ["Denied"], "Next": "B"}], "End": true`)+`, "B": {"Type": "Pass", "Result": "so be it", "End": true}`)).ID, `[1]`))
	require.Equal(t, routine.Succeeded, caught.Status)
	require.Equal(t, `"so be it"`, *caught.Output)
}

// Whoever dies between the row and the engine's start, or behind it, leaves a row that the sweep starts, once.
func TestTheSweepStartsWhatWasLeft(t *testing.T) {
	w := newWorld(t)
	w.begin = func(routine.Call) any { return true }
	w.run()
	r, err := w.create("mine", machine("A", `"A": `+task(routine.SendMail, ``, ``)))
	require.NoError(t, err)
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)
	w.sweep()
	require.Equal(t, routine.Starting, w.get(run.ID).Status, "whoever wrote it has some time")

	for _, point := range []string{"machine put", "run prepared", "run started"} {
		w.settler.Signal = func(at string) {
			if at == point {
				panic("killed")
			}
		}
		require.Panics(t, func() { _, _ = w.settler.Launch(t.Context(), w.TenantID, run.ID) }, point)
		require.Equal(t, routine.Starting, w.get(run.ID).Status)
	}
	w.settler.Signal = nil
	w.due()
	w.sweep()
	launched := w.get(run.ID)
	require.NotNil(t, launched.ARN)
	require.Equal(t, routine.Succeeded, w.over(launched).Status)
	require.Len(t, w.calls, 1, "it was started once")
}

func TestTheSweepEndsWhatNobodyTold(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(machine("A", `"A": `+task(routine.SendMail, ``, ``)))
	run := w.started(r.ID, ``)
	w.due()
	w.sweep()
	require.Equal(t, routine.Running, w.get(run.ID).Status)
	require.Equal(t, "true", w.text(`select (look_after > clock_timestamp() + interval '50 seconds')::text from routine_runs`), "it is looked at later")
	require.NoError(t, w.engine.Succeed(t.Context(), w.call().Token, json.RawMessage(`1`)))
	require.Eventually(t, func() bool {
		now, err := w.engine.Describe(t.Context(), *run.ARN)
		return err == nil && now.Status == engine.Succeeded
	}, eventually, tick)
	w.due()
	w.sweep()
	require.Equal(t, routine.Succeeded, w.get(run.ID).Status)

	// The engine's event names the run, and no tenant.
	event := routine.Job{}
	again := w.started(r.ID, ``)
	require.NoError(t, w.engine.Stop(t.Context(), *again.ARN, "Why", "not"))
	event.Detail.Name = again.ID
	require.NoError(t, w.settler.Run(t.Context(), event))
	require.Equal(t, routine.Aborted, w.get(again.ID).Status)
	for _, name := range []string{ident.New(), "auto-thread-run"} { // of other machines
		event.Detail.Name = name
		require.NoError(t, w.settler.Run(t.Context(), event))
	}
}

func TestARunIsSettledOnce(t *testing.T) {
	w := newWorld(t)
	w.begin = func(routine.Call) any { return object{"x": 1} }
	w.run()
	r := w.made(machine("A", `"A": `+task(routine.SendMail, ``, ``)))
	parent := w.started(w.made(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`)).ID, ``)
	var added callback.Added
	require.NoError(t, w.tx(func(tx pgx.Tx) (err error) {
		added, err = callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: "a token", Heartbeat: true})
		return err
	}))
	run, err := w.start(routine.NewRun{RoutineID: r.ID, StartedBy: routine.StartedBy{Type: routine.ByRoutine, ID: parent.ID}, ParentRunID: &parent.ID, CallbackID: &added.ID})
	require.NoError(t, err)
	require.Equal(t, 2, run.Depth)
	var settled atomic.Int32
	w.settler.Signal = func(point string) {
		if point == "run settled" {
			settled.Add(1)
		}
	}
	var together sync.WaitGroup
	for range 8 {
		together.Go(func() {
			for ended := false; !ended; {
				require.NoError(t, w.settler.Settle(t.Context(), w.TenantID, run.ID))
				now, err := routine.GetRun(t.Context(), w.db.App.In(w.TenantID), run.ID)
				require.NoError(t, err)
				ended = now.Status.Over()
			}
		})
	}
	together.Wait()
	require.EqualValues(t, 1, settled.Load())
	require.Len(t, w.calls, 1)
	require.Equal(t, []callback.Task{{TenantID: w.TenantID, CallbackID: added.ID}}, w.answered)
	require.JSONEq(t, fmt.Sprintf(`{"runId": %q, "status": "succeeded", "output": {"x": 1}}`, run.ID), w.text(`select output::text from callbacks where due_at is not null`))
}

// How a run ends is how the task ends that waits for it.
func TestTheParentIsTold(t *testing.T) {
	w := newWorld(t)
	w.run()
	parent := w.started(w.made(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`)).ID, ``)
	child := func(definition string) routine.Run {
		var added callback.Added
		require.NoError(t, w.tx(func(tx pgx.Tx) (err error) {
			added, err = callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: ident.New()})
			return err
		}))
		run, err := w.start(routine.NewRun{RoutineID: w.made(definition).ID, ParentRunID: &parent.ID, CallbackID: &added.ID})
		require.NoError(t, err)
		run, err = w.settler.Launch(t.Context(), w.TenantID, run.ID)
		require.NoError(t, err)
		return run
	}
	told := func(r routine.Run) string {
		return w.text(`select coalesce(error_type || ': ' || error, 'answered') from callbacks where id = $1 and due_at is not null`, *r.CallbackID)
	}
	failed := child(machine("F", `"F": {"Type": "Fail", "Error": "Broken", "Cause": "by hand"}`))
	w.over(failed)
	require.Equal(t, "Broken: by hand", told(failed))
	nameless := child(machine("F", `"F": {"Type": "Fail"}`))
	w.over(nameless)
	require.Equal(t, "RoutineFailed: ", told(nameless))
	stopped := child(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`))
	_, err := w.settler.Stop(t.Context(), w.TenantID, stopped.ID, new("enough"))
	require.NoError(t, err)
	require.Equal(t, "RoutineStopped: enough", told(stopped))
	late := child(`{"TimeoutSeconds": 1, ` + machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`)[1:])
	require.Equal(t, routine.TimedOut, w.over(late).Status)
	require.Contains(t, told(late), "RoutineTimedOut: ")
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(machine("P", `"P": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "A", "States": {"A": `+task(routine.SendMail, ``, ``)+`}}, {"StartAt": "B", "States": {"B": `+task(routine.SendMail, ``, ``)+`}}]}`))
	run := w.started(r.ID, ``)
	one, _ := w.call(), w.call()
	child, err := w.start(routine.NewRun{RoutineID: r.ID, ParentRunID: &run.ID, CallbackID: new(ident.New())})
	require.NoError(t, err)
	left, err := w.start(routine.NewRun{RoutineID: r.ID, ParentRunID: &run.ID}) // nobody waits for it
	require.NoError(t, err)
	for range 2 {
		stopped, err := w.settler.Stop(t.Context(), w.TenantID, run.ID, new("enough"))
		require.NoError(t, err)
		require.Equal(t, routine.Aborted, stopped.Status)
		require.Equal(t, "Stopped: enough", *stopped.Error+": "+*stopped.Cause)
	}
	require.ErrorIs(t, w.engine.Succeed(t.Context(), one.Token, json.RawMessage(`1`)), engine.ErrTaskOver)
	cut := w.get(child.ID)
	require.Equal(t, routine.Aborted, cut.Status, "what it waits for ends with it")
	require.Equal(t, routine.ParentEnded, *cut.Error)
	require.Equal(t, routine.Starting, w.get(left.ID).Status, "what it does not wait for goes on")

	early, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)
	early, err = w.settler.Stop(t.Context(), w.TenantID, early.ID, nil)
	require.NoError(t, err)
	require.Equal(t, routine.Aborted, early.Status, "one that nobody had launched")
	require.Equal(t, "a person stopped the run", *early.Cause)

	ended := w.over(w.started(w.made(machine("A", `"A": {"Type": "Succeed"}`)).ID, ``))
	_, err = w.settler.Stop(t.Context(), w.TenantID, ended.ID, nil)
	refused(t, err, fault.ValidationError, "the run is over: succeeded")
	_, err = w.settler.Stop(t.Context(), w.TenantID, ident.New(), nil)
	refused(t, err, fault.NotFound, "routine run not found")
	_, err = w.settler.Stop(t.Context(), w.db.World(t, "globex").TenantID, run.ID, nil)
	refused(t, err, fault.NotFound, "routine run not found")
}

// A run that waits for another one dies with its function: what it waited for is found to be of no use.
func TestAChildOfWhatIsOver(t *testing.T) {
	w := newWorld(t)
	w.run()
	long := w.made(machine("W", `"W": {"Type": "Wait", "Seconds": 3600, "End": true}`))
	parent := w.started(long.ID, ``)
	child, err := w.start(routine.NewRun{RoutineID: long.ID, ParentRunID: &parent.ID, CallbackID: new(ident.New())})
	require.NoError(t, err)
	w.settler.Signal = func(point string) {
		if point == "run settled" {
			panic("killed")
		}
	}
	require.Panics(t, func() { _, _ = w.settler.Stop(t.Context(), w.TenantID, parent.ID, nil) })
	w.settler.Signal = nil
	require.Equal(t, routine.Starting, w.get(child.ID).Status)
	w.sweep() // which stops it
	w.due()
	w.sweep() // and writes that
	require.Equal(t, routine.ParentEnded, *w.get(child.ID).Error)

	orphan := w.started(long.ID, ``) // its parent was over for so long that it is forgotten
	w.change(`update routine_runs set parent_run_id = gen_random_uuid(), callback_id = gen_random_uuid() where id = $1`, orphan.ID)
	for range 2 {
		w.due()
		w.sweep()
	}
	require.Equal(t, routine.ParentEnded, *w.get(orphan.ID).Error)
}

func TestARunThatTheEngineLost(t *testing.T) {
	w := newWorld(t)
	run := w.started(w.made(machine("A", `"A": {"Type": "Succeed"}`)).ID, ``)
	w.change(`update routine_runs set arn = arn || 'x'`)
	require.ErrorIs(t, w.settler.Settle(t.Context(), w.TenantID, run.ID), engine.ErrNoRun, "it may only be late")
	w.due()
	w.sweep()
	require.Equal(t, routine.Running, w.get(run.ID).Status)
	w.change(`update routine_runs set started_at = started_at - interval '2 hours'`)
	require.NoError(t, w.settler.Settle(t.Context(), w.TenantID, run.ID))
	require.Equal(t, routine.RunLost, *w.get(run.ID).Error)
}
