package text

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestCheck(t *testing.T) {
	for s, ok := range map[string]bool{
		"a": true, "": false, "\n": false, "ü": true, strings.Repeat("x", 10): true, strings.Repeat("x", 11): false,
		"a\x00": false, "\xff": false, "\xed\xa0\x80": false, // NUL; not UTF-8; a surrogate in UTF-8's clothes
	} {
		err := Check("field", s, 1, 10)
		require.Equal(t, ok, err == nil, "%q", s)
		if err != nil {
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
		}
	}
	require.NoError(t, Check("field", "", 0, 10))
	require.NoError(t, CheckOptional("field", nil, 10))
}

func TestCheckJSON(t *testing.T) {
	for s, ok := range map[string]bool{
		`{"a":"\ud83d\ude00"}`: true, `{"a":"\\u0000"}`: true, `{"a":"\\\\u0000"}`: true, `{"\u00e9":1}`: true, `"\u0001"`: true,
		`{"a":"\u0000"}`: false, `{"\u0000":1}`: false, `{"a":"\\\u0000"}`: false,
		`"\ud83d"`: false, `"\ud83dx"`: false, `"\ude00"`: false, `"\ud83d\ud83d\ude00"`: false, `"\ud83d\u0041"`: false, `"\ud83d\\ude00"`: false,
	} {
		require.True(t, json.Valid([]byte(s)), s)
		require.Equal(t, ok, CheckJSON("field", s) == nil, s)
	}
}

// Whatever text a program encodes is accepted, unless it holds NUL.
func TestCheckJSONAcceptsEncodedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		raw, err := json.Marshal(map[string]string{s: s})
		require.NoError(t, err)
		require.Equal(t, !strings.ContainsRune(s, 0), CheckJSON("field", string(raw)) == nil, "%s", raw)
	})
}

func TestPatchTellsNullFromAbsent(t *testing.T) {
	var in struct {
		A, B, C Patch[string]
	}
	require.NoError(t, json.Unmarshal([]byte(`{"A":"x","B":null}`), &in))
	old := "old"
	for _, c := range []struct {
		patch Patch[string]
		want  *string
	}{{in.A, in.A.Value}, {in.B, nil}, {in.C, &old}} {
		got := &old
		c.patch.Apply(&got)
		require.Equal(t, c.want, got)
	}
	require.Equal(t, "x", *in.A.Value)
	raw, err := json.Marshal(struct {
		A Patch[string] `json:"a,omitzero"`
		B Patch[string] `json:"b,omitzero"`
		C Patch[string] `json:"c,omitzero"`
	}{in.A, in.B, in.C})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"x","b":null}`, string(raw))
}

func TestCompactJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{ "b" : [1, {"ü c": null}],` + "\n" + ` "a": "\" x" }`: `{"b":[1,{"ü c":null}],"a":"\" x"}`,
		" true ": "true", `{"a": `: `{"a": `, "": "", "two words": "two words",
	} {
		require.Equal(t, want, CompactJSON(in))
	}
}
