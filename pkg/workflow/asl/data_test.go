package asl_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

func TestWhatIsDecodedIsEncodedAsItWas(t *testing.T) {
	for _, same := range []string{
		`null`, `true`, `false`, `1.0`, `1e5`, `-0`, `123456789012345678901234567890`, `0.1000`, `""`, `"é€😀"`, `"\"\\\n\r\t\b\f\u0001"`, `"<&>"`,
		`[]`, `[1,[2,{}],null]`, `{}`, `{"a":1,"b":{"c":[]}}`, `{"\"":1}`, "\"\u2028\"",
	} {
		require.Equal(t, same, text(data(t, same)))
	}
	require.Equal(t, `{"a":[1,2],"b":"/"}`, text(data(t, " { \"b\" : \"\\/\" , \"a\" : [ 1 , 2 ] } ")))
	require.Equal(t, `{"a":2}`, text(data(t, `{"a":1,"a":2}`)))
	require.Equal(t, `{"Map":1}`, text(asl.Context{"Map": asl.Number(1)}))
	require.Panics(t, func() { asl.Encode(1) })
}

func TestWhatIsNoDataIsNotDecoded(t *testing.T) {
	for _, wrong := range []string{``, ` `, `{`, `{"a":1}}`, `1 2`, `nul`, `01`, `+1`, `'a'`, `[1,]`, "\"\n\"", strings.Repeat("[", asl.MaxDepth+1) + strings.Repeat("]", asl.MaxDepth+1)} {
		_, err := asl.Decode(json.RawMessage(wrong))
		require.Error(t, err, wrong)
	}
	_, err := asl.Decode(json.RawMessage(`"` + strings.Repeat("[", 1000) + `\"[` + `"`))
	require.NoError(t, err)
	data(t, strings.Repeat("[", asl.MaxDepth)+strings.Repeat("]", asl.MaxDepth))
}

// What a state may hand on is what can travel as text: to the byte.
func TestDataAreMeasuredAsTheyAreEncoded(t *testing.T) {
	s := pass(t, `"ResultPath": "$"`)
	for _, value := range []string{`"%"`, `["%",true,false,null,1.50]`, `{"a\n":"%","b":[],"c":{},"\u0001":[{}]}`} {
		empty := len(text(data(t, strings.Replace(value, "%", "", 1))))
		for _, filling := range []string{"x", "é", `\n`, `\u0001`, `\"`} {
			n := (workflow.MaxData - empty) / len(text(filled(t, filling))[2:]) // of the quotes that are left, one
			for _, more := range []int{-1, 0, 1, 2, 3} {
				whole := strings.Replace(value, "%", strings.Repeat(filling, n+more), 1)
				v := data(t, whole)
				_, f := s.Output(nil, v, nil)
				if len(text(v)) <= workflow.MaxData {
					require.Nil(t, f, "%s %d: %d", filling, more, len(text(v)))
				} else {
					require.Equal(t, asl.ErrorDataLimit, f.Error, "%s %d: %d", filling, more, len(text(v)))
				}
			}
		}
	}
}

func filled(t *testing.T, filling string) any { t.Helper(); return data(t, `"`+filling+`"`) }

func TestNumbersAreComparedExactly(t *testing.T) {
	ascending := []string{
		"-1e999999999999999999999", "-123456789012345678901234567891", "-123456789012345678901234567890", "-2", "-1.5", "-1", "-0.1", "-1e-999999999999999999999", "0",
		"1e-400", "0.09", "0.1", "1", "1.0000000000000000000001", "2", "10", "9007199254740992", "9007199254740993", "123456789012345678901234567890",
		"123456789012345678901234567891", "1e400", "1e999999999999999999999",
	}
	less, same := state(t, `"Type": "Choice", "Choices": [{"Variable": "$[0]", "NumericLessThanPath": "$[1]", "Next": "Z"}], "Default": "S"`),
		state(t, `"Type": "Choice", "Choices": [{"Variable": "$[0]", "NumericEqualsPath": "$[1]", "Next": "Z"}], "Default": "S"`)
	for i, a := range ascending {
		for j, b := range ascending {
			pair := []any{json.Number(a), json.Number(b)}
			next, f := less.Choose(pair, nil)
			require.Nil(t, f)
			require.Equal(t, i < j, next == "Z", "%s < %s", a, b)
			next, f = same.Choose(pair, nil)
			require.Nil(t, f)
			require.Equal(t, i == j, next == "Z", "%s = %s", a, b)
		}
	}
	for _, pair := range [][2]string{{"1", "1.0"}, {"1", "10e-1"}, {"100", "1e2"}, {"0", "-0"}, {"0", "0e99"}, {"0.00", "0"}, {"-1.50", "-15E-1"}, {"1e+2", "1e2"}} {
		next, f := same.Choose([]any{json.Number(pair[0]), json.Number(pair[1])}, nil)
		require.Nil(t, f)
		require.Equal(t, "Z", next, "%v", pair)
	}
}
