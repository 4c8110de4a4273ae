package evaluator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestAListIsCheckedAndCompleted(t *testing.T) {
	var list []evaluator.Spec
	require.NoError(t, json.Unmarshal([]byte(`[{"type": "exact"}, {"name": "no insults", "type": "contains", "texts": ["please"], "match": "ANY", "ignoreCase": true},
		{"type": "regex", "pattern": "(?i)thanks"}, {"type": "json_schema", "schema": "{}"}, {"type": "length", "maxWords": 100}, {"type": "latency", "maxMs": 0},
		{"type": "cost", "maxMicros": 2000}, {"type": "rubric", "rubric": "Is it polite?", "modelId": "m"}]`), &list))
	checked, err := evaluator.Check(list)
	require.NoError(t, err)
	var names []string
	for _, s := range checked {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"exact", "no insults", "regex", "json_schema", "length", "latency", "cost", "rubric"}, names)
	again, err := evaluator.Check(checked)
	require.NoError(t, err)
	require.Equal(t, checked, again)
	require.Empty(t, list[0].Name, "the caller's list stays")
}

func TestWhatIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		`[{"type": "magic"}]`: `"magic" is not a type of evaluator`,
		`[{}]`:                `an evaluator's name must not be empty`,
		`[{"type": "exact"}, {"type": "exact", "text": "x"}]`:                                 `two evaluators are named "exact": give each a name of its own`,
		`[{"type": "exact", "name": " x"}]`:                                                   `an evaluator's name must not begin or end with white space`,
		`[{"type": "exact", "name": "` + strings.Repeat("x", 65) + `"}]`:                      `an evaluator's name is longer than 64 bytes`,
		`[{"type": "exact", "pattern": "x"}]`:                                                 `evaluator "exact": pattern is not a parameter of type exact`,
		`[{"type": "exact", "text": "` + strings.Repeat("x", 16<<10+1) + `"}]`:                `evaluator "exact": text is longer than 16384 bytes`,
		`[{"type": "contains", "texts": [""]}]`:                                               `evaluator "contains": texts must not be empty`,
		`[{"type": "contains", "texts": ["a"], "match": "SOME"}]`:                             `evaluator "contains": match must be ALL or ANY`,
		`[{"type": "contains", "texts": [` + strings.Repeat(`"a",`, 20) + `"a"]}]`:            `evaluator "contains": texts holds more than 20 entries`,
		`[{"type": "regex"}]`:                                                                 `evaluator "regex": pattern is required`,
		`[{"type": "regex", "pattern": "(?=x)"}]`:                                             "evaluator \"regex\": pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
		`[{"type": "json_schema"}]`:                                                           `evaluator "json_schema": schema is required`,
		`[{"type": "length"}]`:                                                                `evaluator "length": at least one of minCharacters, maxCharacters, minWords and maxWords is required`,
		`[{"type": "length", "minWords": 2, "maxWords": 1}]`:                                  `evaluator "length": no answer is that short and that long`,
		`[{"type": "length", "minWords": -1}]`:                                                `evaluator "length": minWords must be from 0 to 1000000000`,
		`[{"type": "latency"}]`:                                                               `evaluator "latency": maxMs is required`,
		`[{"type": "cost", "maxMicros": 1000000001}]`:                                         `evaluator "cost": maxMicros must be from 0 to 1000000000`,
		`[{"type": "rubric", "rubric": "x"}]`:                                                 `evaluator "rubric": modelId is required`,
		`[{"type": "rubric", "modelId": "x", "rubric": "\u0000"}]`:                            `evaluator "rubric": rubric must be UTF-8 text without NUL`,
		`[` + strings.Repeat(`{"type": "exact"},`, 10) + `{"type": "exact"}]`:                 `evaluators holds more than 10 entries`,
		`[{"type": "rubric", "rubric": "x", "modelId": "` + strings.Repeat("m", 3000) + `"}]`: `evaluator "rubric": modelId is longer than 2048 bytes`,
	} {
		var list []evaluator.Spec
		require.NoError(t, json.Unmarshal([]byte(text), &list), text)
		_, err := evaluator.Check(list)
		require.EqualError(t, err, says, text)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
}
