package workflow_test

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// waiting is a state that hands out a token and waits for it.
func (c contract) waiting(fields string) string { return "{" + c.waits + ", " + fields + "}" }

func (c contract) succeed() {
	run := c.start(c.put(`"A": `+c.waiting(`"ResultPath": "$.answer", "HeartbeatSeconds": 60, "End": true`)), `{"who": "🌍"}`)
	task := c.task()
	require.JSONEq(c.t, `{"who": "🌍"}`, string(task.Input))
	require.Eventually(c.t, func() bool { // it may begin to wait a moment after it has handed out its token
		err := c.engine.Heartbeat(c.t.Context(), task.Token)
		require.True(c.t, err == nil || errors.Is(err, workflow.ErrNoTask), "%v", err)
		return err == nil
	}, minute, tick)
	require.Equal(c.t, workflow.Running, c.describe(run).Status)
	require.NoError(c.t, c.engine.Succeed(c.t.Context(), task.Token, json.RawMessage(` {"yes": "世界"} `)))
	r := c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `{"who": "🌍", "answer": {"yes": "世界"}}`, string(r.Output))
	require.Equal(c.t, []string{"Task A entered", "Task A exited"}, told(c.history(run)))
}

func (c contract) fail() {
	run := c.start(c.put(`"A": `+c.waiting(`"End": true`)), `{}`)
	long := strings.Repeat("世", workflow.MaxCause)
	require.NoError(c.t, c.engine.Fail(c.t.Context(), c.task().Token, "Denied", long))
	r := c.end(run)
	require.Equal(c.t, []string{"FAILED", "Denied"}, []string{string(r.Status), r.Error})
	steps := c.history(run)
	require.Len(c.t, steps, 2)
	require.Equal(c.t, []any{workflow.StateFailed, "A", "Denied"}, []any{steps[1].Kind, steps[1].State, steps[1].Error})
	if c.not["cause of a task's failure"] == "" {
		require.Equal(c.t, long[:workflow.MaxCause/3*3], r.Cause, "cut, with whole characters")
		require.Equal(c.t, r.Cause, steps[1].Cause)
	}
}

func (c contract) retry() {
	run := c.start(c.put(`"A": `+c.waiting(`"Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 1}], "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "B"}], "End": true`)+
		`, "B": {"Type": "Pass", "Parameters": {"was.$": "$.failure.Error"}, "End": true}`), `{}`)
	first := c.task().Token
	require.NoError(c.t, c.engine.Fail(c.t.Context(), first, "Busy", ""))
	second := c.task().Token
	if c.not["a token an attempt"] == "" {
		require.NotEqual(c.t, first, second)
	}
	require.NoError(c.t, c.engine.Fail(c.t.Context(), second, "Busy", ""))
	r := c.end(run)
	require.Equal(c.t, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	require.JSONEq(c.t, `{"was": "Busy"}`, string(r.Output))
	var kinds []workflow.Kind
	for _, s := range c.history(run) {
		if s.State == "A" {
			require.Equal(c.t, 1, s.Visit)
			kinds = append(kinds, s.Kind)
		}
	}
	require.Equal(c.t, []workflow.Kind{workflow.StateEntered, workflow.StateFailed, workflow.StateRetried, workflow.StateFailed, workflow.StateExited}, kinds)
}

func (c contract) timeout() {
	run := c.start(c.put(`"A": `+c.waiting(`"TimeoutSeconds": 1, "Catch": [{"ErrorEquals": ["States.Timeout"], "Next": "B"}], "End": true`)+
		`, "B": `+c.waiting(`"End": true`)), `{}`)
	late := c.task().Token
	next := c.task().Token // that of B: the run goes on
	if c.not["late answers"] == "" {
		require.ErrorIs(c.t, c.engine.Succeed(c.t.Context(), late, json.RawMessage(`1`)), workflow.ErrTaskOver)
		require.ErrorIs(c.t, c.engine.Heartbeat(c.t.Context(), late), workflow.ErrTaskOver)
	}
	require.NoError(c.t, c.engine.Succeed(c.t.Context(), next, json.RawMessage(`2`)))
	require.Equal(c.t, `2`, string(c.end(run).Output))
	steps := c.history(run)
	require.Equal(c.t, []workflow.Kind{workflow.StateEntered, workflow.StateFailed, workflow.StateExited}, []workflow.Kind{steps[0].Kind, steps[1].Kind, steps[2].Kind})
	require.Equal(c.t, "States.Timeout", steps[1].Error)
}

func (c contract) badTokens() {
	ctx, data := c.t.Context(), json.RawMessage(`{}`)
	for _, token := range []string{"", "token", strings.Repeat("t", workflow.MaxToken), strings.Repeat("t", workflow.MaxToken+1)} {
		for _, err := range []error{c.engine.Succeed(ctx, token, data), c.engine.Fail(ctx, token, "E", ""), c.engine.Heartbeat(ctx, token)} {
			require.ErrorIs(c.t, err, workflow.ErrNoTask)
			if token != "" && token != "token" {
				require.NotContains(c.t, err.Error(), token)
			}
		}
	}
	require.ErrorIs(c.t, c.engine.Succeed(ctx, "token", json.RawMessage(`{`)), workflow.ErrData)
}

func (c contract) once() {
	run := c.start(c.put(`"A": `+c.waiting(`"Next": "B"`)+`, "B": `+c.waiting(`"End": true`)), `{}`)
	first := c.task().Token
	require.NoError(c.t, c.engine.Succeed(c.t.Context(), first, json.RawMessage(`1`)))
	second := c.task().Token
	require.ErrorIs(c.t, c.engine.Succeed(c.t.Context(), first, json.RawMessage(`2`)), workflow.ErrTaskOver)
	require.ErrorIs(c.t, c.engine.Fail(c.t.Context(), first, "E", ""), workflow.ErrTaskOver)
	require.ErrorIs(c.t, c.engine.Heartbeat(c.t.Context(), first), workflow.ErrTaskOver)
	require.NoError(c.t, c.engine.Succeed(c.t.Context(), second, json.RawMessage(`3`)))
	require.Equal(c.t, `3`, string(c.end(run).Output))
}
