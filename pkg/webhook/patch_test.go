package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// The examples of RFC 7396, Appendix A, in its order.
func TestMergePatchExamples(t *testing.T) {
	for _, c := range []struct{ original, patch, result string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got, err := mergePatch([]byte(c.original), []byte(c.patch))
		require.NoError(t, err)
		require.JSONEq(t, c.result, string(got), "%s with %s", c.original, c.patch)
	}
	// The document of §3.
	got, err := mergePatch([]byte(`{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}`),
		[]byte(`{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"title":"Hello!","author":{"givenName":"John"},"tags":["example"],"content":"This will be unchanged","phoneNumber":"+01-123-456-7890"}`, string(got))
	_, err = mergePatch([]byte(`{}`), []byte(`{"a":`))
	refused(t, err, "not valid JSON")
}

// patched are the settings as a PATCH makes them.
func patched(t testing.TB, s Settings, patch string) (Settings, error) {
	t.Helper()
	merged, err := s.Merged([]byte(patch))
	require.NoError(t, err)
	var changed Settings
	require.NoError(t, json.Unmarshal(merged, &changed))
	return changed, changed.complete()
}

func TestSettingsMerged(t *testing.T) {
	agentID := ident.New()
	s := Settings{Name: "Orders", Description: new("of the shop"), TargetType: Agent, AgentID: &agentID, Prompt: new("{{payload}}"), Enabled: new(false), RateLimit: new(7),
		Config: map[string]any{"a": map[string]any{"b": json.Number("1"), "c": json.Number("12345678901234567890")}, "keep": "me"}}

	same, err := patched(t, s, `{}`)
	require.NoError(t, err)
	require.Equal(t, "Orders", same.Name)
	require.Equal(t, 7, *same.RateLimit)

	back, err := patched(t, s, `{"description":null,"target_type":null,"prompt":null,"config":null,"enabled":null,"rate_limit":null}`)
	require.NoError(t, err)
	require.Equal(t, Settings{Name: "Orders", TargetType: Agent, AgentID: &agentID, Config: map[string]any{}, Enabled: new(true), RateLimit: new(10)}, back)

	_, err = patched(t, s, `{"name":null}`)
	refused(t, err, "name")
	_, err = patched(t, s, `{"agent_id":null}`)
	refused(t, err, "agent_id is required")

	merged, err := s.Merged([]byte(`{"config":{"a":{"b":null,"d":1e400,"e":{"f":null,"g":1.10}},"keep":"you"}}`))
	require.NoError(t, err)
	var raw struct{ Config json.RawMessage }
	require.NoError(t, json.Unmarshal(merged, &raw))
	require.Equal(t, `{"a":{"c":12345678901234567890,"d":1e400,"e":{"g":1.10}},"keep":"you"}`, string(raw.Config))
}
