package routine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
)

func (w *world) steps(r routine.Run) []routine.Step {
	w.t.Helper()
	steps, size, err := routine.Steps(w.t.Context(), w.db.App.In(w.TenantID), w.engine, r, nil, 1000, routine.MaxPage)
	require.NoError(w.t, err)
	require.GreaterOrEqual(w.t, size, len(steps))
	return steps
}

// lines are steps in short.
func lines(steps []routine.Step) (list []string) {
	for _, s := range steps {
		line := fmt.Sprintf("%s %s %s", s.Type, s.State, s.Status)
		if s.Attempts != 1 {
			line += fmt.Sprintf(" after %d", s.Attempts)
		}
		if s.Error != nil {
			line += ": " + *s.Error
		}
		list = append(list, line)
	}
	return list
}

// recorded writes the record of a call, as begin-step does.
func (w *world) recorded(c routine.Call) string {
	w.t.Helper()
	id := ident.New()
	w.change(`insert into routine_steps (tenant_id, id, run_id, state, entered_at, attempt, verb, token_hash, status, input, prompt, approvers)
		values ($1, $2, $3, $4, $5, $6, $7::text, sha256($8), 'waiting', $9, case when $7::text = 'wait_for_approval' then 'May I?' end, array[$10]::uuid[])`,
		w.TenantID, id, c.RunID, c.State, c.Entered, c.Attempt, c.Verb, []byte(c.Token), string(c.Input), w.UserID)
	return id
}

func TestStepsOfARun(t *testing.T) {
	w := newWorld(t)
	tries := 0
	w.begin = func(c routine.Call) any {
		switch {
		case c.State == "Retried" && tries < 2:
			tries++
			return refusal{"Busy", "later"}
		case c.State == "Refused":
			return refusal{"Denied", `{"errorMessage":"no","errorType":"Denied"}`}
		case c.State == "Asked":
			return nil
		}
		return object{"of": c.State, "item": c.Input}
	}
	w.run()
	run := w.started(w.made(machine("Both", `
		"Both": {"Type": "Parallel", "ResultPath": "$.both", "Next": "Each", "Branches": [
			{"StartAt": "Retried", "States": {"Retried": `+task(routine.RunTurn, ``, `"Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 3, "BackoffRate": 1}]`)+`}},
			{"StartAt": "Refused", "States": {"Refused": `+task(routine.SendMail, ``, `"Catch": [{"ErrorEquals": ["Denied"], "Next": "Sorry"}], "End": true`)+`, "Sorry": {"Type": "Pass", "Result": "sorry", "End": true}}}]},
		"Each": {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 1, "ResultPath": "$.each", "Next": "Which", "ItemProcessor": {"StartAt": "Item", "States": {"Item": `+task(routine.CallTool, ``, ``)+`}}},
		"Which": {"Type": "Choice", "Choices": [{"Variable": "$.both[1]", "StringEquals": "sorry", "Next": "Asked"}], "Default": "Never"},
		"Never": {"Type": "Fail"},
		"Asked": `+task(routine.WaitForApproval, ``, ``))).ID, `{"items": [1, 2]}`)
	var asked routine.Call
	for asked.State != "Asked" {
		asked = w.call()
		if asked.State != "Refused" { // of which there is no record
			w.recorded(asked)
		}
	}
	steps := w.steps(w.get(run.ID))
	require.Equal(t, "Parallel Both succeeded", lines(steps)[0])
	require.ElementsMatch(t, []string{"Task Retried succeeded after 3", "Task Refused caught: Denied", "Pass Sorry succeeded"}, lines(steps)[1:4])
	require.Equal(t, []string{"Map Each succeeded", "Task Item succeeded", "Task Item succeeded", "Choice Which succeeded", "Task Asked running"}, lines(steps)[4:])
	require.JSONEq(t, `{"items": [1, 2]}`, *steps[0].Input)
	require.JSONEq(t, `2`, *steps[6].Input)
	require.JSONEq(t, `{"of": "Item", "item": 2}`, *steps[6].Output)
	for i, s := range steps {
		require.Equal(t, s.Status != routine.StepRunning, s.FinishedAt != nil)
		require.Equal(t, s.Type == "Task" && s.State != "Refused", s.ID != nil, "%d %s", i, s.State)
		if s.State == "Refused" {
			require.Equal(t, "no", *s.Cause)
		}
		if s.State == "Retried" {
			require.Equal(t, []any{routine.RunTurn, 3}, []any{*s.Verb, s.Attempts})
			require.Equal(t, w.text(`select id::text from routine_steps where state = 'Retried' and attempt = 2`), *s.ID, "the last attempt's")
		}
	}
	require.NotEqual(t, *steps[5].ID, *steps[6].ID)
	last := steps[8]
	require.Equal(t, &routine.Approval{Prompt: "May I?", Approvers: []string{w.UserID}}, last.Approval)
	require.Nil(t, last.Output)

	// As the API shows one: what a record says is beside what the engine does.
	shown, err := json.Marshal(last)
	require.NoError(t, err)
	var members object
	require.NoError(t, json.Unmarshal(shown, &members))
	require.Equal(t, []any{"Asked", "wait_for_approval", *last.ID}, []any{members["state"], members["verb"], members["id"]})

	var paged []routine.Step
	var after *routine.StepCursor
	for {
		page, size, err := routine.Steps(t.Context(), w.db.App.In(w.TenantID), w.engine, run, after, 3, routine.MaxPage)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		page = page[:min(size, 2)]
		paged = append(paged, page...)
		after = new(page[len(page)-1].Cursor())
	}
	require.Equal(t, lines(steps), lines(paged))

	_, err = w.settler.Stop(t.Context(), w.TenantID, run.ID, nil)
	require.NoError(t, err)
	require.Equal(t, "Task Asked cut", lines(w.steps(w.get(run.ID)))[8])
}

func TestStepsOfAFailure(t *testing.T) {
	w := newWorld(t)
	w.begin = func(c routine.Call) any {
		if c.State == "Waits" {
			return nil
		}
		return refusal{"Broken", "by hand"}
	}
	w.run()
	run := w.over(w.started(w.made(machine("Both", `"Both": {"Type": "Parallel", "End": true, "Branches": [
		{"StartAt": "Waits", "States": {"Waits": `+task(routine.RunTurn, ``, ``)+`}},
		{"StartAt": "Rests", "States": {"Rests": {"Type": "Wait", "Seconds": 1, "Next": "Fails"}, "Fails": `+task(routine.RunTurn, ``, ``)+`}}]}`)).ID, ``))
	require.Equal(t, "Broken: by hand", *run.Error+": "+*run.Cause)
	steps := lines(w.steps(run))
	require.Contains(t, steps[0], "Parallel Both failed")
	require.ElementsMatch(t, []string{"Task Waits cut", "Wait Rests succeeded", "Task Fails failed: Broken"}, steps[1:])
}

// A page is no larger than an answer can be.
func TestLargeSteps(t *testing.T) {
	w := newWorld(t)
	w.run()
	run := w.over(w.started(w.made(machine("A", `"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Pass", "End": true}`)).ID, `"`+strings.Repeat("x", 200<<10)+`"`))
	for bytes, want := range map[int]int{1: 1, 300 << 10: 1, 401 << 10: 1, 900 << 10: 2, 10 << 20: 3} {
		steps, size, err := routine.Steps(t.Context(), w.db.App.In(w.TenantID), w.engine, run, nil, 10, bytes)
		require.NoError(t, err)
		require.Len(t, steps, 3)
		require.Equal(t, want, size, bytes)
	}
}

func TestStepsOfWhatTheEngineForgot(t *testing.T) {
	w := newWorld(t)
	r := w.made(passes("x"))
	run, err := w.start(routine.NewRun{RoutineID: r.ID})
	require.NoError(t, err)
	require.Empty(t, w.steps(run), "it has not begun")
	run, err = w.settler.Launch(t.Context(), w.TenantID, run.ID)
	require.NoError(t, err)
	run.ARN = new(*run.ARN + "x")
	require.Empty(t, w.steps(run))
}

func TestLive(t *testing.T) {
	w := newWorld(t)
	w.run()
	r := w.made(machine("A", `"A": `+task(routine.SendMail, ``, ``)))
	run := w.started(r.ID, ``)
	require.Equal(t, run, run.Live(t.Context(), w.engine))
	require.NoError(t, w.engine.Succeed(t.Context(), w.call().Token, json.RawMessage(`{"b": 1}`)))
	require.Eventually(t, func() bool { return run.Live(t.Context(), w.engine).Status == routine.Succeeded }, eventually, tick)
	live := run.Live(t.Context(), w.engine)
	require.Equal(t, routine.Running, w.get(run.ID).Status, "reading writes nothing")
	require.Equal(t, live, w.over(run), "what is seen early is what is written")
	lost := run
	lost.ARN = new("elsewhere")
	require.Equal(t, lost, lost.Live(t.Context(), w.engine))
}
