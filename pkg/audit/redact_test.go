package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// examples are texts that give access, none of them real, each with the part that must not be seen. They are put together here so that no
// scanner takes this file for a leak.
var examples = []struct{ text, hidden string }{
	{"AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7"},
	{"key ASIA" + "IOSFODNN7EXAMPLE9 of", "IOSFODNN7"},
	{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"},
	{"Authorization: Bearer abcdefgh.ijkl-mnop_1234", "abcdefgh"},
	{"bearer\nabcdefghijkl", "abcdefgh"},
	{"Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpw"},
	{"eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJz"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n", "MIIE"},
	{"-----BEGIN " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA and no end", "MIIE"},
	{"ghp_" + strings.Repeat("a1", 18), "a1a1"},
	{"github_pat_" + strings.Repeat("a1", 20), "a1a1"},
	{"glpat-" + strings.Repeat("a1", 10), "a1a1"},
	{"xoxb-" + "123456789012-abcdef", "123456"},
	{"https://hooks.slack.com/services/" + "T000/B000/XXXX", "B000"},
	{"sk-" + "ant-api03-" + strings.Repeat("a1", 20), "a1a1"},
	{"sk_" + "live_" + strings.Repeat("a1", 12), "a1a1"},
	{"AIza" + strings.Repeat("a1", 18), "a1a1"},
	{"npm_" + strings.Repeat("a1", 18), "a1a1"},
	{"hf_" + strings.Repeat("a1", 18), "a1a1"},
	{"lin_api_" + strings.Repeat("a1", 18), "a1a1"},
	{"password=hunter2", "hunter2"},
	{`{"password": "hunter2 and more"}`, "hunter2"},
	{`{\"api_key\":\"hunter2\"}`, "hunter2"},
	{"Client-Secret: hunter2", "hunter2"},
	{"PASSWD='hunter2", "hunter2"},
	{"postgres://app:hunter2@db/agent", "hunter2"},
	{"https://x.test/?sig=hunter2&a=1", "hunter2"},
	{"pass\x00word=hun\x7fter2", "hunter2"},
	{"password=AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7"},
}

// plain are texts that stay as they are.
var plain = []string{
	"", "Ada", "an ordinary sentence, with punctuation: and a colon", tenantID, strings.Repeat("a1", 32), "owner@acme.test", "10.0.0.1", "2001:db8::1",
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36", "risk-management-system-number-one",
	"https://mcp.acme.test/v1/tools", "日本語 🙂", "mcp:tools.read", "GUARDRAILS.md", "password", "basic authentication failed",
}

func TestSecretsAreHidden(t *testing.T) {
	for _, e := range examples {
		for _, text := range []string{e.text, "before " + e.text + " after", strings.Repeat("x ", 50) + e.text} {
			got := clean(text, MaxString)
			require.NotContains(t, got, e.hidden, text)
			require.Contains(t, got, redacted, text)
			require.Equal(t, got, clean(got, MaxString), "clean text stays as it is")
		}
	}
	for _, text := range plain {
		require.Equal(t, text, clean(text, MaxString))
	}
}

func TestCleanCuts(t *testing.T) {
	require.Equal(t, strings.Repeat("é", 10), clean(strings.Repeat("é", 11), 21))
	require.Equal(t, "ab", clean("a\x00\x1f\x7f\u0080\u009fb", 10))
	require.Equal(t, "a\u00a0b", clean("a\u00a0b", 10))
	long := clean("password=hunter2 "+strings.Repeat("a", 2*MaxString), MaxString)
	require.Len(t, long, MaxString)
	require.True(t, strings.HasPrefix(long, "[redacted] a"))
}

func TestURLsLoseWhatGivesAccess(t *testing.T) {
	for url, want := range map[string]string{
		"https://mcp.acme.test/v1?x=1&y=a%20b":                                 "https://mcp.acme.test/v1?x=1&y=a%20b",
		"https://ada:hunter2@mcp.acme.test/v1":                                 "https://mcp.acme.test/v1",
		"https://hunter2@mcp.acme.test":                                        "https://mcp.acme.test",
		"https://mcp.acme.test/?token=hunter2&x=1&API_KEY=hunter2;sig=hunter2": "https://mcp.acme.test/?token=&x=1&API_KEY=&sig=",
		"https://mcp.acme.test/?%74oken=hunter2":                               "https://mcp.acme.test/?%74oken=",
		"https://mcp.acme.test/?X-Amz-Signature=hunter2&X-Amz-Credential=hu2":  "https://mcp.acme.test/?X-Amz-Signature=&X-Amz-Credential=",
		"https://mcp.acme.test/?q=AKIA" + "IOSFODNN7EXAMPLE":                   "https://mcp.acme.test/?q=",
		"https://mcp.acme.test/?q=%41KIA" + "IOSFODNN7EXAMPLE":                 "https://mcp.acme.test/?q=",
		"https://mcp.acme.test/?a=%zz&b=1":                                     "https://mcp.acme.test/?b=1",
		"https://mcp.acme.test/#access_token=hunter2":                          "https://mcp.acme.test/",
		"https://mcp.acme.test/a/ghp_" + strings.Repeat("a1", 18):              "https://mcp.acme.test/%5Bredacted%5D",
		"https://mcp.acme.test/a/%67hp_" + strings.Repeat("a1", 18) + "?x=1":   "https://mcp.acme.test/%5Bredacted%5D?x=1",
		"https://hooks.slack.com/services/" + "T000/B000/XXXX":                 "https://[redacted]",
		"ada:hunter2@mcp.acme.test":                                            redacted,
		"//ada:hunter2@mcp.acme.test":                                          redacted,
		"mailto:ada@acme.test":                                                 redacted,
		"https://a b@c/":                                                       redacted,
		"ht\ntps://ada:hunter2@mcp.acme.test/\x00v1":                           "https://mcp.acme.test/v1",
		"": redacted,
		"https://mcp.acme.test/" + strings.Repeat("a", 2*MaxString) + "?token=": "https://mcp.acme.test/" + strings.Repeat("a", MaxString-22),
	} {
		require.Equal(t, want, cleanURL(url), url)
	}
}

func TestOnlyListedFieldsOfTheRightShapeAreKept(t *testing.T) {
	type role string
	text, nothing := "Ada", (*string)(nil)
	for _, c := range []struct {
		typ     Type
		payload map[string]any
		kept    string
		removed []string
	}{
		{AgentCreated, nil, `{}`, nil},
		{AgentCreated, map[string]any{"agentId": &text, "name": nothing, "templateId": nil, "Name": "Ada", "": 1}, `{"agentId":"Ada"}`, []string{"", "Name"}},
		{AgentCreated, map[string]any{"name": map[string]any{"ssn": "1"}, "agentId": []any{"a"}}, `{}`, []string{"agentId", "name"}},
		{UserCreated, map[string]any{"role": role("admin"), "email": true, "userId": json.Number("-7")}, `{"email":true,"role":"admin","userId":-7}`, nil},
		{AgentSkillsChanged, map[string]any{"addedSkills": []role{"a", "b"}, "removedSkills": []any{}}, `{"addedSkills":["a","b"],"removedSkills":[]}`, nil},
		{AgentSkillsChanged, map[string]any{"addedSkills": []any{"a", map[string]any{"b": 1}}, "removedSkills": "c"}, `{"removedSkills":"c"}`, []string{"addedSkills"}},
		{ToolServerAdded, map[string]any{"url": "https://u:p@x.test/", "scopes": []string{"token=hunter2"}}, `{"scopes":["[redacted]"],"url":"https://x.test/"}`, nil},
		{ToolServerAdded, map[string]any{"url": 7}, `{}`, []string{"url"}},
		{ExportInitiated, map[string]any{"filter": map[string]any{"type": "agent.created", "list": []any{nil, 1.0, map[string]string{"password": "hunter2", "url": "https://u:p@x.test/"}}}},
			`{"filter":{"list":[null,1,{"password":"[redacted]","url":"https://x.test/"}],"type":"agent.created"}}`, nil},
		{ExportInitiated, map[string]any{"filter": map[string]any{"a": 1, "a\x00": 2, "\x01a": 3}}, `{"filter":{"a":3}}`, []string{"filter.a"}},
		{ExportInitiated, map[string]any{"filter": `{"token":"hunter2"}`, "password=hunter2": 1, "x\x00y": 1}, `{"filter":"{\"[redacted]}"}`, []string{"[redacted]", "xy"}},
	} {
		env, err := Event{TenantID: tenantID, Actor: "a", ActorType: ActorUser, Source: SourceGraphQL, Type: c.typ, Payload: c.payload}.Envelope()
		require.NoError(t, err)
		require.Equal(t, c.kept, string(env.Payload))
		require.Equal(t, c.removed, slices.Clip(env.RedactedFields))
	}
	many := map[string]any{}
	for i := range 1000 {
		many[strings.Repeat("é", 40)+string(rune('a'+i))] = i
		many[string(rune('a'+i))] = i
	}
	env, err := Event{TenantID: tenantID, Actor: "a", ActorType: ActorUser, Source: SourceGraphQL, Type: AgentCreated, Payload: many}.Envelope()
	require.NoError(t, err)
	require.Len(t, env.RedactedFields, maxRemoved)
	for _, name := range env.RedactedFields {
		require.LessOrEqual(t, len(name), maxName)
	}
}

const marker = "unlisted-value" // in everything that must not be kept

// drawn is a payload with listed and other fields, secrets and control characters at any depth.
func drawn(t *rapid.T, typ Type) map[string]any {
	text := rapid.Custom(func(t *rapid.T) string {
		s := rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "with a secret") {
			s += " " + rapid.SampledFrom(examples).Draw(t, "secret").text
		}
		if rapid.Bool().Draw(t, "with control characters") {
			s += rapid.SampledFrom([]string{"\x00", "\n", "\x1b[31m", "\x7f", "\u0085"}).Draw(t, "control") + rapid.String().Draw(t, "rest")
		}
		return s
	})
	var value func(depth int, mark string) *rapid.Generator[any]
	value = func(depth int, mark string) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			kinds := 4
			if depth > 0 {
				kinds = 6
			}
			switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
			case 0, 1:
				return text.Draw(t, "string") + mark
			case 2:
				return rapid.Int64Range(-canonical.MaxInteger, canonical.MaxInteger).Draw(t, "integer")
			case 3:
				return rapid.Bool().Draw(t, "boolean")
			case 4:
				return rapid.SliceOfN(value(depth-1, mark), 0, 4).Draw(t, "list")
			}
			return rapid.MapOfN(text, value(depth-1, mark), 0, 4).Draw(t, "object")
		})
	}
	payload := map[string]any{}
	for name, s := range rules[typ] {
		mark := marker // in a scalar's place, whatever is nested is not listed
		if s == tree {
			mark = ""
		}
		if v := value(3, mark).Draw(t, name); v != nil {
			if text, ok := v.(string); ok {
				v = strings.TrimSuffix(text, mark)
			}
			if list, ok := v.([]any); ok && s == scalars { // listed as they are
				for i := range list {
					if text, ok := list[i].(string); ok {
						list[i] = strings.TrimSuffix(text, mark)
					}
				}
			}
			payload[name] = v
		}
	}
	for name, v := range rapid.MapOfN(text, value(3, marker), 0, 5).Draw(t, "others") {
		if _, listed := rules[typ][name]; !listed {
			payload[name] = v
		}
	}
	return payload
}

func TestNothingUnlistedAndNoSecretReachesTheEnvelope(t *testing.T) {
	recorded := slices.DeleteFunc(Types(), Type.Reserved)
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(recorded).Draw(t, "type")
		payload := drawn(t, typ)
		secret := rapid.SampledFrom(examples).Draw(t, "secret")
		env, err := Event{TenantID: tenantID, Actor: "who " + secret.text, ActorType: ActorUser, Source: SourceGraphQL, Type: typ, Payload: payload}.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		text, err := env.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), marker) {
			t.Fatalf("an unlisted value is kept: %s", text)
		}
		parsed, err := ParseEnvelope(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		var kept map[string]any
		if err := json.Unmarshal(parsed.Payload, &kept); err != nil {
			t.Fatal(err)
		}
		for name := range kept {
			if _, listed := rules[typ][name]; !listed {
				t.Fatalf("%q is not listed for %s", name, typ)
			}
		}
		for name := range payload {
			_, isKept := kept[name]
			if !isKept && !slices.Contains(parsed.RedactedFields, clean(name, maxName)) {
				t.Fatalf("%q is gone without a word", name)
			}
		}
		checkClean(t, parsed.Actor)
		checkClean(t, kept)
		for _, name := range parsed.RedactedFields {
			checkClean(t, name)
		}
	})
}

// checkClean looks for what must not be there at every depth.
func checkClean(t *rapid.T, v any) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) || strings.IndexFunc(v, control) >= 0 || len(v) > MaxString {
			t.Fatalf("not clean: %q", v)
		}
		for _, e := range examples {
			if strings.Contains(v, e.hidden) {
				t.Fatalf("%q holds a secret", v)
			}
		}
		for _, s := range secrets {
			if found := s.pattern.FindString(v); found != "" {
				t.Fatalf("%q holds %q", v, found)
			}
		}
	case []any:
		for _, item := range v {
			checkClean(t, item)
		}
	case map[string]any:
		for name, item := range v {
			checkClean(t, name)
			checkClean(t, item)
		}
	}
}
