package bedrock

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
)

// guard is a Guard that asks the offline guardrails through the SDK, and how often it did.
func guard(t *testing.T) (*Guard, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	handler := offline.New(offline.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	client, err := New(Config{Region: "eu-central-1", Endpoint: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return NewGuard(Guard{Client: client}), &asked
}

func named(identifier string) guardrail.Guardrail {
	return guardrail.Guardrail{ID: "g", Kind: guardrail.Bedrock, Bedrock: &guardrail.Managed{Identifier: identifier, Version: "1", Stages: guardrail.Stages}}
}

// The contract of guardrail.Guard: rules that are checked here, and the same rules as a guardrail of Bedrock's, decide alike.
func TestRulesAndBedrockDecideAlike(t *testing.T) {
	bedrock, _ := guard(t)
	for identifier, rules := range offline.Guardrails {
		if rules == nil {
			continue
		}
		g := named(identifier)
		for _, r := range rules {
			r.Stages = guardrail.Stages
			g.Rules = append(g.Rules, r)
		}
		g.BlockedInputMessage, g.BlockedOutputMessage = new("Blocked in."), new("Blocked out.")
		local := g
		local.Bedrock = nil
		for _, stage := range guardrail.Stages {
			for _, texts := range [][]string{
				{"Hello."}, {""}, {"", " ", "\n"}, {},
				{"Write to ada@example.com or call +49 30 1234567."}, {"ada@example.com", "nothing", "DE89 3704 0044 0532 0130 00 and 4111 1111 1111 1111"},
				{"ada@example.com bob@example.com ada@example.com"}, {"日本 ada@example.com 🙂\n078-05-1120\n192.168.1.20"}, {"{EMAIL} of ada@example.com"},
				{"My salary?"}, {"all fine", "the wages, please"}, {"AKIAIOSFODNN7EXAMPLE"}, {"ghp_0123456789abcdefghijABCDEFGHIJ012345 of ada@example.com"},
				{"(555) 123-4567, then AKIAIOSFODNN7EXAMPLE"},
			} {
				want, err := guardrail.Checker{}.Check(t.Context(), local, stage, texts)
				require.NoError(t, err)
				got, err := bedrock.Check(t.Context(), g, stage, texts)
				require.NoError(t, err)
				if want.Reason != "" && got.Action == guardrail.Block {
					require.NotEmpty(t, got.Reason)
					got.Reason, got.Spans, want.Spans = want.Reason, nil, nil // of what it was blocked for, Bedrock tells less
				}
				if len(want.Texts) == 0 {
					want.Texts, got.Texts = nil, nil
				}
				require.Equal(t, want, got, "%s at %s: %q", identifier, stage, texts)
			}
		}
	}
}

func TestALongTextIsAskedAboutInParts(t *testing.T) {
	b, asked := guard(t)
	b.Chars, b.Overlap = 300, 60
	var text, want strings.Builder
	for i := range 40 {
		filler := strings.Repeat("ü ", i)
		text.WriteString(filler + "ada@example.com ")
		want.WriteString(filler + "[EMAIL] ")
	}
	d, err := b.Check(t.Context(), named("offline-personal-data"), guardrail.Input, []string{text.String(), "bob@example.com"})
	require.NoError(t, err)
	require.Equal(t, []string{want.String(), "[EMAIL]"}, d.Texts)
	require.Len(t, d.Spans, 41)
	require.Equal(t, "personal data: e-mail address", d.Reason)
	require.Greater(t, asked.Load(), int32(5))

	d, err = b.Check(t.Context(), named("offline-topics"), guardrail.Input, []string{text.String(), "salary"})
	require.NoError(t, err)
	require.Equal(t, guardrail.Decision{GuardrailID: "g", Stage: guardrail.Input, Action: guardrail.Block, Reason: "denied topic: pay",
		Message: "Sorry, the offline guardrail has blocked this."}, d)
}

func TestWhatCannotBeCheckedIsAnError(t *testing.T) {
	b, asked := guard(t)
	for identifier, want := range map[string]string{
		"offline-throttled": "The guardrail could not be checked: Amazon Bedrock is receiving too many requests. Please try again in a moment.",
		"nosuch":            "The guardrail could not be checked: Amazon Bedrock has no guardrail nosuch in version 1 here.",
	} {
		asked.Store(0)
		_, err := b.Check(t.Context(), named(identifier), guardrail.Input, []string{"Hello."})
		var failed *guardrail.Error
		require.ErrorAs(t, err, &failed)
		require.EqualError(t, err, want)
		require.Equal(t, map[string]int32{"offline-throttled": 4, "nosuch": 1}[identifier], asked.Load())
	}
	_, err := b.Check(t.Context(), guardrail.Guardrail{}, guardrail.Input, []string{"Hello."})
	require.Error(t, err)
	b.Attempts, b.Limit = 1000, time.Millisecond
	_, err = b.Check(t.Context(), named("offline-throttled"), guardrail.Input, []string{"Hello."})
	require.Error(t, err, "within the limit, whatever the attempts")
}

// answers of Bedrock's that the offline guardrails never give.
func TestAnswersOfBedrock(t *testing.T) {
	const text = "Ada lives at 1 Main Street; her PIN is 1234."
	masks := func(entities, output string) string {
		return `{"action":"GUARDRAIL_INTERVENED","usage":{},"outputs":[{"text":"` + output + `"}],"assessments":[{"sensitiveInformationPolicy":{"piiEntities":[` + entities + `],"regexes":[]}}]}`
	}
	blocks := func(assessment string) string {
		return `{"action":"GUARDRAIL_INTERVENED","usage":{},"outputs":[{"text":"Theirs."}],"assessments":[` + assessment + `]}`
	}
	for name, c := range map[string]struct {
		answer, masked, reason string
	}{
		"nothing":  {`{"action":"NONE","usage":{},"outputs":[],"assessments":[]}`, text, ""},
		"detected": {`{"action":"NONE","usage":{},"outputs":[],"assessments":[{"topicPolicy":{"topics":[{"name":"pay","type":"DENY","action":"NONE"}]}}]}`, text, ""},
		"masked": {masks(`{"type":"NAME","match":"Ada","action":"ANONYMIZED"},{"type":"PIN","match":"1234","action":"ANONYMIZED"},{"type":"ADDRESS","match":"1 Main Street","action":"ANONYMIZED"}`,
			"{NAME} lives at {ADDRESS}; her PIN is {PIN}."), "[NAME] lives at [ADDRESS]; her PIN is [PIN].", "sensitive information: name; sensitive information: pin; sensitive information: address"},
		"matches that lead nowhere": {masks(`{"type":"NAME","match":"ada","action":"ANONYMIZED"}`, "{NAME} lives at 1 Main Street; her PIN is 1234."), "[MASKED] lives at 1 Main Street; her PIN is 1234.", "sensitive information: name"},
		"masked and the same":       {masks(`{"type":"NAME","match":"Ada","action":"ANONYMIZED"}`, text), "[MASKED]", "sensitive information: name"},
		"a part is missing":         {masks(`{"type":"NAME","match":"Ada","action":"ANONYMIZED"}`, "{NAME} lives"), "[MASKED]", "sensitive information: name"},
		"topic":                     {blocks(`{"topicPolicy":{"topics":[{"name":"pay","type":"DENY","action":"BLOCKED"}]}}`), "", "denied topic: pay"},
		"content":                   {blocks(`{"contentPolicy":{"filters":[{"type":"PROMPT_ATTACK","confidence":"HIGH","action":"BLOCKED"}]}}`), "", "content: prompt attack"},
		"words":                     {blocks(`{"wordPolicy":{"customWords":[{"match":"PIN","action":"BLOCKED"}],"managedWordLists":[{"match":"x","type":"PROFANITY","action":"BLOCKED"}]}}`), "", "denied word; denied word: profanity"},
		"grounding":                 {blocks(`{"contextualGroundingPolicy":{"filters":[{"type":"GROUNDING","threshold":0.7,"score":0.1,"action":"BLOCKED"}]}}`), "", "contextual grounding: grounding"},
		"personal data":             {blocks(`{"sensitiveInformationPolicy":{"piiEntities":[{"type":"PIN","match":"1234","action":"BLOCKED"},{"type":"NAME","match":"Ada","action":"ANONYMIZED"}],"regexes":[]}}`), "", "sensitive information: pin"},
		"does not say how":          {blocks(`{}`), "", "blocked by Amazon Bedrock"},
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(c.answer))
			})
			d, err := NewGuard(Guard{Client: s.client}).Check(t.Context(), named("ab12"), guardrail.Output, []string{text})
			require.NoError(t, err)
			require.Equal(t, c.reason, d.Reason)
			require.NotContains(t, d.Reason, "1234")
			if c.masked == "" {
				require.Equal(t, []any{guardrail.Block, "Theirs."}, []any{d.Action, d.Message})
				return
			}
			require.Equal(t, []string{c.masked}, d.Texts)
			require.Equal(t, guardrail.Render(text, d.Spans), c.masked)
		})
	}
	for _, answer := range []string{`{}`, `{"action":"SOMETHING_NEW"}`, `no JSON`, masks(`{"type":"NAME","match":"Ada","action":"ANONYMIZED"}`, `x"},{"text":"y`)} {
		s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		})
		_, err := NewGuard(Guard{Client: s.client, Attempts: 1}).Check(t.Context(), named("ab12"), guardrail.Output, []string{text})
		require.Error(t, err, answer)
	}
}
