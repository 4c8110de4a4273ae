package invoke_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
)

type pair struct {
	A int    `json:"a"`
	B string `json:"b"`
}

// What one side answers is what the other side reads.
func TestAskReadsWhatCallAnswers(t *testing.T) {
	fails := map[int]error{1: fault.Invalid("a is 1: %s", "Grüße"), 2: errors.New("hunter2"), 3: context.DeadlineExceeded}
	function := handler.Call(func(_ context.Context, in pair) (pair, error) { return pair{in.A + 1, in.B + "!"}, fails[in.A] })
	got, err := invoke.Ask[pair](t.Context(), function.Invoke, pair{7, "Grüße"})
	require.NoError(t, err)
	require.Equal(t, pair{8, "Grüße!"}, got)

	_, err = invoke.Ask[pair](t.Context(), function.Invoke, pair{A: 1})
	require.Equal(t, fault.Invalid("a is 1: Grüße"), err)
	for _, a := range []int{2, 3} {
		_, err = invoke.Ask[pair](t.Context(), function.Invoke, pair{A: a})
		require.Equal(t, fault.New(fault.InternalError, "internal error"), err)
	}
	_, err = invoke.Ask[pair](t.Context(), function.Invoke, "no object")
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
}

func TestAskOfAFunctionThatDoesNotAnswer(t *testing.T) {
	lost := errors.New("connection reset")
	asked := 0
	answer := func(text string, err error) invoke.Function {
		return func(context.Context, []byte) ([]byte, error) { asked++; return []byte(text), err }
	}
	_, err := invoke.Ask[pair](t.Context(), answer("", lost), pair{})
	require.ErrorIs(t, err, lost)
	for _, text := range []string{"", "{}", "null", "[1]", `{"data":{"a":"x"}}`, `{"error`} {
		_, err = invoke.Ask[pair](t.Context(), answer(text, nil), pair{})
		require.Error(t, err, text)
		require.Equal(t, fault.InternalError, fault.From(err).Type, text)
	}
	require.Equal(t, 7, asked, "nobody is asked twice")
	_, err = invoke.Ask[pair](t.Context(), answer("{}", nil), make(chan int))
	require.Error(t, err)
	require.Equal(t, 7, asked)
}
