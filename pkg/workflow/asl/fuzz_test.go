package asl_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
	"github.com/agentplatform/agentplatform/schema"
)

// FuzzParse reads whatever there may be without a panic, and steps through each state of what is a definition.
func FuzzParse(f *testing.F) {
	f.Add(whole, store)
	for _, file := range must(fs.Glob(schema.Workflows, "workflow/*")) {
		f.Add(string(must(fs.ReadFile(schema.Workflows, file))), `{"a": [1]}`)
	}
	for _, fields := range []string{
		`"Type": "Pass", "Next": "Z", "InputPath": "$..a[?(@.b == 1.0 && !(@ in [1,'x']) || @ =~ /a.*/i)][0,-1][1:2]['x'].*"`,
		`"Type": "Pass", "Next": "Z", "Parameters": {"x.$": "States.Format('{} \\{', States.JsonToString($), $$.Execution.Id)", "y": [{"z.$": "States.ArrayUnique($.a)"}]}`,
		`"Type": "Choice", "Choices": [{"And": [{"Not": {"Variable": "$.a", "IsPresent": true}}, {"Variable": "$", "StringMatches": "*a\\*"}], "Next": "Z"}]`,
		`"Type": "Wait", "TimestampPath": "$.t", "Next": "Z"`, `"Type": "Wait", "SecondsPath": "$.t", "Next": "Z"`,
		`"Type": "Fail", "ErrorPath": "$.e", "CausePath": "States.Hash('a', 'MD5')"`,
		`"Type": "Map", "ItemsPath": "$.a", "MaxConcurrencyPath": "$.n", "Iterator": {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}, "Next": "Z"`,
		`"Type": "Task", "Resource": "r", "TimeoutSecondsPath": "$.t", "ResultSelector": {"x.$": "$.a"}, "ResultPath": "$.a.b[0]", "Next": "Z"`,
	} {
		f.Add(around(fields), `{"a": [{"b": 1}], "t": 1, "n": 2, "e": "x"}`)
	}
	f.Fuzz(func(t *testing.T, definition, input string) {
		m, err := asl.Parse(definition, asl.Dialect{})
		if err != nil {
			var wrong *workflow.DefinitionError
			require.True(t, errors.As(err, &wrong) || errors.Is(err, workflow.ErrTooLarge))
			return
		}
		raw, err := asl.Decode([]byte(input))
		if err != nil {
			return
		}
		before := text(raw)
		for s := range m.All() {
			step(t, s, raw)
		}
		require.Equal(t, before, text(raw), "data are never changed")
	})
}

// step does all that an engine may with a state.
func step(t *testing.T, s *asl.State, raw any) {
	c := object()
	output := func(result any) {
		if value, f := s.Output(raw, result, c); f == nil {
			again, err := asl.Decode(asl.Encode(value))
			require.NoError(t, err)
			require.Equal(t, text(value), text(again))
		}
	}
	for _, name := range []string{"X", asl.ErrorTimeout} {
		s.Retry(asl.Failure{Error: name}, []int{1, 0}, func() float64 { return 0.9 })
		if next, value, caught, bad := s.Catch(asl.Failure{Error: name}, raw, c); caught {
			require.NotEmpty(t, next)
			require.Nil(t, bad)
			asl.Encode(value)
		}
	}
	input, f := s.Input(raw, c)
	if f != nil {
		require.NotEmpty(t, f.Error)
		return
	}
	switch s.Type {
	case asl.Choice:
		next, f := s.Choose(input, c)
		require.Equal(t, f == nil, next != "")
	case asl.Wait:
		_, _ = s.Until(input, c, time.Unix(0, 0))
	case asl.Task:
		_, _, _ = s.Deadline(input, c)
	case asl.Fail:
		s.Fails(input, c)
		return
	case asl.Map:
		_, _ = s.Concurrency(input, c)
		items, _ := s.Items(input, c)
		for i, item := range items[:min(3, len(items))] {
			_, _ = s.Item(input, i, item, c)
		}
		output(items)
	}
	output(s.Result(input))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
