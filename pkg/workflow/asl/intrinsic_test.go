package asl_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

const intrinsicData = `{"s": "Ü x", "n": 3, "f": 2.5, "t": true, "z": null, "list": [1, 2.0, 2, "2", {"a": 1}, {"a": 1.0}, null], "o": {"b": [1, "x"], "a": {"c": null}},
	"template": "a{}b{}", "json": "{\"a\": [1.0, 12345678901234567890]}", "algorithm": "SHA-1", "empty": [], "nine": [1,2,3,4,5,6,7,8,9],
	"long": "` + long + `"}`

const long = "%LONG%"

// returned is what an intrinsic function returns.
func returned(t testing.TB, call string) (any, *asl.Failure) {
	t.Helper()
	quoted, err := json.Marshal(call)
	require.NoError(t, err)
	s := pass(t, `"Parameters": {"x.$": `+string(quoted)+`}`)
	value, f := s.Input(data(t, strings.Replace(intrinsicData, long, strings.Repeat("é", 10_001), 1)), object())
	if f != nil {
		return nil, f
	}
	return value.(map[string]any)["x"], nil
}

func TestIntrinsicFunctions(t *testing.T) {
	const failed = asl.ErrorIntrinsic
	for call, want := range map[string]string{
		"States.Array()": `[]`,
		"States.Array($.n, 'a', 1.50, true, null,-7)":     `[3,"a",1.50,true,null,-7]`,
		"States.Array( $.o.b[*] , $$.Execution.Input.a )": `[[1,"x"],1]`,
		"States.Array(States.Array(1),States.Array())":    `[[1],[]]`,

		"States.ArrayPartition($.nine, 4)":   `[[1,2,3,4],[5,6,7,8],[9]]`,
		"States.ArrayPartition($.nine, 2.5)": `[[1,2,3],[4,5,6],[7,8,9]]`,
		"States.ArrayPartition($.empty, 1)":  `[]`,
		"States.ArrayPartition($.nine, 0)":   failed,
		"States.ArrayPartition($.nine, -1)":  failed,
		"States.ArrayPartition($.s, 1)":      failed,
		"States.ArrayPartition($.nine, '1')": failed,

		"States.ArrayContains($.list, 2)":               `true`,
		"States.ArrayContains($.list, 1.0)":             `true`,
		"States.ArrayContains($.list, '1')":             `false`,
		"States.ArrayContains($.list, null)":            `true`,
		"States.ArrayContains($.list, $.list[4])":       `true`,
		"States.ArrayContains($.list, $.o)":             `false`,
		"States.ArrayContains($.o, 1)":                  failed,
		"States.ArrayRange(1, 9, 2)":                    `[1,3,5,7,9]`,
		"States.ArrayRange(3, 1, -1)":                   `[3,2,1]`,
		"States.ArrayRange(1, 0, 1)":                    `[]`,
		"States.ArrayRange(5, 5, 7)":                    `[5]`,
		"States.ArrayRange(0.5, 2.4, 1)":                `[1,2]`,
		"States.ArrayRange(1, 9, 0)":                    failed,
		"States.ArrayRange(1, 1001, 1)":                 failed,
		"States.ArrayRange(0, -1000, -1)":               failed,
		"States.ArrayRange(1, 99999999999999999999, 1)": failed,
		"States.ArrayGetItem($.nine, 5)":                `6`,
		"States.ArrayGetItem($.nine, 0.5)":              `2`,
		"States.ArrayGetItem($.nine, 9)":                failed,
		"States.ArrayGetItem($.nine, -1)":               failed,
		"States.ArrayGetItem($.o, 0)":                   failed,
		"States.ArrayLength($.nine)":                    `9`,
		"States.ArrayLength($.empty)":                   `0`,
		"States.ArrayLength($.s)":                       failed,
		"States.ArrayUnique($.list)":                    `[1,2.0,"2",{"a":1},null]`,
		"States.ArrayUnique($.n)":                       failed,

		"States.Base64Encode('Data to encode')":       `"RGF0YSB0byBlbmNvZGU="`,
		"States.Base64Encode($.s)":                    `"w5wgeA=="`,
		"States.Base64Encode($.n)":                    failed,
		"States.Base64Encode($.long)":                 failed,
		"States.Base64Decode('RGF0YSB0byBlbmNvZGU=')": `"Data to encode"`,
		"States.Base64Decode('!')":                    failed,
		"States.Base64Decode('/w==')":                 failed,
		"States.Hash('input data', $.algorithm)":      `"aaff4a450a104cd177d28d18d74485e8cae074b7"`,
		"States.Hash('', 'MD5')":                      `"d41d8cd98f00b204e9800998ecf8427e"`,
		"States.Hash('', 'SHA-256')":                  `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		"States.Hash('', 'SHA-1')":                    `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`,
		"States.Hash('a', 'sha-1')":                   failed,
		"States.Hash($.o, 'SHA-1')":                   failed,
		"States.Hash('a', 1)":                         failed,
		"States.Hash($.long, 'SHA-1')":                failed,

		"States.JsonMerge($.o, $.list[4], false)":             `{"a":1,"b":[1,"x"]}`,
		"States.JsonMerge($.o, $.o, true)":                    failed,
		"States.JsonMerge($.o, $.n, false)":                   failed,
		"States.JsonToString($.o)":                            `"{\"a\":{\"c\":null},\"b\":[1,\"x\"]}"`,
		"States.JsonToString($.f)":                            `"2.5"`,
		"States.JsonToString($.s)":                            `"\"Ü x\""`,
		"States.StringToJson($.json)":                         `{"a":[1.0,12345678901234567890]}`,
		"States.StringToJson('')":                             `null`,
		"States.StringToJson('1 2')":                          failed,
		"States.StringToJson($.o)":                            failed,
		`States.StringToJson('\{\'a\': 1\}')`:                 failed,
		`States.StringToJson('{"a": 1}')`:                     `{"a":1}`,
		"States.StringSplit('This.is+a,test=string', '.+,=')": `["This","is","a","test","string"]`,
		"States.StringSplit('1,,2,', ',')":                    `["1","2"]`,
		"States.StringSplit('a€b', '€')":                      `["a","b"]`,
		"States.StringSplit('', ',')":                         `[]`,
		"States.StringSplit('ab', '')":                        `["ab"]`,
		"States.StringSplit($.n, ',')":                        failed,
		"States.StringSplit('a', 1)":                          failed,
		"States.MathAdd($.n, -1)":                             `2`,
		"States.MathAdd(1.5, -2.5)":                           `0`,
		"States.MathAdd(2147483647, 1)":                       `2147483648`,
		"States.MathAdd(2147483648, 1)":                       failed,
		"States.MathAdd('1', 1)":                              failed,
		"States.MathRandom(5, 5)":                             `5`,
		"States.MathRandom(5, 6)":                             `5`,
		"States.MathRandom(6, 5)":                             failed,
		"States.MathRandom('a', 5)":                           failed,

		"States.Format('{}')":                       failed,
		"States.Format('a', 1)":                     failed,
		"States.Format('plain')":                    `"plain"`,
		"States.Format('{} is {}', $.s, $.n)":       `"Ü x is 3"`,
		"States.Format($.template, 1, '2')":         `"a1b2"`,
		"States.Format($.template, 1)":              failed,
		"States.Format($.n, 1)":                     failed,
		"States.Format('{}', $.o)":                  `"{a={c=null}, b=[1, x]}"`,
		"States.Format('{}{}', true, null)":         `"truenull"`,
		`States.Format('\{\}{}\'\\', 1)`:            `"{}1'\\"`,
		`States.Format('a\n{}', 'b\t"')`:            `"a\nb\t\""`,
		"States.Format('{ } {}', '{}')":             `"{ } {}"`,
		"States.Format(States.Format('\\{\\}'), 1)": `"1"`,
		"States.ArrayGetItem(States.StringSplit('a/b', '/'), States.MathAdd(0, 1))": `"b"`,
		"States.Format('{}', $.nothing)":                                            asl.ErrorRuntime,
		"States.Array($.nothing[0])":                                                asl.ErrorRuntime,
		"States.Array($..nothing)":                                                  `[[]]`,
		"States.Format ('x')":                                                       `"x"`,
	} {
		t.Run(call, func(t *testing.T) { require.Equal(t, want, told(returned(t, call))) })
	}
}

func TestRandomValues(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		value, f := returned(t, "States.MathRandom(-1, 2)")
		require.Nil(t, f)
		seen[text(value)] = true
	}
	require.Equal(t, map[string]bool{"-1": true, "0": true, "1": true}, seen)
	first, _ := returned(t, "States.MathRandom(0, 1000000000, 7)")
	again, _ := returned(t, "States.MathRandom(0, 1000000000, 7)")
	require.Equal(t, first, again)
	a, _ := returned(t, "States.UUID()")
	b, _ := returned(t, "States.UUID()")
	require.NotEqual(t, a, b)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), a)
}

func TestWhatIsNoIntrinsicFunctionIsRefused(t *testing.T) {
	nested := strings.Repeat("States.Array(", 11) + strings.Repeat(")", 11)
	for call, why := range map[string]string{
		"States.Nothing()":     "no intrinsic function",
		"States.Array":         "with its arguments in brackets",
		"States.Array(":        "a path or a value",
		"States.Array(1":       ", or )",
		"States.Array(1,)":     "a path or a value",
		"States.Array(1)x":     "the end of the intrinsic function",
		"States.Array('a)":     "the end of a text",
		`States.Array('a\')`:   "the end of a text",
		`States.Array('\x')`:   "a backslash before",
		"States.Array(\"a\")":  "a path or a value",
		"States.Array(a)":      "a path or a value",
		"States.Array(01)":     "a path or a value",
		"States.Array($.a[)":   "an index",
		"States.Array($a)":     "variables are not supported",
		"States.UUID(1)":       "takes 0 arguments",
		"States.MathAdd(1)":    "takes 2 arguments",
		"States.MathRandom(1)": "takes 2 to 3 arguments",
		"States.Format()":      "takes 1 to",
		"States.Format(1)":     "the first argument of States.Format is a string",
		"States.Hash('a')":     "takes 2 arguments",
		nested:                 "nested deeper than 10",
		nested[len("States.Array(") : len(nested)-1]: "",
	} {
		got := problems(t, around(`"Type": "Pass", "Next": "Z", "Parameters": {"a": [{"x.$": `+strconv.Quote(call)+`}]}`), asl.Dialect{})
		if why == "" {
			require.Empty(t, got, call)
			continue
		}
		require.Len(t, got, 1, call)
		require.True(t, strings.HasPrefix(got[0], "/States/S/Parameters/a/0/x.$: "), got[0])
		require.Contains(t, got[0], why, call)
	}
}
