package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func (c contract) pages() {
	run := c.start(c.put(`"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "C"}, "C": {"Type": "Pass", "End": true}`), `{}`)
	c.end(run)
	all := c.history(run)
	require.Len(c.t, all, 6)
	for _, size := range []int{1, 4, 6, 7} {
		var paged []workflow.Step
		for {
			steps, err := c.engine.History(c.t.Context(), run, len(paged), size)
			require.NoError(c.t, err)
			paged = append(paged, steps...)
			if len(steps) < size {
				break
			}
		}
		require.Equal(c.t, all, paged)
	}
}

func (c contract) sizes() {
	machine := c.put(`"A": {"Type": "Pass", "End": true}`)
	text := func(bytes int) string { return `"` + strings.Repeat("é", (bytes-2)/2) + `"` }
	r := c.end(c.start(machine, text(workflow.MaxData)+strings.Repeat(" ", 100)))
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	output := func(run string) string {
		steps := c.history(run)
		return string(steps[len(steps)-1].Output)
	}
	require.JSONEq(c.t, text(workflow.MaxData), output(r.ID))
	name := ident.New()
	_, err := c.engine.Start(c.t.Context(), machine, name, json.RawMessage(text(workflow.MaxData+2)))
	require.ErrorIs(c.t, err, workflow.ErrTooLarge)
	require.NotContains(c.t, err.Error(), "é")
	_, err = c.engine.Start(c.t.Context(), machine, name, json.RawMessage(`1`))
	require.NoError(c.t, err, "the name has not been taken")

	run := c.start(c.put(`"A": `+c.waiting(`"End": true`)), `{}`)
	token := c.task().Token
	require.ErrorIs(c.t, c.engine.Succeed(c.t.Context(), token, json.RawMessage(text(workflow.MaxData+2))), workflow.ErrTooLarge)
	require.NoError(c.t, c.engine.Succeed(c.t.Context(), token, json.RawMessage(text(workflow.MaxData))))
	r = c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, text(workflow.MaxData), output(run))
}

func (c contract) unicode() {
	machine := c.put(`"A": {"Type": "Pass", "Parameters": {"says": "Grüße, 世界 🌍", "heard.$": "$"}, "End": true}`)
	heard, err := json.Marshal("\u2028 \t \\ \" </script> 𝄞 e\u0301 " + "\x7f")
	require.NoError(c.t, err)
	r := c.end(c.start(machine, string(heard)))
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `{"says": "Grüße, 世界 🌍", "heard": `+string(heard)+`}`, string(r.Output))
	require.JSONEq(c.t, string(heard), string(c.history(r.ID)[0].Input))
	for _, data := range []string{``, `{`, `{} {}`, `undefined`, "\"\xff\"", "{\"a\":\"\n\"}"} {
		_, err := c.engine.Start(c.t.Context(), machine, ident.New(), json.RawMessage(data))
		require.ErrorIs(c.t, err, workflow.ErrData, "%q", data)
	}
}

func (c contract) unknown() {
	ctx := c.t.Context()
	run := c.start(c.put(`"A": {"Type": "Pass", "End": true}`), `{}`)
	for _, other := range []string{"", "run", run + "x", strings.Replace(run, ":", "", 1), "arn:aws:states:eu-central-1:123456789012:execution:others-machine:run"} {
		_, err := c.engine.Describe(ctx, other)
		require.ErrorIs(c.t, err, workflow.ErrNoRun, other)
		_, err = c.engine.History(ctx, other, 0, 1)
		require.ErrorIs(c.t, err, workflow.ErrNoRun, other)
		require.ErrorIs(c.t, c.engine.Stop(ctx, other, "", ""), workflow.ErrNoRun, other)
	}
	machine := ident.New()
	_, err := c.engine.Start(ctx, machine, "run", json.RawMessage(`{}`))
	require.ErrorIs(c.t, err, workflow.ErrNoMachine)
	require.ErrorContains(c.t, err, machine)

	machine = c.put(`"A": {"Type": "Pass", "End": true}`)
	for range 2 {
		require.NoError(c.t, c.engine.Delete(ctx, machine))
		_, err = c.engine.Start(ctx, machine, ident.New(), json.RawMessage(`{}`))
		require.ErrorIs(c.t, err, workflow.ErrNoMachine)
	}
}

func (c contract) names() {
	ctx, machine := c.t.Context(), c.put(`"A": {"Type": "Pass", "End": true}`)
	for _, name := range []string{"", "a b", "a/b", "a.b", "a:b", "ä", "a\n", strings.Repeat("n", workflow.MaxName+1)} {
		_, err := c.engine.Start(ctx, machine, name, json.RawMessage(`{}`))
		require.ErrorIs(c.t, err, workflow.ErrName, name)
		_, err = c.engine.Start(ctx, name, "run", json.RawMessage(`{}`))
		require.ErrorIs(c.t, err, workflow.ErrName, name)
		require.ErrorIs(c.t, c.engine.Put(ctx, name, `{}`), workflow.ErrName, name)
		require.ErrorIs(c.t, c.engine.Delete(ctx, name), workflow.ErrName, name)
	}
	longest := strings.Repeat("N-_9", workflow.MaxName/4)
	run, err := c.engine.Start(ctx, machine, longest, json.RawMessage(`{}`))
	require.NoError(c.t, err)
	c.end(run)
	const pass = `{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}`
	require.NoError(c.t, c.engine.Put(ctx, longest[:workflow.MaxMachine], pass))
	require.ErrorIs(c.t, c.engine.Put(ctx, longest[:workflow.MaxMachine+1], pass), workflow.ErrName)
}

func (c contract) definitions() {
	for _, definition := range []string{``, `{}`, `{"StartAt": "A", "States": {"A": {"Type": "Hope", "End": true}}}`, `{"StartAt": "A", "States": {"A": `} {
		machine := ident.New()
		err := c.engine.Put(c.t.Context(), machine, definition)
		require.ErrorIs(c.t, err, workflow.ErrDefinition, definition)
		refused := new(workflow.DefinitionError)
		require.ErrorAs(c.t, err, &refused)
		require.NotEmpty(c.t, refused.Problems)
		require.ErrorContains(c.t, err, refused.Problems[0].Message)
		_, err = c.engine.Start(c.t.Context(), machine, "run", json.RawMessage(`{}`))
		require.ErrorIs(c.t, err, workflow.ErrNoMachine, "nothing was made")
	}
	large := fmt.Sprintf(`{"Comment": %q, "StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}`, strings.Repeat("a", workflow.MaxDefinition))
	require.ErrorIs(c.t, c.engine.Put(c.t.Context(), ident.New(), large), workflow.ErrTooLarge)
}

func (c contract) redefined() {
	machine, define := ident.New(), func(result int) string {
		return fmt.Sprintf(`{"StartAt": "A", "States": {"A": {"Type": "Pass", "Result": %d, "End": true}}}`, result)
	}
	for range 2 {
		require.NoError(c.t, c.engine.Put(c.t.Context(), machine, define(1)))
	}
	require.ErrorIs(c.t, c.engine.Put(c.t.Context(), machine, define(2)), workflow.ErrMachineExists)
	require.Equal(c.t, `1`, string(c.end(c.start(machine, `{}`)).Output))
}

func (c contract) cancelled() {
	machine := c.put(`"A": {"Type": "Pass", "End": true}`)
	run := c.start(machine, `{}`)
	ctx, cancel := context.WithCancel(c.t.Context())
	cancel()
	e, data := c.engine, json.RawMessage(`{}`)
	require.ErrorIs(c.t, e.Put(ctx, machine, `{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}`), context.Canceled)
	require.ErrorIs(c.t, e.Delete(ctx, machine), context.Canceled)
	_, err := e.Start(ctx, machine, "cancelled", data)
	require.ErrorIs(c.t, err, context.Canceled)
	_, err = e.Describe(ctx, run)
	require.ErrorIs(c.t, err, context.Canceled)
	_, err = e.History(ctx, run, 0, 1)
	require.ErrorIs(c.t, err, context.Canceled)
	require.ErrorIs(c.t, e.Stop(ctx, run, "", ""), context.Canceled)
	require.ErrorIs(c.t, e.Succeed(ctx, "token", data), context.Canceled)
	require.ErrorIs(c.t, e.Fail(ctx, "token", "", ""), context.Canceled)
	require.ErrorIs(c.t, e.Heartbeat(ctx, "token"), context.Canceled)
	c.start(machine, `{}`) // it is still there
}

func (c contract) timedOut() {
	machine := ident.New()
	require.NoError(c.t, c.engine.Put(c.t.Context(), machine, `{"StartAt": "A", "TimeoutSeconds": 1, "States": {"A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`))
	run := c.start(machine, `{}`)
	require.Equal(c.t, workflow.TimedOut, c.end(run).Status)
	require.Equal(c.t, []string{"Wait A entered"}, told(c.history(run)))
}
