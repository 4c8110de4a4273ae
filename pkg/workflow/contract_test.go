package workflow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const minute, tick = time.Minute, 20 * time.Millisecond

// adapter is an Engine under the contract.
type adapter struct {
	engine workflow.Engine
	// waits are the fields of a Task that hands out a token and waits for it, and has its input within: "Type", "Resource" and "Parameters".
	waits string
	// tokens are those that such tasks have handed out, each with the task's input.
	tokens <-chan handed
	// not are tests and parts of tests that the engine cannot be held to, and why; a test of the adapter stands in for them.
	not map[string]string
}

// parts are what an engine may fail to do within a test.
var parts = []string{"reason of a stop", "cause of a task's failure", "a token an attempt", "late answers"}

type handed struct {
	Token string
	Input json.RawMessage
}

// contract is the test's, with what it makes at the engine.
type contract struct {
	adapter
	t *testing.T
}

func testContract(t *testing.T, a adapter) {
	tested := map[string]func(contract){
		"states in order":         contract.states,
		"branches":                contract.branches,
		"a failure":               contract.failure,
		"a string as output":      contract.stringOutput,
		"a caught failure":        contract.caught,
		"the same run":            contract.sameRun,
		"many start one run":      contract.concurrent,
		"stopping":                contract.stop,
		"a task succeeds":         contract.succeed,
		"a task fails":            contract.fail,
		"a task is tried again":   contract.retry,
		"a task times out":        contract.timeout,
		"tokens":                  contract.badTokens,
		"answers come once":       contract.once,
		"pages of a history":      contract.pages,
		"sizes":                   contract.sizes,
		"any text":                contract.unicode,
		"what is not there":       contract.unknown,
		"names":                   contract.names,
		"definitions":             contract.definitions,
		"another definition":      contract.redefined,
		"a cancelled call":        contract.cancelled,
		"a definition's own time": contract.timedOut,
	}
	for name := range a.not {
		require.Contains(t, append(slices.Collect(maps.Keys(tested)), parts...), name)
	}
	for name, test := range tested {
		if a.not[name] == "" {
			t.Run(name, func(t *testing.T) { test(contract{a, t}) })
		}
	}
}

// put makes a machine of those states; the first is A.
func (c contract) put(states string) (machine string) {
	c.t.Helper()
	machine = ident.New()
	require.NoError(c.t, c.engine.Put(c.t.Context(), machine, fmt.Sprintf(`{"StartAt": "A", "States": {%s}}`, states)))
	return machine
}

func (c contract) start(machine, input string) (run string) {
	c.t.Helper()
	run, err := c.engine.Start(c.t.Context(), machine, ident.New(), json.RawMessage(input))
	require.NoError(c.t, err)
	return run
}

func (c contract) describe(run string) workflow.Run {
	c.t.Helper()
	r, err := c.engine.Describe(c.t.Context(), run)
	require.NoError(c.t, err)
	return r
}

// end waits for a run's.
func (c contract) end(run string) (r workflow.Run) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		r = c.describe(run)
		return r.Status != workflow.Running
	}, minute, tick)
	require.Equal(c.t, run, r.ID)
	require.False(c.t, r.Started.IsZero())
	return r
}

func (c contract) history(run string) []workflow.Step {
	c.t.Helper()
	steps, err := c.engine.History(c.t.Context(), run, 0, 1000)
	require.NoError(c.t, err)
	for i, s := range steps {
		require.Equal(c.t, i+1, s.Seq)
		require.False(c.t, s.At.IsZero())
		entered := steps[s.Visit-1]
		require.Equal(c.t, []any{workflow.StateEntered, s.State, s.Type}, []any{entered.Kind, entered.State, entered.Type})
		require.Equal(c.t, s.Kind == workflow.StateEntered, s.Visit == s.Seq)
		require.Equal(c.t, s.Kind == workflow.StateEntered, s.Input != nil)
		require.Equal(c.t, s.Kind == workflow.StateExited, s.Output != nil)
	}
	return steps
}

// told is a history in short.
func told(steps []workflow.Step) (lines []string) {
	for _, s := range steps {
		line := fmt.Sprintf("%s %s %s", s.Type, s.State, s.Kind)
		if s.Error != "" {
			line += " " + s.Error + ": " + s.Cause
		}
		lines = append(lines, line)
	}
	return lines
}

// task waits for a token.
func (c contract) task() handed {
	c.t.Helper()
	select {
	case h := <-c.tokens:
		return h
	case <-time.After(minute):
		c.t.Fatal("no task has handed out a token")
		return handed{}
	}
}

// entered waits until a run has entered a state.
func (c contract) entered(run, state string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, s := range c.history(run) {
			if s.State == state {
				return true
			}
		}
		return false
	}, minute, tick)
}
