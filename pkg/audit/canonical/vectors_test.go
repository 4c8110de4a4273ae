package canonical

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func vector(t *testing.T, folder, name string) []byte {
	text, err := os.ReadFile(filepath.Join("testdata", "rfc8785", folder, name))
	require.NoError(t, err)
	return text
}

// refused is what an error names, and where.
func refused(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestPublishedVectors(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused string   // the first character of what is refused in the input
		numbers []string // numbers of the input that are no integers, each with the integer that takes its place, and what is published for it
	}{
		{name: "arrays"},
		{name: "french"},
		{name: "structures", refused: "56.0", numbers: []string{"56.0", "56", "56"}},
		{name: "unicode"},
		{name: "values", refused: "333333333.33333329", numbers: []string{
			"333333333.33333329", "3", "333333333.3333333", "1E30", "4", "1e+30", "4.50", "5", "4.5", "2e-3", "6", "0.002", "0.000000000000000000000000001", "7", "1e-27"}},
		{name: "weird"},
	} {
		t.Run(c.name, func(t *testing.T) {
			input, output := vector(t, "input", c.name+".json"), vector(t, "output", c.name+".json")
			inHex, err := hex.DecodeString(strings.Join(strings.Fields(string(vector(t, "outhex", c.name+".txt"))), ""))
			require.NoError(t, err)
			require.Equal(t, inHex, output)
			if c.refused != "" {
				_, err := Transform(nil, input)
				require.Equal(t, &Error{What: wrongFraction, Offset: bytes.Index(input, []byte(c.refused))}, refused(t, err))
			}
			for i := 0; i < len(c.numbers); i += 3 {
				input = bytes.Replace(input, []byte(c.numbers[i]), []byte(c.numbers[i+1]), 1)
				if c.numbers[i+1] != c.numbers[i+2] {
					require.Equal(t, wrongFraction, refused(t, Check(output)).What)
				}
				output = bytes.Replace(output, []byte(c.numbers[i+2]), []byte(c.numbers[i+1]), 1)
			}
			got, err := Transform(nil, input)
			require.NoError(t, err)
			require.Equal(t, string(output), string(got))
			require.NoError(t, Check(output))
			if !bytes.Equal(input, output) {
				require.Error(t, Check(input))
			}
		})
	}
}

// The texts that RFC 8785 itself prints.
func TestTextsOfTheRFC(t *testing.T) {
	for in, want := range map[string]string{
		// §3.2.2, with integers for its numbers; §3.2.3 has it in order.
		`{
       "numbers": [333333333, 1, 4, 2, 0],
       "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
       "literals": [null, true, false]
     }`: `{"literals":[null,true,false],"numbers":[333333333,1,4,2,0],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		// §3.2.3: the names that show the order of UTF-16 code units.
		`{
       "\u20ac": "Euro Sign",
       "\r": "Carriage Return",
       "\ufb33": "Hebrew Letter Dalet With Dagesh",
       "1": "One",
       "\ud83d\ude00": "Emoji: Grinning Face",
       "\u0080": "Control",
       "\u00f6": "Latin Small Letter O With Diaeresis"
     }`: `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		// Appendix B: of its numbers, those that are integers within the bounds; zero has one spelling.
		`[0, 9007199254740991, -9007199254740991]`: `[0,9007199254740991,-9007199254740991]`,
		// §3.2.2.2: what is escaped, and how.
		`"\b\t\n\f\r\"\\\u0000\u001f\u007f\u2028\/"`: `"\b\t\n\f\r\"\\\u0000\u001f` + "\u007f\u2028" + `/"`,
	} {
		got, err := Transform(nil, []byte(in))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.NoError(t, Check(got))
	}
}

// What may stand alone, and how the smallest of everything looks.
func TestAnyValueHasAForm(t *testing.T) {
	for in, want := range map[string]string{
		" null ": "null", "true": "true", "\tfalse\r\n": "false", `""`: `""`, "0": "0", "-1": "-1", "[ ]": "[]", "{ }": "{}", `"é"`: `"é"`, `[[],{}]`: `[[],{}]`,
		`{"b":{"y":1,"x":[{"d":1,"c":2}]},"a":0}`:                   `{"a":0,"b":{"x":[{"c":2,"d":1}],"y":1}}`,
		`{"\u0061":1,"":2}`:                                         `{"":2,"a":1}`,
		`{"a\n":1,"a\u0001":2,"a\"":3,"a":4}`:                       `{"a":4,"a\u0001":2,"a\n":1,"a\"":3}`,
		"{\"\U00010000\":1,\"\uffff\":2,\"\ue000\":3,\"\ud7ff\":4}": "{\"\ud7ff\":4,\"\U00010000\":1,\"\ue000\":3,\"\uffff\":2}",
	} {
		before := []byte("before")
		got, err := Transform(before, []byte(in))
		require.NoError(t, err, in)
		require.Equal(t, "before"+want, string(got))
		require.NoError(t, Check([]byte(want)))
	}
}

// What Append takes, and how each looks.
func TestAppendTypes(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, "null"}, {true, "true"}, {"é\n", `"é\n"`}, {-7, "-7"}, {int64(7), "7"}, {1e3, "1000"}, {json.Number("12"), "12"}, {Raw(`{"a":[]}`), `{"a":[]}`},
		{[]any{1, "a", nil}, `[1,"a",null]`}, {[]string{"b", "a"}, `["b","a"]`}, {map[string]any{"b": 1, "a": Raw("2")}, `{"a":2,"b":1}`},
		{[]any(nil), "[]"}, {[]string(nil), "[]"}, {map[string]any(nil), "{}"}, {map[string]any{"": map[string]any{}}, `{"":{}}`},
	} {
		text, err := Append([]byte("before"), c.value)
		require.NoError(t, err)
		require.Equal(t, "before"+c.want, string(text))
	}
}

// Members stops when it is told to, and finds nothing in what is no object.
func TestMembers(t *testing.T) {
	for name, value := range Members([]byte(`{"a\"b":{"x":["}"]},"c":1}`)) {
		require.Equal(t, `a\"b`, string(name))
		require.Equal(t, `a"b`, Unescape(name))
		require.Equal(t, `{"x":["}"]}`, string(value))
		break
	}
	for _, text := range []string{"", "[]", "{}", `"{"`, "1", "{", `{"`, `{"a`, `{"a"`} {
		for range Members([]byte(text)) {
			require.Fail(t, text)
		}
	}
}
