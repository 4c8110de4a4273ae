package asl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

func TestInput(t *testing.T) {
	const raw = `{"a": {"b": 1.0}, "list": [{"n": 1}, {"n": 2}]}`
	for fields, want := range map[string]string{
		``:                                 `{"a":{"b":1.0},"list":[{"n":1},{"n":2}]}`,
		`"InputPath": "$"`:                 `{"a":{"b":1.0},"list":[{"n":1},{"n":2}]}`,
		`"InputPath": "$.a"`:               `{"b":1.0}`,
		`"InputPath": null`:                `{}`,
		`"InputPath": "$.x"`:               asl.ErrorRuntime,
		`"InputPath": "$$.Execution.Name"`: `"run"`,
		`"Parameters": {}`:                 `{}`,
		`"Parameters": {"x": 1.50, "y": {"z": [null, "$.a"]}}`:                                                  `{"x":1.50,"y":{"z":[null,"$.a"]}}`,
		`"Parameters": {"x.$": "$.a.b", "y": {"z.$": "$"}, "l": [1, {"m.$": "$.list[*].n"}]}, "InputPath": "$"`: `{"l":[1,{"m":[1,2]}],"x":1.0,"y":{"z":{"a":{"b":1.0},"list":[{"n":1},{"n":2}]}}}`,
		`"InputPath": "$.a", "Parameters": {"x.$": "$.b", "c.$": "$$.Execution.Input.a"}`:                       `{"c":1,"x":1.0}`,
		`"Parameters": {"x.$": "$.b"}`:               asl.ErrorRuntime,
		`"Parameters": {"x.$": "$$.Nothing"}`:        asl.ErrorRuntime,
		`"Parameters": {"x.$": "States.Array($.b)"}`: asl.ErrorRuntime,
		`"Parameters": {"x.$": "$.b[*]"}`:            asl.ErrorRuntime,
		`"Parameters": {"x.$": "$..nothing"}`:        `{"x":[]}`,
	} {
		t.Run(fields, func(t *testing.T) {
			if fields != "" {
				fields = ", " + fields
			}
			s := state(t, `"Type": "Task", "Resource": "r", "Next": "Z"`+fields)
			require.Equal(t, want, told(s.Input(data(t, raw), object())))
		})
	}
}

func TestOutput(t *testing.T) {
	const raw, result = `{"a": {"b": 1}, "list": [1, 2]}`, `{"r": 1.0, "s": [1, 2]}`
	for fields, want := range map[string]string{
		``:                                  `{"r":1.0,"s":[1,2]}`,
		`"ResultPath": "$"`:                 `{"r":1.0,"s":[1,2]}`,
		`"ResultPath": null`:                `{"a":{"b":1},"list":[1,2]}`,
		`"ResultPath": "$.x"`:               `{"a":{"b":1},"list":[1,2],"x":{"r":1.0,"s":[1,2]}}`,
		`"ResultPath": "$.a"`:               `{"a":{"r":1.0,"s":[1,2]},"list":[1,2]}`,
		`"ResultPath": "$.a.b"`:             `{"a":{"b":{"r":1.0,"s":[1,2]}},"list":[1,2]}`,
		`"ResultPath": "$.a['x y'].z"`:      `{"a":{"b":1,"x y":{"z":{"r":1.0,"s":[1,2]}}},"list":[1,2]}`,
		`"ResultPath": "$.list[1]"`:         `{"a":{"b":1},"list":[1,{"r":1.0,"s":[1,2]}]}`,
		`"ResultPath": "$.list[2]"`:         asl.ErrorResultPath,
		`"ResultPath": "$.list.x"`:          asl.ErrorResultPath,
		`"ResultPath": "$.a[0]"`:            asl.ErrorResultPath,
		`"ResultPath": "$.a.b.c"`:           asl.ErrorResultPath,
		`"OutputPath": "$.r"`:               `1.0`,
		`"OutputPath": null`:                `{}`,
		`"OutputPath": "$.x"`:               asl.ErrorRuntime,
		`"OutputPath": "$$.Execution.Name"`: `"run"`,
		`"ResultSelector": {"x.$": "$.r", "c.$": "$$.State.Name"}`:                        `{"c":"S","x":1.0}`,
		`"ResultSelector": {"x.$": "$.nothing"}`:                                          asl.ErrorRuntime,
		`"ResultSelector": {"x.$": "States.ArrayLength($.r)"}`:                            asl.ErrorIntrinsic,
		`"ResultSelector": {"x.$": "$.s[0]"}, "ResultPath": "$.a.r", "OutputPath": "$.a"`: `{"b":1,"r":{"x":1}}`,
	} {
		t.Run(fields, func(t *testing.T) {
			if fields != "" {
				fields = ", " + fields
			}
			s := state(t, `"Type": "Task", "Resource": "r", "Next": "Z"`+fields)
			in, out := data(t, raw), data(t, result)
			require.Equal(t, want, told(s.Output(in, out, object())))
			require.Equal(t, text(data(t, raw)), text(in), "what was given is not changed")
			require.Equal(t, text(data(t, result)), text(out))
		})
	}
	for _, raw := range []string{`null`, `"text"`, `1`, `[]`} {
		require.Equal(t, asl.ErrorResultPath, told(pass(t, `"ResultPath": "$.x"`).Output(data(t, raw), nil, nil)), raw)
	}
}

func TestPass(t *testing.T) {
	in := data(t, `{"a": 1}`)
	for fields, want := range map[string]string{
		`"Comment": "nothing"`:                                 `{"a":1}`,
		`"Result": null`:                                       `null`,
		`"Result": {"x.$": "$.a"}`:                             `{"x.$":"$.a"}`,
		`"Result": 1.0, "ResultPath": "$.b"`:                   `{"a":1,"b":1.0}`,
		`"Parameters": {"x.$": "$.a"}`:                         `{"x":1}`,
		`"Parameters": {"x.$": "$.a"}, "ResultPath": "$.b"`:    `{"a":1,"b":{"x":1}}`,
		`"Parameters": {"x.$": "$.a"}, "Result": 2`:            `2`,
		`"InputPath": "$.a", "ResultPath": "$.b"`:              `{"a":1,"b":1}`,
		`"InputPath": "$.a", "OutputPath": "$"`:                `1`,
		`"ResultPath": null, "Result": 3, "OutputPath": "$.a"`: `1`,
	} {
		t.Run(fields, func(t *testing.T) {
			s := pass(t, fields)
			input, f := s.Input(in, object())
			require.Nil(t, f)
			require.Equal(t, want, told(s.Output(in, s.Result(input), object())))
		})
	}
}

// States without a result hand on their input.
func TestPathsOfStatesWithoutAResult(t *testing.T) {
	for _, fields := range []string{
		`"Type": "Succeed"`, `"Type": "Wait", "Seconds": 0, "Next": "Z"`, `"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true, "Next": "Z"}], "Default": "Z"`,
	} {
		definition := `{"StartAt": "S", "States": {"S": {` + fields + `, "InputPath": "$.a", "OutputPath": "$.b"}, "Z": {"Type": "Succeed"}}}`
		if fields == `"Type": "Succeed"` {
			definition = `{"StartAt": "S", "States": {"S": {` + fields + `, "InputPath": "$.a", "OutputPath": "$.b"}}}`
		}
		s := parsed(t, definition).States["S"]
		raw := data(t, `{"a": {"b": 1}}`)
		input, f := s.Input(raw, nil)
		require.Nil(t, f)
		require.Equal(t, `1`, told(s.Output(raw, input, nil)))
		require.Equal(t, asl.ErrorRuntime, told(s.Input(data(t, `{}`), nil)))
	}
}

func TestMap(t *testing.T) {
	const inner = `, "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "I", "States": {"I": {"Type": "Succeed"}}}`
	raw := data(t, `{"d": {"list": ["x", "y"], "n": 2, "p": 7}}`)
	s := state(t, `"Type": "Map", "Next": "Z", "InputPath": "$.d", "ItemsPath": "$.list", "MaxConcurrencyPath": "$.n", "ItemSelector":
		{"v.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index", "p.$": "$.p", "f.$": "States.Format('{}', $$.Map.Item.Index)"}`+inner)
	require.NotNil(t, s.Processor.States["I"])
	input, f := s.Input(raw, object())
	require.Nil(t, f)
	require.Equal(t, `{"list":["x","y"],"n":2,"p":7}`, text(input))
	items, f := s.Items(input, object())
	require.Nil(t, f)
	require.Equal(t, `["x","y"]`, text(items))
	n, f := s.Concurrency(input, object())
	require.Nil(t, f)
	require.Equal(t, 2, n)
	c := object()
	require.Equal(t, `{"f":"1","i":1,"p":7,"v":"y"}`, told(s.Item(input, 1, items[1], c)))
	require.Nil(t, c["Map"])
	require.Equal(t, `{"Item":{"Index":1,"Value":"y"}}`, text(asl.ItemContext(c, 1, "y")["Map"]))

	plain := state(t, `"Type": "Map", "Next": "Z", "MaxConcurrency": 3`+inner)
	require.Equal(t, `"y"`, told(plain.Item(raw, 1, "y", nil)))
	_, f = plain.Items(raw, nil)
	require.Equal(t, asl.ErrorRuntime, f.Error)
	items, f = plain.Items([]any{nil}, nil)
	require.Nil(t, f)
	require.Len(t, items, 1)
	n, f = plain.Concurrency(raw, nil)
	require.Nil(t, f)
	require.Equal(t, 3, n)

	older := state(t, `"Type": "Map", "Next": "Z", "ItemsPath": "$.d.list", "Parameters": {"v.$": "$$.Map.Item.Value", "all.$": "$.d.n"},
		"Iterator": {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}`)
	input, f = older.Input(raw, nil)
	require.Nil(t, f)
	require.Equal(t, text(raw), text(input))
	require.Equal(t, `{"all":2,"v":"x"}`, told(older.Item(input, 0, "x", nil)))
	require.Equal(t, asl.ErrorRuntime, told(older.Item(data(t, `{}`), 0, "x", nil)))

	for path, in := range map[string]string{"$.n": `{"n": -1}`, "$.m": `{"m": 1.5}`, "$.o": `{}`, "$.p": `{"p": "1"}`} {
		s := state(t, `"Type": "Map", "Next": "Z", "ItemsPath": "$.x", "MaxConcurrencyPath": "`+path+`"`+inner)
		_, f := s.Concurrency(data(t, in), nil)
		require.Equal(t, asl.ErrorRuntime, f.Error)
		_, f = s.Items(data(t, in), nil)
		require.Equal(t, asl.ErrorRuntime, f.Error)
	}
}
