package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// What a function's end means to its state, in the words of Lambda and the language.
func TestFunctionErrors(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) {
		c.Functions = func(ctx context.Context, function string, _ []byte) ([]byte, error) {
			switch function {
			case "fails":
				return nil, messages.InvokeResponse_Error{Type: "NotFound", Message: "there is \x00 none"}
			case "wraps":
				return nil, fmt.Errorf("asked: %w", messages.InvokeResponse_Error{Type: "Wrapped"})
			case "unknown":
				return nil, errors.New("no such function")
			case "panics":
				panic("oh")
			case "large":
				return []byte(`"` + strings.Repeat("a", workflow.MaxData) + `"`), nil
			case "text":
				return []byte(`text`), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	w.run(e)
	for function, want := range map[string][2]string{
		"fails":   {"NotFound", `{"errorMessage":"there is \u0000 none","errorType":"NotFound"}`},
		"wraps":   {"Wrapped", `{"errorMessage":"","errorType":"Wrapped"}`},
		"unknown": {"Lambda.Unknown", "no such function"},
		"panics":  {"Lambda.Unknown", "panic: oh"},
		"large":   {"States.DataLimitExceeded", "the data are larger than 262144 bytes"},
		"text":    {"States.Runtime", "the function's answer is not JSON"},
		"slow":    {"States.Timeout", ""},
	} {
		run := w.start(e, w.put(e, `"A": `+task(function, `"TimeoutSeconds": 1, "End": true`)), `1`)
		if function == "slow" {
			w.entered(e, run, "A")
		}
		r := w.end(e, run)
		require.Equal(t, []string{"FAILED", want[0], want[1]}, []string{string(r.Status), r.Error, r.Cause})
		require.Equal(t, []string{"A entered", "A failed " + want[0]}, w.told(e, run))
	}
	run := w.start(e, w.put(e, `"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName.$": "$"}, "End": true}`), `{"n": 1}`)
	require.Equal(t, "Lambda.ResourceNotFoundException", w.end(e, run).Error)
}

// A function gets the state's input, by its ARN; or what Payload says, by its name, and its answer comes as Lambda's Invoke has it.
func TestResources(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) {
		c.Functions = func(_ context.Context, function string, payload []byte) ([]byte, error) {
			return json.Marshal(map[string]any{"function": function, "payload": json.RawMessage(payload)})
		}
	})
	w.run(e)
	invoke := func(parameters string) string {
		return `"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": ` + parameters + `, "End": true}`
	}
	for states, want := range map[string]string{
		`"A": ` + task("f", `"End": true`):                                                                `{"function": "f", "payload": {"n": 1}}`,
		`"A": ` + strings.Replace(task("f", `"End": true`), "test-f", "test-f:$LATEST", 1):                `{"function": "f", "payload": {"n": 1}}`,
		invoke(`{"FunctionName": "test-f", "Payload": {"x.$": "$.n"}}`):                                   `{"ExecutedVersion": "$LATEST", "StatusCode": 200, "Payload": {"function": "f", "payload": {"x": 1}}}`,
		invoke(`{"FunctionName": "arn:aws:lambda:local:000000000000:function:test-f:3"}`):                 `{"ExecutedVersion": "$LATEST", "StatusCode": 200, "Payload": {"function": "f", "payload": {}}}`,
		`"A": ` + task("f", `"ResultSelector": {"all.$": "$.payload"}, "ResultPath": "$.r", "End": true`): `{"n": 1, "r": {"all": {"n": 1}}}`,
	} {
		require.JSONEq(t, want, w.succeeds(e, w.start(e, w.put(e, states), `{"n": 1}`)))
	}
	for _, resource := range []string{"f", "arn:aws:states:::sqs:sendMessage", "arn:aws:lambda:local:000000000000:function:", "arn:aws:states:::lambda:invoke.sync"} {
		err := e.Put(t.Context(), "refused", define(`"A": {"Type": "Task", "Resource": "`+resource+`", "End": true}`))
		require.ErrorIs(t, err, workflow.ErrDefinition, resource)
	}
	require.ErrorContains(t, e.Put(t.Context(), "refused", define(invoke(`{"Payload": {}}`))), "FunctionName")
}

// What the context object says, in a Map's items and in the branches in them, too.
func TestContext(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	machine := w.put(e, `"A": {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Parallel", "End": true, "OutputPath": "$[0]", "Branches": [
		{"StartAt": "C", "States": {"C": {"Type": "Pass", "End": true, "Parameters": {"all.$": "$$"}}}}]}}}, "End": true}`)
	run, err := e.Start(t.Context(), machine, "run", json.RawMessage(`{"items": ["x", {"y": 1.0}]}`))
	require.NoError(t, err)
	at := "2027-03-13T12:00:00.000Z"
	context := func(index int, value string) string {
		return fmt.Sprintf(`{"all": {"Execution": {"Id": %q, "Name": "run", "Input": {"items": ["x", {"y": 1.0}]}, "StartTime": %q, "RoleArn": "arn:aws:iam::000000000000:role/test-workflow"},
			"StateMachine": {"Id": "arn:aws:states:local:000000000000:stateMachine:test-%s", "Name": "test-%s"}, "State": {"Name": "C", "EnteredTime": %q, "RetryCount": 0},
			"Map": {"Item": {"Index": %d, "Value": %s}}}}`, run, at, machine, machine, at, index, value)
	}
	output := w.succeeds(e, run)
	require.JSONEq(t, `[`+context(0, `"x"`)+`, `+context(1, `{"y": 1.0}`)+`]`, output)
	require.Contains(t, output, `{"y":1.0}`, "numbers keep their text")
}

// As many items are under way as the Map says, at most 40; all end in order of their items.
func TestMap(t *testing.T) {
	const items = 200
	w := newWorld(t)
	var under, most atomic.Int32
	e := w.open(func(c *Config) {
		c.Functions = func(_ context.Context, _ string, payload []byte) ([]byte, error) {
			n := under.Add(1)
			for had := most.Load(); n > had && !most.CompareAndSwap(had, n); had = most.Load() {
			}
			<-time.After(time.Millisecond)
			under.Add(-1)
			return payload, nil
		}
	})
	w.run(e)
	input := make([]int, items)
	for i := range input {
		input[i] = i
	}
	text, err := json.Marshal(input)
	require.NoError(t, err)
	for width, allowed := range map[int]int32{0: 40, 1: 1, 3: 3, 1000: 40} {
		most.Store(0)
		run := w.start(e, w.put(e, fmt.Sprintf(`"A": {"Type": "Map", "MaxConcurrency": %d, "End": true, "ItemProcessor": {"StartAt": "B", "States": {"B": %s}}}`, width, task("b", `"End": true`))), string(text))
		require.JSONEq(t, string(text), w.succeeds(e, run))
		require.LessOrEqual(t, most.Load(), allowed)
		require.Len(t, w.told(e, run), 2+2*items)
	}
	require.Equal(t, `[]`, w.succeeds(e, w.start(e, w.put(e, `"A": {"Type": "Map", "End": true, "ItemProcessor": {"StartAt": "B", "States": {"B": {"Type": "Fail"}}}}`), `[]`)))
}

// One failure ends the others; a Map that is tried again begins with its first item.
func TestMapFails(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	run := w.start(e, w.put(e, `"A": {"Type": "Map", "MaxConcurrency": 2, "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 1}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}], "End": true,
		"ItemProcessor": {"StartAt": "B", "States": {"B": `+task("b", `"End": true`)+`}}}, "C": {"Type": "Pass", "End": true}`), `[{"i":0},{"i":1},{"i":2}]`)
	busy := answer{err: messages.InvokeResponse_Error{Type: "Busy", Message: "now"}}
	for range 2 { // attempts
		first, second := w.call(), w.call()
		require.ElementsMatch(t, []any{0.0, 1.0}, []any{first.payload["i"], second.payload["i"]})
		first.answer <- answer{text: `"ok"`}
		third := w.call()
		require.Equal(t, 2.0, third.payload["i"])
		second.answer <- busy
		require.Eventually(t, func() bool { return w.count(`branches where parent is not null`) == 0 }, minute, time.Millisecond)
		third.answer <- answer{text: `"too late"`}
		w.quiet()
		w.pass(time.Second, e)
	}
	require.JSONEq(t, `{"Error": "Busy", "Cause": "{\"errorMessage\":\"now\",\"errorType\":\"Busy\"}"}`, w.succeeds(e, run))
	attempt := []string{"B entered", "B entered", "B exited", "B entered", "B failed Busy", "A failed Busy"}
	want := append([]string{"A entered"}, attempt...)
	want = append(append(append(want, "A retried"), attempt...), "A exited", "C entered", "C exited")
	require.Equal(t, want, w.told(e, run))
}

// What a run makes is at most as large as an input may be, and it makes no more steps than it may.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) { c.Functions = echo })
	w.run(e)
	half := `"` + strings.Repeat("a", workflow.MaxData/2) + `"`
	for _, states := range []string{
		`"A": {"Type": "Pass", "Parameters": {"one.$": "$", "two.$": "$"}, "End": true}`,
		`"A": {"Type": "Pass", "Parameters": {"one.$": "$"}, "Next": "B"}, "B": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "f", "Payload": {"a.$": "$", "b.$": "$"}}, "Next": "C"}, "C": {"Type": "Succeed"}`,
		`"A": {"Type": "Parallel", "ResultSelector": {"n": 1}, "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Pass", "End": true}}}, {"StartAt": "C", "States": {"C": {"Type": "Pass", "End": true}}}], "End": true}`,
	} {
		r := w.end(e, w.start(e, w.put(e, states), half))
		require.Equal(t, []string{"FAILED", "States.DataLimitExceeded"}, []string{string(r.Status), r.Error})
	}
	run := w.start(e, w.put(e, `"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Choice", "Choices": [{"Variable": "$", "NumericEquals": 1, "Next": "A"}], "Default": "C"}, "C": {"Type": "Succeed"}`), `1`)
	r := w.end(e, run)
	require.Equal(t, []string{"FAILED", "States.Runtime", "the run has made as many steps as a run may: 25000"}, []string{string(r.Status), r.Error, r.Cause})
	require.LessOrEqual(t, w.count(`steps`), 25_000+20)
	require.Zero(t, w.count(`branches`))
}

// What a run's steps keep has an end, too, however few they are; what its branches begin with counts.
func TestWhatIsKeptOfARunIsBounded(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) { c.Functions = echo })
	e.room = 1 << 20
	w.run(e)
	large := `"` + strings.Repeat("a", 100<<10) + `"`
	for _, states := range []string{
		`"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Choice", "Choices": [{"Variable": "$", "NumericEquals": 1, "Next": "C"}], "Default": "A"}, "C": {"Type": "Succeed"}`,
		`"A": {"Type": "Pass", "Result": [1,2,3,4,5,6,7,8,9,10,11], "ResultPath": "$.items", "Next": "B"}, "B": {"Type": "Map", "ItemsPath": "$.items", "ItemSelector": {"a.$": "$.a"},
			"ItemProcessor": {"StartAt": "C", "States": {"C": {"Type": "Pass", "Result": 1, "End": true}}}, "End": true}`,
	} {
		input := large
		if strings.Contains(states, "Map") {
			input = `{"a":` + large + `}`
		}
		r := w.end(e, w.start(e, w.put(e, states), input))
		require.Equal(t, []string{"FAILED", "States.Runtime", "the steps of the run have more data than a run may have, in bytes: 1048576"}, []string{string(r.Status), r.Error, r.Cause})
		require.Zero(t, w.count(`branches`))
	}
	require.LessOrEqual(t, w.count(`steps`), 20)
	w.succeeds(e, w.start(e, w.put(e, `"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Succeed"}`), large))
}

// What cannot be read or kept ends its run, and no other's.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) { c.Functions = echo })
	pass := w.put(e, `"A": {"Type": "Pass", "End": true}`)
	deep := w.start(e, pass, strings.Repeat("[", 501)+strings.Repeat("]", 501))
	other := w.start(e, w.put(e, `"A": {"Type": "Pass", "Result": 1, "End": true}`), `1`)
	_, err := w.super.Exec(t.Context(), `update local_workflow.definitions set text = '{}' where id = (select definition from local_workflow.runs where id = 2)`)
	require.NoError(t, err)
	fine := w.start(e, pass, `1`)
	w.run(e)
	require.Equal(t, `1`, w.succeeds(e, fine))
	for _, run := range []string{deep, other} {
		r := w.end(e, run)
		require.Equal(t, []string{"FAILED", "States.Runtime", "the run's data cannot be read or kept"}, []string{string(r.Status), r.Error, r.Cause})
	}
	require.ErrorIs(t, e.Put(t.Context(), "nul", `{"StartAt": "A\u0000", "States": {"A\u0000": {"Type": "Succeed"}}}`), workflow.ErrDefinition)
}
