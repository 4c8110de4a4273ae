package canonical

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What has no canonical form: what is wrong with it, and at which byte. Check and Transform say the same.
func TestRefusedTexts(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	deeper := strings.Repeat(`{"":`, 65) + "0" + strings.Repeat("}", 65)
	for _, c := range []struct {
		text, what string
		at         int
	}{
		// Surrogates: alone, in the wrong order, one of a kind twice, before something else.
		{`"\ud800"`, wrongSurrogate, 1}, {`"\udc00"`, wrongSurrogate, 1}, {`"a\udc00\ud800"`, wrongSurrogate, 2}, {`"\ud800\ud800"`, wrongSurrogate, 1},
		{`"\udc00\udc00"`, wrongSurrogate, 1}, {`"\ud800\u0041"`, wrongSurrogate, 1}, {`"\ud800a"`, wrongSurrogate, 1}, {`"\ud800\n"`, wrongSurrogate, 1},
		{`{"\udead":1}`, wrongSurrogate, 2}, {`"\ud83d\ude0"`, wrongEscape, 7}, {`"\ud83d\ude`, wrongEnd, 11},
		// UTF-8: no such byte, cut short, overlong, an encoded surrogate, beyond U+10FFFF, a byte out of place.
		{"\"\xff\"", wrongUTF8, 1}, {"\"a\xc3\"", wrongUTF8, 2}, {"\"\xc0\xaf\"", wrongUTF8, 1}, {"\"\xed\xa0\x80\"", wrongUTF8, 1}, {"\"\xed\xa0\xbd\xed\xb8\x80\"", wrongUTF8, 1},
		{"\"\xf4\x90\x80\x80\"", wrongUTF8, 1}, {"\"\x80\"", wrongUTF8, 1}, {"{\"\xfe\":1}", wrongUTF8, 2}, {"\"\xe2\x82", wrongUTF8, 1}, {"\"01234567\xe9\"", wrongUTF8, 9},
		// Numbers that are not integers, or not exact in every reader.
		{"1.0", wrongFraction, 0}, {"1e2", wrongFraction, 0}, {"1E2", wrongFraction, 0}, {"0.5", wrongFraction, 0}, {"-0.5", wrongFraction, 0}, {"-0.0", wrongFraction, 0}, {"0e0", wrongFraction, 0},
		{"[7,7.0]", wrongFraction, 3}, {"-0", wrongMinusZero, 0}, {"9007199254740992", wrongMagnitude, 0}, {"9007199254740993", wrongMagnitude, 0},
		{"-9007199254740992", wrongMagnitude, 0}, {"18446744073709551617", wrongMagnitude, 0}, {"100000000000000000", wrongMagnitude, 0},
		{"[1" + strings.Repeat("0", 400) + "]", wrongMagnitude, 1},
		// What is no number at all.
		{"01", wrongNumber, 0}, {"-01", wrongNumber, 0}, {"00", wrongNumber, 0}, {"-", wrongNumber, 0}, {"-a", wrongNumber, 0}, {"+1", wrongByte, 0}, {".5", wrongByte, 0}, {"0x10", wrongTail, 1}, {"1_000", wrongTail, 1},
		{"NaN", wrongByte, 0}, {"Infinity", wrongByte, 0}, {"-Infinity", wrongNumber, 0}, {"nan", wrongByte, 0},
		// Names twice, however they are spelled.
		{`{"a":1,"a":2}`, wrongTwice, 7}, {`{"":{"x":0,"x":0}}`, wrongTwice, 11},
		// Nesting.
		{deep, wrongDepth, 64}, {deeper, wrongDepth, 64 * 4},
		// What is no JSON.
		{"", wrongEnd, 0}, {"[", wrongEnd, 1}, {"{", wrongEnd, 1}, {`{"a"`, wrongEnd, 4}, {`{"a":`, wrongEnd, 5}, {`{"a":1`, wrongEnd, 6}, {`"a`, wrongEnd, 2}, {`"a\`, wrongEnd, 3}, {"[1", wrongEnd, 2},
		{"[1,]", wrongByte, 3}, {"[,1]", wrongByte, 1}, {`{"a":1,}`, wrongByte, 7}, {`{a:1}`, wrongByte, 1}, {`{"a":}`, wrongByte, 5}, {`{"a",1}`, wrongByte, 4}, {`{1:1}`, wrongByte, 1}, {"[1}", wrongByte, 2},
		{"tru", wrongByte, 0}, {"True", wrongByte, 0}, {"nul", wrongByte, 0}, {"falsy", wrongByte, 0}, {"'a'", wrongByte, 0}, {"]", wrongByte, 0}, {"\xef\xbb\xbf{}", wrongByte, 0}, {"// c", wrongByte, 0},
		{"{}{}", wrongTail, 2}, {"1,", wrongTail, 1}, {"nullnull", wrongTail, 4}, {"\"\"\x00", wrongTail, 2},
		{"\"\n\"", wrongControl, 1}, {"\"\x00\"", wrongControl, 1}, {"\"abcdefgh\x1f\"", wrongControl, 9}, {`"\x"`, wrongEscape, 1}, {`"\u00g0"`, wrongEscape, 1}, {`"\U0041"`, wrongEscape, 1}, {`"\u 041"`, wrongEscape, 1},
	} {
		out, err := Transform([]byte("before"), []byte(c.text))
		require.Equal(t, "before", string(out))
		require.Equal(t, &Error{What: c.what, Offset: c.at}, refused(t, err), "%q", c.text)
		e := refused(t, Check([]byte(c.text)))
		if e.What != wrongForm { // a \ud800 is not canonical, whatever follows
			require.Equal(t, &Error{What: c.what, Offset: c.at}, e, "%q", c.text)
		}
	}
}

// What has a canonical form, but another one.
func TestTextsThatAreNotCanonical(t *testing.T) {
	for _, c := range []struct {
		text, what string
		at         int
	}{
		{` 1`, wrongSpace, 0}, {"1\n", wrongSpace, 1}, {`{"a": 1}`, wrongSpace, 5}, {`{ "a":1}`, wrongSpace, 1}, {`[1, 2]`, wrongSpace, 3}, {`[ ]`, wrongSpace, 1}, {`[1 ]`, wrongSpace, 2}, {`{"a" :1}`, wrongSpace, 4},
		{`{"b":1,"a":2}`, wrongOrder, 7}, {`{"a":1,"":2}`, wrongOrder, 7}, {"{\"\ue000\":1,\"\U00010000\":2}", wrongOrder, 9}, {`{"a\n":1,"a\u0001":2}`, wrongOrder, 9}, {`{"a":1,"b":1,"a":2}`, wrongOrder, 13},
		{`"\/"`, wrongForm, 1}, {`"\u0041"`, wrongForm, 1}, {`"\u000a"`, wrongForm, 1}, {`"\u0008"`, wrongForm, 1}, {`"\u001F"`, wrongForm, 1}, {`"\u0022"`, wrongForm, 1}, {`"\u005c"`, wrongForm, 1}, {`"\u007f"`, wrongForm, 1},
		{`"\ud83d\ude00"`, wrongForm, 1}, {`"\u00e9"`, wrongForm, 1}, {`"\u0020"`, wrongForm, 1}, {`"\u100f"`, wrongForm, 1}, {`"\u010f"`, wrongForm, 1},
	} {
		require.Equal(t, &Error{What: c.what, Offset: c.at}, refused(t, Check([]byte(c.text))), "%q", c.text)
		out, err := Transform(nil, []byte(c.text))
		if c.text == `{"a":1,"b":1,"a":2}` {
			require.Equal(t, &Error{What: wrongTwice, Offset: 13}, refused(t, err))
			continue
		}
		require.NoError(t, err)
		require.NoError(t, Check(out))
	}
	// Escapes hide that a name is there twice: Check sees the escape, Transform the name.
	_, err := Transform(nil, []byte(`{"a":1,"\u0061":2}`))
	require.Equal(t, &Error{What: wrongTwice, Offset: 7}, refused(t, err))
	_, err = Transform(nil, []byte(`{"\ud83d\ude00":1, "b":3, "😀":2}`))
	require.Equal(t, &Error{What: wrongTwice, Offset: 26}, refused(t, err))
}

func TestRefusedValues(t *testing.T) {
	nested := any("x")
	for range 65 {
		nested = []any{nested}
	}
	loop := map[string]any{}
	loop["loop"] = loop
	for _, c := range []struct {
		value any
		want  Error
	}{
		{"\xff", Error{What: wrongUTF8}}, {"a\xed\xa0\x80", Error{What: wrongUTF8}}, {map[string]any{"\xff": 1}, Error{What: wrongUTF8, Path: `"\xff"`}},
		{map[string]any{"payload": map[string]any{"list": []any{1, "\xfe"}}}, Error{What: wrongUTF8, Path: "payload.list[1]"}},
		{[]string{"a", "\x80"}, Error{What: wrongUTF8, Path: "[1]"}},
		{math.NaN(), Error{What: wrongNotInteger}}, {math.Inf(1), Error{What: wrongNotInteger}}, {math.Inf(-1), Error{What: wrongNotInteger}}, {0.5, Error{What: wrongNotInteger}},
		{math.Copysign(0, -1), Error{What: wrongMinusZero}}, {float64(1 << 53), Error{What: wrongMagnitude}}, {-math.MaxFloat64, Error{What: wrongMagnitude}},
		{1 << 53, Error{What: wrongMagnitude}}, {int64(math.MinInt64), Error{What: wrongMagnitude}}, {[]any{int64(-1 << 53)}, Error{What: wrongMagnitude, Path: "[0]"}},
		{json.Number("1.0"), Error{What: wrongFraction}}, {json.Number("1e2"), Error{What: wrongFraction}}, {json.Number("-0"), Error{What: wrongMinusZero}}, {json.Number("9007199254740993"), Error{What: wrongMagnitude}},
		{json.Number(""), Error{What: wrongNumber}}, {json.Number("01"), Error{What: wrongNumber}}, {json.Number("1 "), Error{What: wrongNumber}}, {json.Number("1,2"), Error{What: wrongNumber}},
		{Raw(nil), Error{What: wrongRaw}}, {uint(1), Error{What: wrongType + "uint"}}, {map[string]any{"a": float32(1)}, Error{What: wrongType + "float32", Path: "a"}},
		{json.RawMessage("1"), Error{What: wrongType + "json.RawMessage"}}, {[]byte("x"), Error{What: wrongType + "[]uint8"}}, {struct{}{}, Error{What: wrongType + "struct {}"}}, {new(int), Error{What: wrongType + "*int"}},
		{nested, Error{What: wrongDepth, Path: strings.Repeat("[0]", 64)}}, {loop, Error{What: wrongDepth, Path: strings.Repeat("loop.", 63) + "loop"}},
	} {
		c.want.Offset = -1
		out, err := Append([]byte("before"), c.value)
		require.Equal(t, "before", string(out))
		require.Equal(t, &c.want, refused(t, err))
	}
	_, err := AppendString(nil, "\xff")
	require.Equal(t, wrongUTF8, refused(t, err).What)
	_, err = AppendInt(nil, 1<<53)
	require.Equal(t, wrongMagnitude, refused(t, err).What)
}

// A Raw is copied, but cannot smuggle in more nesting than there may be.
func TestRawNesting(t *testing.T) {
	raw := Raw(strings.Repeat("[", 63) + `"]]}}[[[[{{{{\""` + strings.Repeat("]", 63))
	require.NoError(t, Check(raw))
	text, err := Append(nil, []any{raw})
	require.NoError(t, err)
	require.NoError(t, Check(text))
	_, err = Append(nil, []any{[]any{raw}})
	require.Equal(t, &Error{What: wrongDepth, Offset: -1, Path: "[0][0]"}, refused(t, err))
}

func TestErrorsSayWhere(t *testing.T) {
	require.EqualError(t, Check([]byte("[1,-0]")), "canonical JSON: byte 3: -0 is not an integer of its own")
	_, err := Append(nil, map[string]any{"a": []any{map[string]any{"b": 0.5}}})
	require.EqualError(t, err, "canonical JSON: a[0].b: number that is not an integer")
	_, err = Append(nil, 0.5)
	require.EqualError(t, err, "canonical JSON: number that is not an integer")
	_, err = Append(nil, map[string]any{strings.Repeat("long", 100): 0.5})
	require.Less(t, len(err.Error()), 150)
}
