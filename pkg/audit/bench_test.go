package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// sample is an event of about 500 bytes as a mutation records it.
func sample(b *testing.B) (Event, Envelope, []byte) {
	e := Event{TenantID: tenantID, Actor: agentID, ActorType: ActorUser, Source: SourceGraphQL, Type: AgentCreated, AgentID: agentID, RequestID: "JKJaXmPLvHcESHA=",
		Payload: map[string]any{"agentId": agentID, "name": "An agent that answers " + strings.Repeat("x", 20), "templateId": agentID, "systemPrompt": "dropped"}}
	env, err := e.Envelope()
	if err != nil {
		b.Fatal(err)
	}
	env.RecordedAt = ident.Time{Time: time.Now().UTC().Truncate(time.Microsecond)}
	text, err := env.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	b.ResetTimer()
	return e, env, text
}

// BenchmarkSeal is all that recording does before the database: redaction, canonical text, emission MAC.
func BenchmarkSeal(b *testing.B) {
	e, _, _ := sample(b)
	key := make([]byte, 32)
	for b.Loop() {
		env, err := e.Envelope()
		if err != nil {
			b.Fatal(err)
		}
		text, _ := env.Append(nil)
		MAC(key, text)
	}
}

func BenchmarkAppendAndHash(b *testing.B) {
	_, env, text := sample(b)
	prev := Hash(text, Genesis)
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		buffer, _ = env.Append(buffer[:0])
		prev = Hash(buffer, prev)
	}
}

func BenchmarkHash(b *testing.B) {
	_, _, text := sample(b)
	prev := Genesis
	for b.Loop() {
		prev = Hash(text, prev)
	}
}

func BenchmarkParseEnvelope(b *testing.B) {
	_, _, text := sample(b)
	for b.Loop() {
		if _, err := ParseEnvelope(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWithRecordedAt(b *testing.B) {
	_, env, text := sample(b)
	pending, err := Pending(nil, text)
	if err != nil {
		b.Fatal(err)
	}
	buffer := make([]byte, 0, 2048)
	for b.Loop() {
		buffer, _ = WithRecordedAt(buffer[:0], pending, env.RecordedAt)
	}
}

func BenchmarkClean(b *testing.B) {
	for name, text := range map[string]string{"plain": strings.Repeat("an ordinary sentence of a governance file. ", 100), "secret": strings.Repeat("password=hunter2 and so on. ", 150)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				clean(text, MaxString)
			}
		})
	}
}
