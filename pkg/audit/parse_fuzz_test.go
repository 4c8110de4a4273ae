package audit

import (
	"bytes"
	"testing"
)

// Whatever ParseEnvelope takes, Append writes again to the byte: no two texts are one envelope.
func FuzzParseEnvelope(f *testing.F) {
	for _, text := range []string{pending, chained, minimal, "{}", "[", `{"actor":"\u0000"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		env, err := ParseEnvelope(text)
		if err != nil {
			return
		}
		again, err := env.Append(nil)
		if err != nil || !bytes.Equal(text, again) {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
		if env.RecordedAt.IsZero() {
			return
		}
		without, err := Pending(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err = WithRecordedAt(nil, without, env.RecordedAt); err != nil || !bytes.Equal(text, again) {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
	})
}

// What hides a secret ends, is stable, and leaves none.
func FuzzClean(f *testing.F) {
	for _, e := range examples {
		f.Add(e.text, 20)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), MaxString)
		got := clean(text, limit)
		if len(got) > limit || hideSecrets(got) != got {
			t.Fatalf("%q became %q", text, got)
		}
		cleanURL(text)
	})
}
