package guardrail

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// managed is a Bedrock that masks six digits in a row, and blocks where it reads STOP.
type managed struct {
	asked []string
	fails error
}

var six = regexp.MustCompile(`[0-9]{6}`)

func (m *managed) Check(_ context.Context, g Guardrail, stage Stage, texts []string) (Decision, error) {
	m.asked = append(m.asked, texts...)
	d := Decision{GuardrailID: g.ID, Stage: stage, Action: Allow, Texts: texts}
	if m.fails != nil {
		return Decision{}, m.fails
	}
	for i, t := range texts {
		if at := strings.Index(t, "STOP"); at >= 0 {
			return Decision{Action: Block, Reason: "word filter", Spans: []Span{{"WORD", i, at, at + 4}}, Message: "No."}, nil
		}
		for _, at := range six.FindAllStringIndex(t, -1) {
			d.Action, d.Reason, d.Spans = Mask, "pattern: six", append(d.Spans, Span{"SIX", i, at[0], at[1]})
		}
	}
	if d.Action == Mask {
		d.Texts = nil
		for i, t := range texts {
			var own []Span
			for _, s := range d.Spans {
				if s.Text == i {
					own = append(own, s)
				}
			}
			d.Texts = append(d.Texts, Render(t, own))
		}
	}
	return d, nil
}

// both is a guardrail with rules that mask addresses, and Bedrock.
func both(t require.TestingT) Guardrail {
	g := masking(t, Rule{BuiltIn: []BuiltIn{EMail}})
	g.Kind, g.Bedrock = Bedrock, &Managed{Identifier: "abc", Version: "1", Stages: Stages}
	return g
}

func TestRulesAndBedrockTogether(t *testing.T) {
	m := &managed{}
	c := Checker{Bedrock: m}
	d, err := c.Check(t.Context(), both(t), Input, []string{"ada@example.com has 123456, bob@example.com 654321", "nothing", "222222"})
	require.NoError(t, err)
	require.Equal(t, []string{"[EMAIL] has 123456, [EMAIL] 654321", "nothing", "222222"}, m.asked, "Bedrock is given what the rules have masked")
	require.Equal(t, Decision{GuardrailID: "g", Stage: Input, Action: Mask, Reason: "personal data: e-mail address; pattern: six",
		Spans: []Span{{"EMAIL", 0, 0, 15}, {"SIX", 0, 20, 26}, {"EMAIL", 0, 28, 43}, {"SIX", 0, 44, 50}, {"SIX", 2, 0, 6}},
		Texts: []string{"[EMAIL] has [SIX], [EMAIL] [SIX]", "nothing", "[SIX]"}}, d)

	d, err = c.Check(t.Context(), both(t), Input, []string{"STOP ada@example.com"})
	require.NoError(t, err)
	require.Equal(t, Decision{GuardrailID: "g", Stage: Input, Action: Block, Reason: "personal data: e-mail address; word filter",
		Spans: []Span{{"WORD", 0, 0, 4}, {"EMAIL", 0, 5, 20}}, Message: "No."}, d)

	for _, c := range []Checker{{}, {Bedrock: &managed{fails: Fail("Later.", errors.New("throttled"))}}} {
		var failed *Error
		_, err = c.Check(t.Context(), both(t), Input, []string{"hello"})
		require.ErrorAs(t, err, &failed)
	}
}

func TestBedrockIsAskedOnlyWhereItIsWanted(t *testing.T) {
	m := &managed{}
	g := both(t)
	g.Bedrock.Stages = []Stage{Output}
	d, err := Checker{m}.Check(t.Context(), g, Input, []string{"STOP"})
	require.NoError(t, err)
	require.Equal(t, Allow, d.Action)
	require.Empty(t, m.asked)
	require.True(t, g.Covers(Output))
	g.Rules, g.Bedrock.Stages = nil, []Stage{Input}
	require.False(t, g.Covers(Output))
}

func TestBedrockSeesAStreamInWindowsThatOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"word ", "sentence. ", "123456 ", "12345", "6", "line\n", "ada@example.com ", "日本語。", "x"}), 0, 600).Draw(t, "words")
		if rapid.Bool().Draw(t, "stops") && len(words) > 0 {
			words[rapid.IntRange(0, len(words)-1).Draw(t, "where")] = "STOP"
		}
		text := strings.Join(words, "")
		run := func(pieces []string) (shown string, d Decision, asked []string) {
			m := &managed{}
			s, err := Checker{m}.Stream(both(t), Output)
			require.NoError(t, err)
			for _, p := range pieces {
				part, err := s.Write(t.Context(), p)
				require.NoError(t, err)
				shown += part
			}
			part, err := s.Close(t.Context())
			require.NoError(t, err)
			return shown + part, s.Decision(), m.asked
		}
		shown, d, asked := run([]string{text})
		cutShown, cutDecision, cutAsked := run(cut(t, text))
		require.Equal(t, shown, cutShown)
		require.Equal(t, d, cutDecision)
		require.Equal(t, asked, cutAsked)
		for _, part := range asked {
			require.LessOrEqual(t, len([]rune(part)), windowMost+windowKept+len("123456")+1)
		}
		whole, err := Checker{&managed{}}.Check(t.Context(), both(t), Output, []string{text})
		require.NoError(t, err)
		require.NotContains(t, shown, "STOP")
		require.NotRegexp(t, `[0-9]{6}`, strings.ReplaceAll(shown, "[", " ["))
		if whole.Action == Block {
			require.Equal(t, Block, d.Action)
			return
		}
		require.Equal(t, whole.Texts[0], shown)
		require.Equal(t, whole.Spans, d.Spans)
		require.Equal(t, whole.Action, d.Action)
	})
}

func TestAStreamStopsWhereItIsBlocked(t *testing.T) {
	g := masking(t, Rule{BuiltIn: []BuiltIn{EMail}}, Rule{Action: Block, Topic: &Topic{"pay", []string{"salary"}}})
	s, err := Checker{}.Stream(g, Output)
	require.NoError(t, err)
	shown := ""
	for _, piece := range []string{"Ada (ada@exam", "ple.com) has a sal", "ary of ", "10."} {
		part, err := s.Write(t.Context(), piece)
		require.NoError(t, err)
		shown += part
	}
	require.True(t, s.Blocked())
	require.Equal(t, "Ada ([EMAIL]) has a ", shown)
	rest, err := s.Close(t.Context())
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, Decision{GuardrailID: "g", Stage: Output, Action: Block, Reason: "personal data: e-mail address; denied topic: pay",
		Spans: []Span{{"EMAIL", 0, 5, 20}, {"PAY", 0, 28, 34}}, Message: "The answer was blocked by a guardrail."}, s.Decision())

	s.Reset()
	shown, err = s.Write(t.Context(), "Once more, ")
	require.NoError(t, err)
	part, err := s.Close(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Once more, ", shown+part)
	require.Equal(t, Decision{GuardrailID: "g", Stage: Output, Action: Allow}, s.Decision())
}

func TestAStreamThatCannotBeCheckedShowsNothingMore(t *testing.T) {
	m := &managed{fails: Fail("Later.", errors.New("throttled"))}
	s, err := Checker{m}.Stream(both(t), Output)
	require.NoError(t, err)
	shown, err := s.Write(t.Context(), "Hello.")
	require.NoError(t, err)
	require.Empty(t, shown)
	shown, err = s.Close(t.Context())
	require.EqualError(t, err, "Later.")
	require.Empty(t, shown)
	_, err = Checker{}.Stream(both(t), Output)
	require.Error(t, err)
}

func TestStringsOfJSON(t *testing.T) {
	g := masking(t, Rule{BuiltIn: []BuiltIn{EMail, CreditCard, Secret}}, Rule{Action: Block, Topic: &Topic{"pay", []string{"salary"}}})
	for value, want := range map[string]string{
		`"ada@example.com"`: `"[EMAIL]"`,
		`{"to": ["ada@example.com", "none"], "n": 12.50, "ok": true, "no": null}`:   `{"to": ["[EMAIL]", "none"], "n": 12.50, "ok": true, "no": null}`,
		`{"ada@example.com":1,"bob@example.com":2,"[EMAIL] 2":3}`:                   `{"[EMAIL]":1,"[EMAIL] 3":2,"[EMAIL] 2":3}`,
		`{"card":4111111111111111}`:                                                 `{"card":"[CREDIT_CARD]"}`,
		`{"AWS_SECRET_ACCESS_KEY" : "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}`:    `{"AWS_SECRET_ACCESS_KEY" : "[SECRET]"}`,
		`{"tokens":{"deep":["q7Jx0Zp4Lm9Vt2Ws8"],"token":["q7Jx0Zp4Lm9Vt2Ws8",1]}}`: `{"tokens":{"deep":["q7Jx0Zp4Lm9Vt2Ws8"],"token":["[SECRET]",1]}}`,
		`{"a":"x\u003cada\u0040example.com\u003e\n\"q\""}`:                          `{"a":"x<[EMAIL]>\n\"q\""}`,
		` { } `:             ` { } `,
		`[[],{},"",0]`:      `[[],{},"",0]`,
		`["a","b@","c.de"]`: `["a","b@","c.de"]`,
	} {
		d, got, err := Checker{}.JSON(t.Context(), g, ToolOutput, json.RawMessage(value))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		require.True(t, json.Valid(got))
		require.Equal(t, want != value, d.Action == Mask)
		require.Nil(t, d.Texts)
	}
	d, got, err := Checker{}.JSON(t.Context(), g, ToolInput, json.RawMessage(`{"q":"ada@example.com","x":["the salary"]}`))
	require.NoError(t, err)
	require.Nil(t, got)
	require.Equal(t, Decision{GuardrailID: "g", Stage: ToolInput, Action: Block, Reason: "personal data: e-mail address; denied topic: pay",
		Spans: []Span{{"EMAIL", 1, 0, 15}, {"PAY", 3, 4, 10}}, Message: "The answer was blocked by a guardrail."}, d)
	for _, broken := range []string{``, `{`, `{} {}`, `{"a"}`} {
		_, _, err = Checker{}.JSON(t.Context(), g, ToolInput, json.RawMessage(broken))
		require.Error(t, err)
	}
}

func TestMaskedJSONIsJSON(t *testing.T) {
	g := masking(t, everything...)
	rapid.Check(t, func(t *rapid.T) {
		member := rapid.SampledFrom(pieces)
		value := rapid.Custom(func(t *rapid.T) any {
			var v any = member.Draw(t, "text")
			for range rapid.IntRange(0, 4).Draw(t, "depth") {
				if rapid.Bool().Draw(t, "object") {
					v = map[string]any{member.Draw(t, "name"): v, member.Draw(t, "another"): member.Draw(t, "text")}
				} else {
					v = []any{v, member.Draw(t, "text"), 4111111111111111}
				}
			}
			return v
		}).Draw(t, "value")
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		d, got, err := Checker{}.JSON(t.Context(), g, ToolOutput, raw)
		require.NoError(t, err)
		require.True(t, json.Valid(got), "%s", got)
		require.Equal(t, d.Action == Mask, string(got) != string(raw))
		var masked any
		require.NoError(t, json.Unmarshal(got, &masked))
		require.Equal(t, count(value), count(masked))
	})
}

// count is how many values there are.
func count(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			n += count(inner)
		}
	case []any:
		for _, inner := range v {
			n += count(inner)
		}
	}
	return n + 1
}
