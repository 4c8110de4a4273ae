package canonical

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"testing"

	cyberphone "github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/require"
)

// envelope is an audit event as the log hashes it, of about 500 bytes.
func envelope(n int) map[string]any {
	return map[string]any{
		"actor": "019a1f7e-8d5c-7b3a-9f10-3b1c5d7e9a" + strconv.Itoa(10+n%90), "actor_type": "user",
		"event_id": "019a1f7e-8d5c-7c01-8000-0000000000" + strconv.Itoa(10+n%90), "event_type": "agent.created", "occurred_at": "2026-10-05T12:00:00.123456Z",
		"payload":     map[string]any{"agentId": "019a1f7e-8d5c-7b3a-9f10-aabbccddeeff", "name": "Zoë's triage \"bot\""},
		"recorded_at": "2026-10-05T12:00:00.223456Z", "redacted_fields": []string{"tone"}, "request_id": "Rx2kpjV3oAMEJ8Q=", "resource_id": "019a1f7e-8d5c-7b3a-9f10-aabbccddeeff",
		"resource_type": "agent", "schema_version": 1, "source": "graphql", "tenant_id": "019a1f7e-1111-7222-8333-444455556666",
	}
}

func envelopeText(tb testing.TB) []byte {
	text, err := Append(nil, envelope(1))
	require.NoError(tb, err)
	return text
}

// BenchmarkEnvelope is what an event costs on one core, with its SHA-256: written from a map, written member by member, checked, or transformed.
func BenchmarkEnvelope(b *testing.B) {
	text := envelopeText(b)
	payload, err := Append(nil, envelope(1)["payload"])
	require.NoError(b, err)
	event := envelope(1)
	buffer := make([]byte, 0, 1024)
	run := func(name string, step func() ([]byte, error)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				out, err := step()
				if err != nil {
					b.Fatal(err)
				}
				_ = sha256.Sum256(out)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
	run("AppendMap", func() ([]byte, error) { return Append(buffer[:0], event) })
	names := []string{"actor", "actor_type", "event_id", "event_type", "occurred_at", "payload", "recorded_at", "request_id", "resource_id", "resource_type", "source", "tenant_id"}
	values := make([]string, len(names))
	for i, name := range names {
		values[i], _ = event[name].(string)
	}
	run("AppendMembers", func() (out []byte, err error) {
		out = buffer[:0]
		out = append(out, '{')
		for i, name := range names {
			out = append(append(append(out, '"'), name...), '"', ':')
			if name == "payload" {
				out = append(out, payload...)
			} else if out, err = AppendString(out, values[i]); err != nil {
				return nil, err
			}
			out = append(out, ',')
		}
		return append(out, `"schema_version":1}`...), nil
	})
	run("Check", func() ([]byte, error) { return text, Check(text) })
	run("Transform", func() ([]byte, error) { return Transform(buffer[:0], text) })
	run("HashOnly", func() ([]byte, error) { return text, nil })
	b.Run("Members", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range Members(text) {
				n++
			}
			if n != 14 {
				b.Fatal(n)
			}
		}
	})
}

// BenchmarkLibrary is the same text through the libraries, with its SHA-256.
func BenchmarkLibrary(b *testing.B) {
	text := envelopeText(b)
	for name, transform := range map[string]func([]byte) ([]byte, error){"gowebpki": jcs.Transform, "cyberphone": cyberphone.Transform, "encoding-json": func(text []byte) ([]byte, error) {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				out, err := transform(text)
				require.NoError(b, err)
				_ = sha256.Sum256(out)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// What is right costs no allocation.
func TestNoAllocations(t *testing.T) {
	text := envelopeText(t)
	event := envelope(1)
	buffer := make([]byte, 0, 1024)
	for name, step := range map[string]func(){
		"Check":        func() { _ = Check(text) },
		"Append":       func() { _, _ = Append(buffer, event) },
		"AppendString": func() { _, _ = AppendString(buffer, "Zoë's \"bot\"") },
		"Members": func() {
			for range Members(text) {
				continue
			}
		},
	} {
		require.Zero(t, testing.AllocsPerRun(100, step), name)
	}
}
