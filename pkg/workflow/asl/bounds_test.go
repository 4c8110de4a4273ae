package asl_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

func TestADefinitionIsBounded(t *testing.T) {
	_, err := asl.Parse(strings.Repeat(" ", workflow.MaxDefinition+1), asl.Dialect{})
	require.ErrorIs(t, err, workflow.ErrTooLarge)

	nested := func(n int) string {
		text := `{"StartAt": "S0", "States": {"S0": {"Type": "Succeed"}}}`
		for i := 1; i < n; i++ {
			text = fmt.Sprintf(`{"StartAt": "S%d", "States": {"S%[1]d": {"Type": "Parallel", "End": true, "Branches": [%s]}}}`, i, text)
		}
		return text
	}
	require.Empty(t, problems(t, nested(asl.MaxNesting), asl.Dialect{}))
	got := problems(t, nested(asl.MaxNesting+1), asl.Dialect{})
	require.Len(t, got, 1)
	require.Contains(t, got[0], "/Branches/0: Branches and processors are nested deeper than 20")

	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"S%d": {}`, i))
	}
	require.Len(t, problems(t, `{"StartAt": "S0", "States": {`+strings.Join(many, ",")+`}}`, asl.Dialect{}), 100)
}

// wide is an array of about as many values as a state may have.
func wide() any {
	list := make([]any, 120_000)
	for i := range list {
		list[i] = asl.Number(i % 10)
	}
	return map[string]any{"l": list}
}

// deep is the deepest value that there may be.
func deep() any {
	var value any = map[string]any{}
	for range asl.MaxDepth - 2 {
		value = map[string]any{"a": value, "b": []any{}}
	}
	return value
}

// Whatever a definition asks for, a state's work has an end that is soon.
func TestWhatAStateComputesIsBounded(t *testing.T) {
	const over, large = asl.ErrorRuntime, asl.ErrorDataLimit
	times := func(n int, text string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
		}
		return strings.Join(parts, ",")
	}
	for name, c := range map[string]struct {
		fields string
		data   any
		want   string
	}{
		"unions multiply":                {`"InputPath": "$.l[0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0][0,0,0,0,0,0,0,0]"`, map[string]any{"l": same(10)}, over},
		"descents multiply":              {`"InputPath": "$..a..a..a..a..a"`, deep(), over},
		"a filter in each of many":       {`"InputPath": "$.l[?(@ == 1 && $.l[?(@ == 2)])]"`, wide(), over},
		"many paths":                     {`"Parameters": {` + times(100, `"a#.$": "$..b"`) + `}`, wide(), over},
		"many copies":                    {`"Parameters": {` + times(100, `"a#.$": "$.l"`) + `}`, wide(), large},
		"texts of copies":                {`"Parameters": {"a.$": "States.JsonToString(States.Array(` + times(100, "$.l") + `))"}`, wide(), large},
		"texts of texts":                 {`"Parameters": {` + times(50, `"a#.$": "States.JsonToString($.l)"`) + `}`, wide(), large},
		"a template of copies":           {`"Parameters": {"a.$": "States.Format('` + strings.Repeat("{}", 900) + `',` + times(900, "$.l") + `)"}`, wide(), large},
		"looking through many":           {`"Parameters": {` + times(100, `"a#.$": "States.ArrayContains($.l, 11)"`) + `}`, wide(), over},
		"what is different of many":      {`"Parameters": {` + times(100, `"a#.$": "States.ArrayUnique($.l)"`) + `}`, wide(), over},
		"what is different of copies":    {`"Parameters": {"a.$": "States.ArrayUnique(States.Array(` + times(100, "$.l") + `))"}`, wide(), over},
		"all below each of many, copied": {`"InputPath": "$..*"`, deep(), ""},
		"patterns":                       {`"InputPath": "$.l[?(@ =~ /(a*)*b/)]"`, map[string]any{"l": texts(100, strings.Repeat("a", 2000))}, ""},
		"patterns of many":               {`"InputPath": "$.l[?(@ =~ /(a*)*b/)]"`, map[string]any{"l": texts(2000, strings.Repeat("a", 2000))}, over},
	} {
		t.Run(name, func(t *testing.T) {
			s := pass(t, c.fields)
			value, f := s.Input(c.data, nil)
			if c.want == "" {
				require.Nil(t, f)
				if _, f = s.Output(nil, value, nil); f != nil {
					require.Equal(t, large, f.Error)
				}
				return
			}
			require.NotNil(t, f)
			require.Equal(t, c.want, f.Error)
		})
	}
}

// same are arrays in each other, each of one value n deep.
func same(n int) any {
	var value any = "x"
	for range n {
		value = []any{value}
	}
	return value
}

func texts(n int, text string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = text
	}
	return list
}

// What a run of states makes ever deeper comes to an end, too.
func TestDataAreNotNestedEverDeeper(t *testing.T) {
	s := pass(t, `"Parameters": {"a.$": "$"}`)
	var value any
	for i := 1; ; i++ {
		next, f := s.Input(value, nil)
		if f != nil {
			require.Equal(t, asl.ErrorDataLimit, f.Error)
			require.Equal(t, asl.MaxDepth+1, i)
			break
		}
		value = data(t, text(next))
	}
}
