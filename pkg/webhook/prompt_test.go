package webhook

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

func read(t testing.TB, raw string) Payload {
	t.Helper()
	p, err := ReadPayload([]byte(raw))
	require.NoError(t, err)
	return p
}

func refused(t testing.TB, err error, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
	require.Contains(t, err.Error(), text)
}

func TestPrompt(t *testing.T) {
	const order = `{
		"name": "Ada", "nothing": null, "yes": true, "no": false, "empty": "", "huge": 1e400, "long": 12345678901234567890, "exact": 1.10, "zero": -0,
		"items": [{"sku": "A-1"}, {"sku": "B-2"}], "nested": {"deep": {"er": "found"}}, "html": {"a": "<b> & \"c\""}, "ünï": {"ço-dé": "yes"},
		"0": "a member named 0", "sly": "{{payload.name}}", "braces": "}} {{", "dollar": "$1 ${0} \\1", "lines": "one\ntwo", "markup": "<b> & \"c\"", "list": []
	}`
	for _, c := range []struct{ prompt, body, want string }{
		{"Hello", order, "Hello"},
		{"Hello {{payload.name}}!", order, "Hello Ada!"},
		{"{{payload.name}}{{payload.name}}", order, "AdaAda"},
		{"{{payload.nested.deep.er}}", order, "found"},
		{"{{payload.items.1.sku}}", order, "B-2"},
		{"{{payload.items.0}}", order, `{"sku":"A-1"}`},
		{"{{payload.items}}", order, `[{"sku":"A-1"},{"sku":"B-2"}]`},
		{"{{payload.list}}", order, `[]`},
		{"{{payload.0}}", order, "a member named 0"},
		{"{{payload.ünï.ço-dé}}", order, "yes"},
		{"{{payload.html}}", order, `{"a":"<b> & \"c\""}`},
		{"{{payload.markup}}", order, `<b> & "c"`},
		{"{{payload.lines}}", order, "one\ntwo"},
		{"{{payload.yes}} {{payload.no}}", order, "true false"},
		{"{{payload.huge}} {{payload.long}} {{payload.exact}} {{payload.zero}}", order, "1e400 12345678901234567890 1.10 -0"},
		{"{{ payload.name }} {{\tpayload.name\t}}", order, "Ada Ada"},
		{"[{{payload.nothing}}{{payload.empty}}{{payload.missing}}{{payload.name.more}}{{payload.nothing.more}}]", order, "[]"},
		{"[{{payload.items.2}}{{payload.items.-1}}{{payload.items.x}}{{payload.items.99999999999999999999}}{{payload.items.sku}}]", order, "[]"},
		{"{{payload.sly}}", order, "{{payload.name}}"},
		{"{{payload.braces}}payload.name}}", order, "}} {{payload.name}}"},
		{"{{payload.dollar}}", order, `$1 ${0} \1`},
		{"{payload.name} {{}", order, "{payload.name} {{}"},
		{"all: {{payload}}", `{"b" : 2, "a":[1e400, "x"]}`, `all: {"a":[1e400,"x"],"b":2}`},
		{"all: {{payload}}", `[1, {"a": null}]`, `all: [1,{"a":null}]`},
		{"{{payload.0.a}}", `[{"a":"in a list"}]`, "in a list"},
		{"all: {{payload}}", `{}`, "all: {}"},
	} {
		require.NoError(t, checkPrompt(c.prompt), c.prompt)
		got, err := message(&c.prompt, read(t, c.body))
		require.NoError(t, err, c.prompt)
		require.Equal(t, c.want, got, c.prompt)
	}
}

func TestPromptsThatNoPayloadCouldFill(t *testing.T) {
	for _, prompt := range []string{"{{}}", "{{ }}", "{{name}}", "{{payload.}}", "{{payload..a}}", "{{payload.a.}}", "{{.payload}}", "{{payloads}}", "{{payload.a b}}",
		"{{payload a}}", "{{payload[0]}}", "{{Payload.a}}", "{{{payload.a}}}", "{{payload.a}} {{oops}}", "{{#if payload.a}}", "{{payload.a | upper}}", "{{ payload . a }}"} {
		err := checkPrompt(prompt)
		refused(t, err, "{{payload.path.to.a.member}}")
	}
}

func TestPromptThatSaysNothing(t *testing.T) {
	for body, text := range map[string]string{
		`{}`:             "must not be empty",
		`{"a":" \t\n"}`:  "must not be empty",
		`{"a":"\u0000"}`: "without NUL",
		`{"a":"` + strings.Repeat("x", thread.MaxBody+1) + `"}`: "longer than 131072 bytes",
	} {
		prompt := "{{payload.a}}"
		_, err := message(&prompt, read(t, body))
		refused(t, err, text)
	}
}

func TestMessageWithoutPrompt(t *testing.T) {
	longest := strings.Repeat("x", thread.MaxBody)
	for body, want := range map[string]string{
		`{"message":"Hello"}`:                          "Hello",
		`{"message":"{{payload.a}}","a":"x"}`:          "{{payload.a}}",
		`{"context":{"message":"no"},"message":" é "}`: " é ",
		`{"message":"` + longest + `"}`:                longest,
	} {
		got, err := message(nil, read(t, body))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Equal(t, 128<<10, thread.MaxBody)
	for body, text := range map[string]string{
		`{}`:                             "no string message",
		`{"Message":"Hello"}`:            "no string message",
		`{"message":null}`:               "no string message",
		`{"message":1}`:                  "no string message",
		`{"message":["Hello"]}`:          "no string message",
		`{"a":{"message":"Hello"}}`:      "no string message",
		`["message","Hello"]`:            "no string message",
		`[{"message":"Hello"}]`:          "no string message",
		`{"message":""}`:                 "must not be empty",
		`{"message":" \u00a0\r\n"}`:      "must not be empty",
		`{"message":"Hel\u0000lo"}`:      "without NUL",
		`{"message":"x` + longest + `"}`: "longer than 131072 bytes",
	} {
		_, err := message(nil, read(t, body))
		refused(t, err, text)
	}
}

// A prompt that names a large value a thousand times is refused before it is built.
func TestAPromptDoesNotGrowWithoutEnd(t *testing.T) {
	prompt := strings.Repeat("{{payload}}", maxPrompt/len("{{payload}}"))
	require.NoError(t, checkPrompt(prompt))
	body := read(t, `{"a":"`+strings.Repeat("x", 1<<20-10)+`"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := message(&prompt, body)
	runtime.ReadMemStats(&after)
	refused(t, err, "the message is longer than")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}
