package grade_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
)

// spec reads one evaluator as an API caller writes it.
func spec(t require.TestingT, text string) evaluator.Spec {
	var s evaluator.Spec
	require.NoError(t, json.Unmarshal([]byte(text), &s), text)
	list, err := grade.Check([]evaluator.Spec{s})
	require.NoError(t, err, text)
	return list[0]
}

func TestEachPureEvaluator(t *testing.T) {
	paris, micros := "Paris", int64(1500)
	said := func(output string) grade.Sample {
		return grade.Sample{Input: "The capital of France?", Output: output, Expected: &paris, Latency: 1200 * time.Millisecond, CostMicros: &micros, Tokens: 30}
	}
	for _, c := range []struct {
		spec   string
		sample grade.Sample
		passes bool
		reason string
	}{
		{`{"type": "exact"}`, said(" Paris\n"), true, `the answer is the text`},
		{`{"type": "exact"}`, said("paris"), false, `the answer is “paris”, not “Paris”`},
		{`{"type": "exact", "ignoreCase": true}`, said("PARIS"), true, `the answer is the text`},
		{`{"type": "exact", "text": "Straße", "ignoreCase": true}`, said("STRASSE"), false, `the answer is “STRASSE”, not “Straße”`},
		{`{"type": "exact", "text": "ΟΔΟΣ", "ignoreCase": true}`, said("οδος"), true, `the answer is the text`},
		{`{"type": "exact", "text": "Rome"}`, said("Paris"), false, `the answer is “Paris”, not “Rome”`},
		{`{"type": "exact", "text": ""}`, said("  "), true, `the answer is the text`},
		{`{"type": "exact"}`, grade.Sample{Output: "x"}, false, `there is no text to compare with: the case expects nothing`},

		{`{"type": "contains"}`, said("It is Paris."), true, `the answer has all texts in it`},
		{`{"type": "contains"}`, grade.Sample{Output: "x"}, false, `there is no text to compare with: the case expects nothing`},
		{`{"type": "contains", "texts": ["Paris", "France"]}`, said("Paris."), false, `the answer lacks “France”`},
		{`{"type": "contains", "texts": ["Paris", "France"], "match": "ANY"}`, said("Paris."), true, `the answer has 1 of 2 texts in it`},
		{`{"type": "contains", "texts": ["Lyon", "Nice"], "match": "ANY"}`, said("Paris."), false, `the answer lacks “Lyon”, “Nice”`},
		{`{"type": "contains", "texts": ["pARIS"], "ignoreCase": true}`, said("Paris."), true, `the answer has all texts in it`},

		{`{"type": "regex", "pattern": "^P\\w+s$"}`, said("Paris"), true, `the pattern is found: “Paris”`},
		{`{"type": "regex", "pattern": "^P\\w+s$"}`, said("In Paris"), false, `the pattern is not found`},
		{`{"type": "regex", "pattern": "(a*)*b"}`, said(strings.Repeat("a", 100_000)), false, `the pattern is not found`}, // RE2: no backtracking

		{`{"type": "json_schema", "schema": "{\"required\": [\"city\"]}"}`, said(`{"city": "Paris"}`), true, `the answer is what the schema asks for`},
		{`{"type": "json_schema", "schema": "{\"required\": [\"city\"]}"}`, said("```json\n{\"city\": \"Paris\"}\n```"), true, `the answer is what the schema asks for`},
		{`{"type": "json_schema", "schema": "{\"required\": [\"city\"]}"}`, said(`{}`), false, `at '': missing property 'city'`},
		{`{"type": "json_schema", "schema": "{}"}`, said(`Here it is: {}`), false, `not JSON: invalid character 'H' looking for beginning of value`},
		{`{"type": "json_schema", "schema": "{}"}`, said("```\n1\n```\nand\n```\n2\n```"), false, "not JSON: invalid character '`' looking for beginning of value"},
		{`{"type": "json_schema", "schema": "{}"}`, said(``), false, `not JSON: it ends too soon`},

		{`{"type": "length", "maxCharacters": 5}`, said("Paris"), true, `the answer has 5 characters and 1 words`},
		{`{"type": "length", "maxCharacters": 2}`, said("日本"), true, `the answer has 2 characters and 1 words`},
		{`{"type": "length", "maxCharacters": 4}`, said("Paris"), false, `the answer has 5 characters and 1 words; at most 4 characters are allowed`},
		{`{"type": "length", "minCharacters": 6}`, said("Paris"), false, `the answer has 5 characters and 1 words; at least 6 characters are asked for`},
		{`{"type": "length", "minWords": 3, "maxWords": 3}`, said("a  b\nc"), true, `the answer has 6 characters and 3 words`},
		{`{"type": "length", "minWords": 4}`, said("a b c"), false, `the answer has 5 characters and 3 words; at least 4 words are asked for`},

		{`{"type": "latency", "maxMs": 1200}`, said("x"), true, `the turn took 1200 ms; 1200 ms are allowed`},
		{`{"type": "latency", "maxMs": 1199}`, said("x"), false, `the turn took 1200 ms; 1199 ms are allowed`},
		{`{"type": "cost", "maxMicros": 1500}`, said("x"), true, `the turn cost 0.001500 US dollars; 0.001500 are allowed`},
		{`{"type": "cost", "maxMicros": 1499}`, said("x"), false, `the turn cost 0.001500 US dollars; 0.001499 are allowed`},
		{`{"type": "cost", "maxMicros": 1}`, grade.Sample{}, false, `what the turn cost is not known: its model has no price`},
	} {
		want := 0.0
		if c.passes {
			want = 1
		}
		s := spec(t, c.spec)
		require.Equal(t, grade.Score{Evaluator: s.Name, Score: want, Reason: c.reason}, grade.Pure(s, c.sample), "%s on %q", c.spec, c.sample.Output)
	}
}

func TestASchemaIsCheckedWhenItIsSaved(t *testing.T) {
	schema := `{"$ref": "https://example.com/s.json"}`
	_, err := grade.Check([]evaluator.Spec{{Type: evaluator.JSONSchema, Schema: &schema}})
	require.ErrorContains(t, err, `evaluator "json_schema": schema: `)
	require.ErrorContains(t, err, `references out of the schema are not followed`)
}

func TestAnAgentsEvaluatorsExpectNothing(t *testing.T) {
	for _, s := range []evaluator.Spec{{Type: evaluator.Exact}, {Type: evaluator.Contains}} {
		_, err := grade.Check([]evaluator.Spec{s})
		require.NoError(t, err)
		_, err = grade.CheckAgents([]evaluator.Spec{s})
		require.ErrorContains(t, err, "is required: only the cases of an evaluation expect something")
	}
}

// Whatever the evaluator, checked or not, and whatever the sample: a score from 0 to 1, the same each time, with a reason that fits into the record.
func TestPureIsTotalAndPure(t *testing.T) {
	optional := func(t *rapid.T, name string) *string { return rapid.Ptr(rapid.String(), true).Draw(t, name) }
	number := func(t *rapid.T, name string) *int { return rapid.Ptr(rapid.IntRange(-5, 50), true).Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		match := evaluator.Any
		s := evaluator.Spec{Name: "it", Type: rapid.SampledFrom([]evaluator.Type{evaluator.Exact, evaluator.Contains, evaluator.Regex, evaluator.JSONSchema,
			evaluator.Length, evaluator.Latency, evaluator.Cost, "", "magic"}).Draw(t, "type"),
			Text: optional(t, "text"), Texts: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "texts"), IgnoreCase: rapid.Ptr(rapid.Bool(), true).Draw(t, "ignoreCase"),
			Pattern: optional(t, "pattern"), Schema: optional(t, "schema"), MinCharacters: number(t, "minCharacters"), MaxCharacters: number(t, "maxCharacters"),
			MinWords: number(t, "minWords"), MaxWords: number(t, "maxWords"), MaxMs: number(t, "maxMs"), MaxMicros: number(t, "maxMicros")}
		if rapid.Bool().Draw(t, "any") {
			s.Match = &match
		}
		x := grade.Sample{Output: string(rapid.SliceOf(rapid.Byte()).Draw(t, "output")), Expected: optional(t, "expected"),
			Latency: time.Duration(rapid.Int64().Draw(t, "latency")), CostMicros: rapid.Ptr(rapid.Int64(), true).Draw(t, "cost")}
		first := grade.Pure(s, x)
		require.Contains(t, []float64{0, 1}, first.Score)
		require.LessOrEqual(t, len(first.Reason), 500)
		require.NotEmpty(t, first.Reason)
		require.True(t, utf8.ValidString(first.Reason))
		require.NotContains(t, first.Reason, "\x00")
		require.Equal(t, first, grade.Pure(s, x))
	})
}

// What holds of the answers themselves.
func TestPureAgreesWithWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		output, part := rapid.String().Draw(t, "output"), rapid.String().Draw(t, "part")
		whole := part + output
		x := grade.Sample{Output: whole, Expected: &whole}
		require.Equal(t, 1.0, grade.Pure(evaluator.Spec{Type: evaluator.Exact}, x).Score)
		require.Equal(t, 1.0, grade.Pure(evaluator.Spec{Type: evaluator.Contains, Texts: []string{part, output}}, x).Score)
		n := utf8.RuneCountInString(whole)
		require.Equal(t, 1.0, grade.Pure(evaluator.Spec{Type: evaluator.Length, MinCharacters: &n, MaxCharacters: &n}, x).Score)
		n--
		require.Equal(t, 0.0, grade.Pure(evaluator.Spec{Type: evaluator.Length, MaxCharacters: &n}, x).Score)
		missing := whole + "?"
		all := evaluator.Spec{Type: evaluator.Contains, Texts: []string{part, missing}}
		require.Equal(t, 0.0, grade.Pure(all, x).Score)
		either := evaluator.Any
		all.Match = &either
		require.Equal(t, 1.0, grade.Pure(all, x).Score)
	})
}
