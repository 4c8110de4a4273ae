package canonical

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// letters are where mistakes hide: what is escaped, the borders of UTF-8's lengths, of surrogates and of what lies around them.
var letters = []rune("ab<>&/'\"\\\b\t\n\f\r\x00\x01\x1f \x7f\u0080é߿ࠀ\u2028\ud7ff\ue000\ufb33\ufffd\uffff\U00010000😀\U0010ffff")

// texts are strings of these letters, some long enough for the eight-byte steps.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringOfN(rapid.SampledFrom(letters), 0, 20, -1), rapid.String(), rapid.StringMatching(`[a-z_]{0,30}`))
}

// values are what Append takes, with at most this many levels.
func values(levels int) *rapid.Generator[any] {
	integer := rapid.Int64Range(-MaxInteger, MaxInteger)
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), texts().AsAny(), integer.AsAny(), rapid.IntRange(-20, 20).AsAny(),
		rapid.Map(integer, func(n int64) any { return float64(n) }),
		rapid.Map(integer, func(n int64) any { return json.Number(jsonText(n)) }),
		rapid.Map(texts(), func(s string) any { raw, _ := AppendString(nil, s); return Raw(raw) }),
		rapid.SliceOfN(texts(), 0, 5).AsAny(),
	}
	if levels == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars,
		rapid.SliceOfN(values(levels-1), 0, 5).AsAny(),
		rapid.MapOfN(texts(), values(levels-1), 0, 8).AsAny(),
		rapid.MapOfN(texts(), values(0), 20, 30).AsAny(),
		rapid.Map(values(levels-1), func(v any) any { raw, _ := Append(nil, v); return Raw(raw) }),
	)...)
}

func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plainValue is v with the types that encoding/json reads into.
func plainValue(v any) any {
	switch v := v.(type) {
	case int:
		return json.Number(jsonText(v))
	case int64:
		return json.Number(jsonText(v))
	case float64:
		return json.Number(jsonText(int64(v)))
	case Raw:
		return read(v)
	case []string:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainValue(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = plainValue(v[name])
		}
		return object
	}
	return v
}

// read is how encoding/json understands a text, numbers kept as they are written.
func read(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// What Append writes is canonical, says what it was given, is found again by its members, and is what Transform makes of any other spelling.
func TestAppendedIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		text, err := Append(nil, v)
		require.NoError(t, err)
		require.NoError(t, Check(text))
		require.Equal(t, plainValue(v), read(text))

		again, err := Transform(nil, text)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		twice, err := Append(nil, read(text))
		require.NoError(t, err)
		require.Equal(t, string(text), string(twice))
		for _, indent := range []string{"", "\t"} { // encoding/json sorts by bytes, and escapes <, >, &, U+2028
			other, err := json.MarshalIndent(read(text), "", indent)
			require.NoError(t, err)
			again, err = Transform(nil, other)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		}

		if object, ok := read(text).(map[string]any); ok {
			var names []string
			for name, value := range Members(text) {
				names = append(names, Unescape(name))
				require.NoError(t, Check(value))
				require.Equal(t, object[Unescape(name)], read(value))
				s, isString := Unquote(value)
				want, wantString := object[Unescape(name)].(string)
				require.Equal(t, wantString, isString)
				require.Equal(t, want, s)
				n, isInteger := Integer(value)
				number, wantInteger := object[Unescape(name)].(json.Number)
				require.Equal(t, wantInteger, isInteger)
				if isInteger {
					require.Equal(t, number, json.Number(jsonText(n)))
				}
			}
			require.Len(t, names, len(object))
			require.True(t, slices.IsSortedFunc(names, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) }))
		}
	})
}

// The order of names is that of their UTF-16 code units, escaped or not.
func TestOrderIsThatOfUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		if rapid.Bool().Draw(t, "share a beginning") {
			b = a + b
		}
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		require.Equal(t, want < 0, before(a, b))
		require.Equal(t, want > 0, before(b, a))
		x, err := AppendString(nil, a)
		require.NoError(t, err)
		y, err := AppendString(nil, b)
		require.NoError(t, err)
		require.Equal(t, want, compare(x[1:len(x)-1], y[1:len(y)-1]))
	})
}

// Check says yes to exactly the texts that Transform leaves alone, and what both take is JSON to encoding/json too.
func agree(t require.TestingT, text []byte) {
	out, err := Transform(nil, text)
	check := Check(text)
	require.Equal(t, err == nil && bytes.Equal(out, text), check == nil, "%q: %v, %v", text, err, check)
	if err == nil {
		require.NoError(t, Check(out), "%q", text)
		require.True(t, json.Valid(text), "%q", text)
		require.Equal(t, read(text), read(out), "%q", text)
		again, err := Append(nil, read(text))
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
	}
	for range Members(text) { // of whatever text
		continue
	}
}

// One byte changed, taken out or put in.
func TestCheckAgreesWithTransformOnBrokenTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := Append(nil, values(2).Draw(t, "value"))
		require.NoError(t, err)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		b := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte(` "\{}[],:-0123456789.eEutfn`))).Draw(t, "byte")
		agree(t, slices.Replace(slices.Clone(text), at, at+1, b))
		agree(t, slices.Insert(slices.Clone(text), at, b))
		agree(t, slices.Delete(slices.Clone(text), at, at+1))
		agree(t, text[:at])
	})
}

func TestIntegersAtTheBounds(t *testing.T) {
	for _, n := range []int64{0, 1, -1, MaxInteger, -MaxInteger, 999999999999999, 1000000000000000} {
		for _, v := range []any{n, int(n), float64(n), json.Number(jsonText(n))} {
			text, err := Append(nil, v)
			require.NoError(t, err)
			require.Equal(t, jsonText(n), string(text))
			require.NoError(t, Check(text))
			back, ok := Integer(text)
			require.True(t, ok)
			require.Equal(t, n, back)
		}
	}
	for _, text := range []string{"", "-", "1x", `"1"`, "-0", "1.0", "null", "9007199254740992", "1 "} {
		_, ok := Integer([]byte(text))
		require.False(t, ok, text)
	}
	require.EqualValues(t, int64(math.Nextafter(1<<53, 0)), MaxInteger)
}

// FuzzTransform feeds texts of any kind: the corpus is the published vectors and what the libraries get wrong.
func FuzzTransform(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[true,null,"\ud83d\ude00",-12]}`, `"\udc00\ud800"`, "[\"\xff\"]", `{"a":1,"\u0061":2}`, "[-0,1.0,1e2,9007199254740993]", ` [ ] `,
		"{\"\U00010000\":1,\"\ue000\":2}", `{"a\n":1,"a\u0001":2}`, strings.Repeat("[", 65), `"\u001F\/\u0000"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agree(t, text) })
}
