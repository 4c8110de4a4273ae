package tape

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, text string) *Doc {
	t.Helper()
	var d Doc
	require.NoError(t, d.Parse([]byte(text)), text)
	return &d
}

func TestAppendIsOneSpelling(t *testing.T) {
	for in, want := range map[string]string{
		" [ 1 , -0 , 1.0, 1e3 , 1E-7,1e21, 12345678901234567890 ] ": `[1,0,1,1000,1e-7,1e+21,12345678901234567890]`,
		`"a\u003cb\/\u00e9\ud83d\ude00\u0000\n"`:                    `"a<b/é😀\u0000\n"`,
		`{"a" : {"b":[ ] , "c":{ }}, "d":null,"e":true,"f":false}`:  `{"a":{"b":[],"c":{}},"d":null,"e":true,"f":false}`,
		`1e999`: `null`,
	} {
		d := parse(t, in)
		require.Equal(t, want, string(d.Append(nil, 0)), in)
	}
}

func TestGet(t *testing.T) {
	d := parse(t, `{"one":{"deep":[1,2,3]},"tw\u006f":"x\ty","three":3}`)
	at, ok := d.Get(0, "two")
	require.True(t, ok)
	require.Equal(t, "x\ty", d.Text(at))
	at, ok = d.Get(0, "three")
	require.True(t, ok)
	v, ok := d.Int(at)
	require.True(t, ok)
	require.EqualValues(t, 3, v)
	_, ok = d.Get(0, "deep")
	require.False(t, ok)
	_, ok = d.Get(at, "three")
	require.False(t, ok)
}

func TestRefused(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `[`, `"`, `"\`, `"\u12`, `"\x"`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `[1,]`, `[1 2]`, `01`, `-`, `1.`, `.5`, `1e`, `+1`,
		`NaN`, `tru`, `nul`, `1 2`, `{} x`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xc3\"", `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`,
		strings.Repeat("[", 513) + strings.Repeat("]", 513), "\xef\xbb\xbf{}",
	} {
		var d Doc
		require.Error(t, d.Parse([]byte(text)), "%q", text)
	}
}

func TestInspect(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":{"b":{"c":1}},"d":[]}`:          `{ a: { b: [Object] }, d: [] }`,
		`[1,2,3,4,5,6,7,8,9,10,11]`:           `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... 1 more item]`,
		`[1,2,3,4,5,6,7,8,9,10,11,12]`:        `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... 2 more items]`,
		`"a\"b"`:                              `"a\"b"`,
		`1e999`:                               `Infinity`,
		`null`:                                `null`,
		`"` + strings.Repeat("é", 1000) + `"`: `"` + strings.Repeat("é", 255) + "…",
	} {
		require.Equal(t, want, parse(t, in).Inspect(0), in)
	}
}

// FuzzParse: what Parse accepts, encoding/json accepts too, with the same value.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u00e9\ud83d\ude00"],"b":null}`, `[]`, `"\ud800"`, `-0.0`, `{"a":{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Doc
		if err := d.Parse(b); err != nil {
			return
		}
		require.True(t, json.Valid(b), "%q", b)
		var want, got any
		if json.Unmarshal(b, &want) != nil {
			return // a number beyond float64
		}
		out := d.Append(nil, 0)
		require.NoError(t, json.Unmarshal(out, &got), "%s", out)
		var x, y bytes.Buffer
		require.NoError(t, json.NewEncoder(&x).Encode(want))
		require.NoError(t, json.NewEncoder(&y).Encode(got))
		if d.unique() && !bytes.Contains(x.Bytes(), []byte("-0")) { // JavaScript writes -0 as 0
			require.Equal(t, x.String(), y.String())
		}
		_ = d.Inspect(0)
	})
}

// unique: Get finds every member where it is, so no name occurs twice.
func (d *Doc) unique() bool {
	for at := range d.Nodes {
		if d.Nodes[at].Kind != Object {
			continue
		}
		for i := uint32(at) + 1; i < d.Nodes[at].Next; i = d.Nodes[i+1].Next {
			if found, _ := d.Get(uint32(at), d.Text(i)); found != i+1 {
				return false
			}
		}
	}
	return true
}
