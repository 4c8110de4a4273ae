package asl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// parsed is a definition without problems.
func parsed(t testing.TB, definition string) *asl.Machine {
	t.Helper()
	m, err := asl.Parse(definition, asl.Dialect{})
	require.NoError(t, err)
	return m
}

// state is a state S with those fields (`"Type": "Pass", …`), which goes on to the state Z, an end, unless it says otherwise.
func state(t testing.TB, fields string) *asl.State {
	t.Helper()
	return parsed(t, around(fields)).States["S"]
}

func around(fields string) string {
	return fmt.Sprintf(`{"StartAt": "S", "States": {"S": {%s}, "Z": {"Type": "Succeed"}}}`, fields)
}

// pass is a Pass state S with those fields.
func pass(t testing.TB, fields string) *asl.State {
	t.Helper()
	return state(t, `"Type": "Pass", "Next": "Z", `+fields)
}

// problems are what is wrong with a definition, as "pointer: message".
func problems(t testing.TB, definition string, d asl.Dialect) (told []string) {
	t.Helper()
	m, err := asl.Parse(definition, d)
	if err == nil {
		return nil
	}
	require.Nil(t, m)
	var wrong *workflow.DefinitionError
	require.True(t, errors.As(err, &wrong), "%v", err)
	require.NotEmpty(t, wrong.Problems)
	for _, p := range wrong.Problems {
		require.NotEmpty(t, p.Code)
		require.NotEmpty(t, p.Message)
		told = append(told, p.Location+": "+p.Message)
	}
	return told
}

// data are Data of a text.
func data(t testing.TB, text string) any {
	t.Helper()
	value, err := asl.Decode(json.RawMessage(text))
	require.NoError(t, err, text)
	return value
}

func text(value any) string { return string(asl.Encode(value)) }

// told is a value's text, or the failure's name.
func told(value any, f *asl.Failure) string {
	if f != nil {
		return f.Error
	}
	return text(value)
}

// object is a context object like an engine's.
func object() asl.Context {
	return asl.Context{
		"Execution":    map[string]any{"Id": "arn:run", "Name": "run", "Input": map[string]any{"a": asl.Number(1)}},
		"State":        map[string]any{"Name": "S", "RetryCount": asl.Number(0)},
		"StateMachine": map[string]any{"Id": "arn:machine", "Name": "machine"},
		"Task":         map[string]any{"Token": "token"},
	}
}
