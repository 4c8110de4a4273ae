package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func nested(open, close string, depth int) string {
	return strings.Repeat(open, depth) + strings.Repeat(close, depth)
}

func TestReadPayload(t *testing.T) {
	for _, raw := range []string{
		`{}`, `[]`, " \r\n\t{\"a\" : 1}\n", `[1,"a",null]`, `{"a":{"b":[{}]}}`, `{"a":1,"a":2}`,
		nested("[", "]", 100), nested(`{"a":[`, `]}`, 50), `{"a":` + nested("[", "]", 99) + `}`,
		`{"a":"` + strings.Repeat(`[{`, 500) + `"}`, `{"` + strings.Repeat(`[`, 500) + `":1}`, `["\"[[[\\",` + nested("[", "]", 99) + `]`, `["\\\\\"` + strings.Repeat("[", 200) + `"]`,
		`{"a":"\u0000"}`, `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"😀\u2028"}`, "{\"a\":\"\u2028\u00ad\"}", `{"a":1e400,"b":12345678901234567890,"c":-0.0}`,
	} {
		p, err := ReadPayload([]byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, raw, string(p), "kept to the byte")
	}
	for raw, text := range map[string]string{
		"": "not valid JSON", " \n": "not valid JSON", "\x00": "not valid JSON", "oops": "not valid JSON", `{`: "not valid JSON", `[1,]`: "not valid JSON", `{a:1}`: "not valid JSON",
		`{"a":'b'}`: "not valid JSON", `{"a":01}`: "not valid JSON", `{"a":NaN}`: "not valid JSON", `{} {}`: "not valid JSON", `{}x`: "not valid JSON", "{}\x00": "not valid JSON",
		"\ufeff{}": "not valid JSON", "{\"a\":\"\xff\"}": "not valid JSON", "{\"\xc3\":1}": "not valid JSON", "{\"a\":\"\xed\xa0\x80\"}": "not valid JSON", "{\"a\":\"\n\"}": "not valid JSON",
		`{"a":"\x"}`: "not valid JSON", `{"a":"\u12"}`: "not valid JSON", "\xff\xfe{\x00}\x00": "not valid JSON", "a=1&b=2": "not valid JSON",
		"1": "object or array", `"{}"`: "object or array", "null": "object or array", " true ": "object or array", `"` + strings.Repeat("[", 500) + `"`: "object or array",
		nested("[", "]", 101): "more than 100 levels", `{"a":` + nested("[", "]", 100) + `}`: "more than 100 levels", strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101): "more than 100 levels",
		nested("[", "]", 100_000): "", strings.Repeat("[", 100_000): "not valid JSON", strings.Repeat("[", 1<<20): "not valid JSON", strings.Repeat(`{"a":`, 100_000): "not valid JSON",
	} {
		_, err := ReadPayload([]byte(raw))
		refused(t, err, text)
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"", "a", "!~", `"quoted"`, strings.Repeat("k", 255)} {
		require.NoError(t, CheckKey(key))
	}
	for _, key := range []string{" ", "a b", "a\n", "a\x00", "\x7f", "é", "a\tb", strings.Repeat("k", 256)} {
		refused(t, CheckKey(key), "Idempotency-Key")
	}
}

// depth is how deep a decoded value is nested.
func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, in := range v {
			deepest = max(deepest, depth(in))
		}
	case []any:
		for _, in := range v {
			deepest = max(deepest, depth(in))
		}
	default:
		return 0
	}
	return deepest + 1
}

// What is accepted is one JSON object or array in UTF-8, nested at most 100 deep; what is refused is not, and the caller is told.
func FuzzReadPayload(f *testing.F) {
	for _, seed := range []string{`{}`, ` [1, "a\"[", {"b":null}] `, nested("[", "]", 100), nested("[", "]", 101), `{"a":"\ud800\u0000"}`, `{"a":"\\"}`, `"x"`, "\ufeff{}", "{\"\xff\":1}",
		`{"a":[{"b":["]"]}]}`, `{"a":{"b":1},"a":1}`, `{} []`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ReadPayload(raw)
		if err != nil {
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
		}
		good := utf8.Valid(raw) && json.Valid(raw)
		var v any
		deepest := 0
		if good {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			require.NoError(t, d.Decode(&v))
			deepest, _ = nesting(raw)
			require.GreaterOrEqual(t, deepest, depth(v)) // more where a name comes twice
		}
		require.Equal(t, good && deepest >= 1 && deepest <= maxDepth, err == nil, "%q: %v", raw, err)
		if err == nil {
			require.LessOrEqual(t, depth(v), 100)
			require.Equal(t, raw, []byte(p))
			read, err := readJSON(p)
			require.NoError(t, err)
			require.Equal(t, v, read)
		}
	})
}
