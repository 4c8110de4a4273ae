package workflow_test

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func (c contract) states() {
	run := c.start(c.put(`"A": {"Type": "Pass", "Result": {"n": 2}, "ResultPath": "$.made", "Next": "B"},
		"B": {"Type": "Choice", "Choices": [{"Variable": "$.made.n", "NumericGreaterThan": 1, "Next": "C"}], "Default": "E"},
		"C": {"Type": "Wait", "Seconds": 0, "Next": "D"}, "D": {"Type": "Succeed", "OutputPath": "$.made"}, "E": {"Type": "Fail"}`), `{"in": true}`)
	r := c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `{"in": true}`, string(r.Input))
	require.JSONEq(c.t, `{"n": 2}`, string(r.Output))
	require.False(c.t, r.Ended.Before(r.Started))
	require.Empty(c.t, r.Error+r.Cause)
	steps := c.history(run)
	require.Equal(c.t, []string{"Pass A entered", "Pass A exited", "Choice B entered", "Choice B exited", "Wait C entered", "Wait C exited",
		"Succeed D entered", "Succeed D exited"}, told(steps))
	require.JSONEq(c.t, `{"in": true}`, string(steps[0].Input))
	require.JSONEq(c.t, `{"in": true, "made": {"n": 2}}`, string(steps[1].Output))
	require.JSONEq(c.t, `{"n": 2}`, string(steps[7].Output))
}

func (c contract) branches() {
	run := c.start(c.put(`"A": {"Type": "Parallel", "Next": "M", "Branches": [
			{"StartAt": "B", "States": {"B": {"Type": "Pass", "Result": 1, "Next": "C"}, "C": {"Type": "Pass", "End": true}}},
			{"StartAt": "D", "States": {"D": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "E", "States": {"E": {"Type": "Pass", "Result": 2, "End": true}}}]}}}]},
		"M": {"Type": "Map", "MaxConcurrency": 1, "End": true, "ItemProcessor": {"StartAt": "I", "States": {"I": {"Type": "Pass", "Next": "J"}, "J": {"Type": "Pass", "End": true}}}}`), `{}`)
	r := c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `[1, [2]]`, string(r.Output))
	steps := c.history(run)
	lines := told(steps)
	require.Equal(c.t, "Parallel A entered", lines[0])
	require.ElementsMatch(c.t, []string{"Pass B entered", "Pass B exited", "Pass C entered", "Pass C exited", "Parallel D entered", "Pass E entered", "Pass E exited", "Parallel D exited"}, lines[1:9])
	require.Equal(c.t, []string{"Parallel A exited", "Map M entered", "Pass I entered", "Pass I exited", "Pass J entered", "Pass J exited",
		"Pass I entered", "Pass I exited", "Pass J entered", "Pass J exited", "Map M exited"}, lines[9:])
	require.Equal(c.t, []int{1, 11}, []int{steps[9].Visit, steps[19].Visit}, "of A and of M")
	require.JSONEq(c.t, `[2]`, string(steps[15].Input), "of the second item")
}

func (c contract) stringOutput() {
	r := c.end(c.start(c.put(`"A": {"Type": "Pass", "End": true}`), `"a \"text\""`))
	require.JSONEq(c.t, `"a \"text\""`, string(r.Output))
}

func (c contract) failure() {
	run := c.start(c.put(`"A": {"Type": "Fail", "Error": "Sorry", "Cause": "it cannot be done"}`), `{}`)
	r := c.end(run)
	require.Equal(c.t, []string{"FAILED", "Sorry", "it cannot be done"}, []string{string(r.Status), r.Error, r.Cause})
	require.Nil(c.t, r.Output)
	require.False(c.t, r.Ended.IsZero())
	require.Equal(c.t, []string{"Fail A entered", "Fail A failed Sorry: it cannot be done"}, told(c.history(run)))
}

func (c contract) caught() {
	run := c.start(c.put(`"A": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Fail", "Error": "Sorry", "Cause": "no"}}}],
		"Catch": [{"ErrorEquals": ["Sorry"], "ResultPath": "$.failure", "Next": "C"}]}, "C": {"Type": "Pass", "End": true}`), `{}`)
	r := c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `{"failure": {"Error": "Sorry", "Cause": "no"}}`, string(r.Output))
	kinds := map[string]workflow.Kind{} // the last of each state
	for _, s := range c.history(run) {
		kinds[s.State] = s.Kind
		require.False(c.t, s.State == "A" && s.Kind == workflow.StateExited && kinds["B"] == "", "B was entered before")
	}
	require.Equal(c.t, []workflow.Kind{workflow.StateExited, workflow.StateExited}, []workflow.Kind{kinds["A"], kinds["C"]})
}

func (c contract) sameRun() {
	machine, name := c.put(`"A": `+c.waiting(`"End": true`)), ident.New()
	start := func(machine, input string) (string, error) {
		return c.engine.Start(c.t.Context(), machine, name, json.RawMessage(input))
	}
	run, err := start(machine, `{"n": 1, "s": " "}`)
	require.NoError(c.t, err)
	token := c.task().Token
	require.Equal(c.t, workflow.Running, c.describe(run).Status)
	for range 2 { // while it runs, and when it is over
		again, err := start(machine, " {\"n\":1,\n\"s\":\" \"}")
		require.NoError(c.t, err)
		require.Equal(c.t, run, again)
		for _, other := range []string{`{"n": 2, "s": " "}`, `{"n": 1, "s": ""}`} {
			_, err = start(machine, other)
			require.ErrorIs(c.t, err, workflow.ErrRunExists)
			require.ErrorContains(c.t, err, name)
			require.NotContains(c.t, err.Error(), `"s"`)
		}
		if c.describe(run).Status == workflow.Running {
			require.NoError(c.t, c.engine.Succeed(c.t.Context(), token, json.RawMessage(`null`)))
			c.end(run)
		}
	}
	other, err := start(c.put(`"A": {"Type": "Pass", "End": true}`), `{}`)
	require.NoError(c.t, err, "names are a machine's own")
	require.NotEqual(c.t, run, other)
	c.end(other)
}

func (c contract) concurrent() {
	const starters = 8
	machine, name := c.put(`"A": {"Type": "Pass", "End": true}`), ident.New()
	runs, errs := make([]string, starters), make([]error, starters)
	var wg sync.WaitGroup
	for i := range starters {
		wg.Go(func() {
			runs[i], errs[i] = c.engine.Start(c.t.Context(), machine, name, json.RawMessage(fmt.Sprint(i%2)))
		})
	}
	wg.Wait()
	won, refused := "", 0
	for i, err := range errs {
		if err != nil {
			require.ErrorIs(c.t, err, workflow.ErrRunExists)
			refused++
			continue
		}
		if won == "" {
			won = runs[i]
			require.Equal(c.t, fmt.Sprint(i%2), string(c.end(won).Output))
		}
		require.Equal(c.t, won, runs[i])
	}
	require.Equal(c.t, starters/2, refused, "those of one input")
}

func (c contract) stop() {
	run := c.start(c.put(`"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Wait", "Seconds": 3600, "End": true}`), `{}`)
	c.entered(run, "B")
	require.NoError(c.t, c.engine.Stop(c.t.Context(), run, "Enough", "by hand"))
	r := c.end(run)
	require.Equal(c.t, workflow.Aborted, r.Status)
	require.False(c.t, r.Ended.IsZero())
	require.Nil(c.t, r.Output)
	if c.not["reason of a stop"] == "" {
		require.Equal(c.t, []string{"Enough", "by hand"}, []string{r.Error, r.Cause})
	}
	require.NoError(c.t, c.engine.Stop(c.t.Context(), run, "Again", ""), "it is over")
	require.Equal(c.t, r, c.describe(run))
	require.Equal(c.t, []string{"Pass A entered", "Pass A exited", "Wait B entered"}, told(c.history(run)))
}
