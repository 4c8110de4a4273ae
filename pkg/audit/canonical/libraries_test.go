package canonical

import (
	"testing"

	cyberphone "github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
)

// Where the libraries, given the same text, write what they should refuse, or the bytes of another document. Each line is refused here. "error" is a library that
// refuses too.
//
//   - Both turn each number into a double and write that, as RFC 8785 has it: integers beyond 2⁵³ become their neighbours, and 1.0, 1e2 and -0 become 1, 100
//     and 0. Each of these has the bytes of another document, so that a log which canonicalizes again when it verifies cannot tell them apart.
//   - cyberphone passes invalid UTF-8 through (issue 36), turns surrogates that are no pair into U+FFFD (issue 37), reads numbers with Go's grammar instead
//     of JSON's, and takes no string, number or literal that stands alone.
//   - gowebpki had the first two of these faults as well (its issue 5); v1.0.2 has not.
func TestWhereLibrariesAreWrong(t *testing.T) {
	for _, c := range []struct{ text, gowebpki, cyberphone, ours string }{
		{`[9007199254740993]`, `[9007199254740992]`, `[9007199254740992]`, wrongMagnitude},
		{`[-9007199254740993]`, `[-9007199254740992]`, `[-9007199254740992]`, wrongMagnitude},
		{`[18446744073709551615]`, `[18446744073709552000]`, `[18446744073709552000]`, wrongMagnitude},
		{`[1.0]`, `[1]`, `[1]`, wrongFraction},
		{`[1e2]`, `[100]`, `[100]`, wrongFraction},
		{`[0.99999999999999999]`, `[1]`, `[1]`, wrongFraction},
		{`[1e-400]`, `[0]`, `[0]`, wrongFraction},
		{`[-0]`, `[0]`, `[0]`, wrongMinusZero},
		{`["\udc00\ud800"]`, "error", "[\"\ufffd\"]", wrongSurrogate},
		{`["\ud800\ud800"]`, "error", "[\"\ufffd\"]", wrongSurrogate},
		{`["\ud800\u0041"]`, "error", "[\"\ufffd\"]", wrongSurrogate},
		{`{"\udc00\udc00":1}`, "error", "{\"\ufffd\":1}", wrongSurrogate},
		{"[\"\xff\"]", "error", "[\"\xff\"]", wrongUTF8},
		{"[\"\xed\xa0\x80\"]", "error", "[\"\xed\xa0\x80\"]", wrongUTF8},
		{"[\"\xc0\xaf\"]", "error", "[\"\xc0\xaf\"]", wrongUTF8},
		{"{\"\xfe\":1,\"\xff\":2}", "error", "error", wrongUTF8}, // cyberphone: the same name twice, as both are U+FFFD when it sorts
		{`[01]`, "error", `[1]`, wrongNumber},
		{`[+1]`, "error", `[1]`, wrongByte},
		{`[.5]`, "error", `[0.5]`, wrongByte},
		{`[1.]`, "error", `[1]`, wrongFraction},
		{`[0x1p4]`, "error", `[16]`, wrongByte},
		{`[0x_1p4]`, "error", `[16]`, wrongByte},
		{`{"a":1,"a":2}`, "error", "error", wrongTwice},
		{`[NaN]`, "error", "error", wrongByte},
		{`[Infinity]`, "error", "error", wrongByte},
	} {
		require.Equal(t, c.gowebpki, result(jcs.Transform([]byte(c.text))), "gowebpki: %q", c.text)
		require.Equal(t, c.cyberphone, result(cyberphone.Transform([]byte(c.text))), "cyberphone: %q", c.text)
		_, err := Transform(nil, []byte(c.text))
		require.Equal(t, c.ours, refused(t, err).What, "%q", c.text)
		require.Error(t, Check([]byte(c.text)))
	}
	for _, text := range []string{"null", "true", "12", `"a"`} { // canonical, and not for cyberphone
		require.NoError(t, Check([]byte(text)))
		require.Equal(t, text, result(jcs.Transform([]byte(text))))
		require.Equal(t, "error", result(cyberphone.Transform([]byte(text))))
	}
}

func result(text []byte, err error) string {
	if err != nil {
		return "error"
	}
	return string(text)
}

// Beyond what a reader may nest there is nothing to compare: gowebpki goes on to 10,000, cyberphone until the stack is full.
func TestLibrariesNestDeeper(t *testing.T) {
	deep := []byte{}
	for range MaxDepth + 1 {
		deep = append(deep, '[')
	}
	for range MaxDepth + 1 {
		deep = append(deep, ']')
	}
	require.NoError(t, Check(deep[1:len(deep)-1]))
	require.Equal(t, wrongDepth, refused(t, Check(deep)).What)
	require.Equal(t, string(deep), result(jcs.Transform(deep)))
	require.Equal(t, string(deep), result(cyberphone.Transform(deep)))
}
