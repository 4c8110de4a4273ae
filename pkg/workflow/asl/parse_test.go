package asl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
	"github.com/agentplatform/agentplatform/schema"
)

// whole is a definition with each type and field.
const whole = `{"Comment": "all", "Version": "1.0", "QueryLanguage": "JSONPath", "TimeoutSeconds": 60, "StartAt": "Pass", "States": {
	"Pass": {"Type": "Pass", "Comment": "c", "QueryLanguage": "JSONPath", "InputPath": "$.a", "OutputPath": "$", "Parameters": {"a.$": "$"}, "Result": 1, "ResultPath": "$.r", "Next": "Task"},
	"Task": {"Type": "Task", "Resource": "r", "InputPath": "$", "OutputPath": "$", "Parameters": {}, "ResultSelector": {}, "ResultPath": null, "TimeoutSeconds": 10, "HeartbeatSeconds": 9,
		"Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 1, "MaxAttempts": 0, "BackoffRate": 1, "MaxDelaySeconds": 2, "JitterStrategy": "FULL", "Comment": "c"}],
		"Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Fail", "ResultPath": "$.e", "Comment": "c"}], "End": false, "Next": "Choice"},
	"Choice": {"Type": "Choice", "InputPath": "$", "OutputPath": "$", "Choices": [{"Variable": "$.x", "IsPresent": true, "Next": "Wait"}], "Default": "Parallel"},
	"Wait": {"Type": "Wait", "InputPath": "$", "OutputPath": null, "Seconds": 1, "Next": "Succeed"},
	"Succeed": {"Type": "Succeed", "InputPath": "$", "OutputPath": "$"},
	"Fail": {"Type": "Fail", "Error": "e", "Cause": "c"},
	"Parallel": {"Type": "Parallel", "Parameters": {}, "ResultSelector": {}, "ResultPath": "$", "Retry": [], "Catch": [], "Next": "Map", "Branches": [
		{"Comment": "c", "StartAt": "B1", "States": {"B1": {"Type": "Succeed"}}}, {"StartAt": "B2", "States": {"B2": {"Type": "Pass", "Next": "B3"}, "B3": {"Type": "Fail"}}}]},
	"Map": {"Type": "Map", "ItemsPath": "$.l", "ItemSelector": {}, "MaxConcurrency": 2, "Retry": [], "Catch": [], "End": true,
		"ItemProcessor": {"Comment": "c", "ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "I", "States": {"I": {"Type": "Pass", "End": true}}}}}}`

func TestADefinitionIsRead(t *testing.T) {
	m := parsed(t, whole)
	require.Equal(t, "Pass", m.StartAt)
	require.Equal(t, "all", m.Comment)
	require.Equal(t, 60, m.Timeout)
	require.Equal(t, []string{"Choice", "Fail", "Map", "Parallel", "Pass", "Succeed", "Task", "Wait"}, slices.Sorted(maps.Keys(m.States)))
	for name, s := range m.States {
		require.Equal(t, name, s.Name)
		require.Equal(t, asl.Type(name), s.Type)
		require.Equal(t, "/States/"+name, s.Location)
		require.Equal(t, name == "Succeed" || name == "Fail" || name == "Map", s.End, name)
	}
	require.Equal(t, "Choice", m.States["Task"].Next)
	require.Equal(t, "r", m.States["Task"].Resource)
	require.Equal(t, 2, m.States["Map"].MaxConcurrency)
	require.Equal(t, `{"a.$":"$"}`, text(m.States["Pass"].Parameters()))
	require.Nil(t, m.States["Wait"].Parameters())
	require.Equal(t, `{}`, text(m.States["Map"].Parameters()))
	require.Len(t, m.States["Parallel"].Branches, 2)
	require.Equal(t, "/States/Map/ItemProcessor/States/I", m.States["Map"].Processor.States["I"].Location)
	var all []string
	for s := range m.All() {
		all = append(all, s.Name)
	}
	slices.Sort(all)
	require.Equal(t, []string{"B1", "B2", "B3", "Choice", "Fail", "I", "Map", "Parallel", "Pass", "Succeed", "Task", "Wait"}, all)
	for range m.All() {
		break
	}
}

func TestThePlatformsDefinitionsAreInOrder(t *testing.T) {
	files, err := fs.Glob(schema.Workflows, "workflow/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		definition, err := fs.ReadFile(schema.Workflows, file)
		require.NoError(t, err)
		require.Empty(t, problems(t, string(definition), asl.Dialect{}), file)
	}
}

// Each place in a definition that is wrong is told with a pointer to it.
func TestWhatIsWrongIsTold(t *testing.T) {
	const b = `{"StartAt": "B", "States": {"B": {"Type": "Succeed"}}}`
	for _, c := range []struct{ definition, want string }{
		{``, ": The definition is not JSON: unexpected EOF"},
		{`{`, ": The definition is not JSON: unexpected EOF"},
		{`{} {}`, ": The definition is not JSON: there is something behind"},
		{"\"\xff\"", ": The definition is not JSON: the text is not UTF-8"},
		{strings.Repeat("[", 300), ": The definition is not JSON: nested deeper than 200"},
		{`[]`, ": The value should be an object, but is an array"},
		{`{}`, ": The field 'StartAt' is missing"},
		{`{}`, ": The field 'States' is missing"},
		{`{"StartAt": "", "States": {}}`, "/StartAt: The value is empty"},
		{`{"StartAt": "A", "States": {}}`, "/States: There is no state"},
		{`{"StartAt": "A", "States": []}`, "/States: The value should be an object, but is an array"},
		{`{"StartAt": 1, "States": {"A": {"Type": "Succeed"}}}`, "/StartAt: The value should be a string, but is a number"},
		{`{"StartAt": "B", "States": {"A": {"Type": "Succeed"}}}`, "/StartAt: There is no state 'B'"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}, "TimeoutSeconds": 0}`, "/TimeoutSeconds: The value should be an integer from 1 to 99999999"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}, "Version": "2.0"}`, `/Version: The value should be "1.0"`},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}, "Other": 1}`, "/Other: Field 'Other' is not supported in a definition"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}, "QueryLanguage": "JSONata"}`, "/QueryLanguage: JSONata is not supported"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "A": {"Type": "Fail"}}}`, "/States/A: The field is there twice"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "B": {"Type": "Fail"}}}`, "/States/B: State 'B' is not reachable"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "Next": "A"}}}`, "/States/A: No way leads from state 'A' to an end"},
		{`{"StartAt": "` + strings.Repeat("é", 81) + `", "States": {"` + strings.Repeat("é", 81) + `": {"Type": "Succeed"}}}`, ": A state's name has 1 to 80 characters"},
		{`{"StartAt": "a/~b", "States": {"a/~b": {"Type": "Nothing"}}}`, "/States/a~1~0b/Type: There is no type 'Nothing'"},
		{`{"StartAt": "A", "States": {"A": null}}`, "/States/A: The value should be an object, but is null"},
		{`{"StartAt": "A", "States": {"A": {}}}`, "/States/A: The field 'Type' is missing"},
		{`{"StartAt": "A", "States": {"A": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}]}}}`,
			"/States/A/Branches/0/States/A: There is another state 'A'"},

		{around(`"Type": "Pass"`), "/States/S: The field 'Next' or 'End' is missing"},
		{around(`"Type": "Pass", "End": false`), "/States/S: The field 'Next' or 'End' is missing"},
		{around(`"Type": "Pass", "End": 1, "Next": "Z"`), "/States/S/End: The value should be true"},
		{around(`"Type": "Pass", "End": true, "Next": "Z"`), "/States/S/End: There are both 'Next' and 'End'"},
		{around(`"Type": "Pass", "Next": "Y"`), "/States/S/Next: There is no state 'Y'"},
		{around(`"Type": "Pass", "Next": null`), "/States/S/Next: The value should be a string, but is null"},
		{around(`"Type": "Succeed", "Next": "Z"`), "/States/S/Next: Field 'Next' is not supported in a Succeed state"},
		{around(`"Type": "Fail", "InputPath": "$"`), "/States/S/InputPath: Field 'InputPath' is not supported in a Fail state"},
		{around(`"Type": "Pass", "Next": "Z", "Retry": []`), "/States/S/Retry: Field 'Retry' is not supported in a Pass state"},
		{around(`"Type": "Wait", "Seconds": 1, "Next": "Z", "ResultPath": "$"`), "/States/S/ResultPath: Field 'ResultPath' is not supported in a Wait state"},
		{around(`"Type": "Pass", "Next": "Z", "InputPath": 1`), "/States/S/InputPath: The value should be a path, but is a number"},
		{around(`"Type": "Pass", "Next": "Z", "OutputPath": "x"`), `/States/S/OutputPath: "x": at character 1 should be a path`},
		{around(`"Type": "Pass", "Next": "Z", "ResultPath": "$.a[*]"`), `/States/S/ResultPath: "$.a[*]" is no Reference Path`},
		{around(`"Type": "Pass", "Next": "Z", "ResultPath": "$.a[-1]"`), `/States/S/ResultPath: "$.a[-1]" is no Reference Path`},
		{around(`"Type": "Pass", "Next": "Z", "ResultPath": "$$.a"`), "/States/S/ResultPath: A result cannot be put into the context object"},
		{around(`"Type": "Pass", "Next": "Z", "Parameters": "$"`), "/States/S/Parameters: The value should be an object, but is a string"},
		{around(`"Type": "Pass", "Next": "Z", "Parameters": {"a": {"b.$": 1}}`), "/States/S/Parameters/a/b.$: The value of a field that ends in .$"},
		{around(`"Type": "Pass", "Next": "Z", "Parameters": {"a.$": "x"}`), `/States/S/Parameters/a.$: "x": at character 1`},
		{around(`"Type": "Pass", "Next": "Z", "Parameters": {"a.$": "$", "a": 1}`), `/States/S/Parameters/a.$: There is a field "a", too`},
		{around(`"Type": "Pass", "Next": "Z", "Comment": 1`), "/States/S/Comment: The value should be a string"},

		{around(`"Type": "Task", "Next": "Z"`), "/States/S: The field 'Resource' is missing"},
		{around(`"Type": "Task", "Next": "Z", "Resource": ""`), "/States/S/Resource: The value is empty"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "TimeoutSeconds": 0`), "/States/S/TimeoutSeconds: The value should be an integer from 1"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "TimeoutSeconds": 1.0`), "/States/S/TimeoutSeconds: The value should be an integer"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "TimeoutSeconds": 5, "HeartbeatSeconds": 5`), "/States/S/HeartbeatSeconds: The value should be less than TimeoutSeconds"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.x"`), "/States/S/TimeoutSecondsPath: There are both"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "HeartbeatSecondsPath": "$..x"`), "/States/S/HeartbeatSecondsPath: \"$..x\" is no Reference Path"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "ResultSelector": []`), "/States/S/ResultSelector: The value should be an object"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Credentials": {}`), "/States/S/Credentials: Credentials are not supported"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Assign": {}`), "/States/S/Assign: Variables are not supported"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Arguments": {}`), "/States/S/Arguments: JSONata is not supported"},
		{around(`"Type": "Pass", "Next": "Z", "Output": 1`), "/States/S/Output: JSONata is not supported"},
		{around(`"Type": "Pass", "Next": "Z", "QueryLanguage": "JSONata"`), "/States/S/QueryLanguage: JSONata is not supported"},

		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": {}`), "/States/S/Retry: The value should be an array"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [1]`), "/States/S/Retry/0: The value should be an object"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{}]`), "/States/S/Retry/0: The field 'ErrorEquals' is missing"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": []}]`), "/States/S/Retry/0/ErrorEquals: The value should be an array that is not empty"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": [1]}]`), "/States/S/Retry/0/ErrorEquals/0: The value should be a string"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A", "States.ALL"]}]`), "/States/S/Retry/0/ErrorEquals/1: States.ALL should be alone"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["A"]}]`), "/States/S/Retry/0/ErrorEquals/0: States.ALL should be alone, and the last"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 0}]`), "/States/S/Retry/0/IntervalSeconds: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "MaxAttempts": -1}]`), "/States/S/Retry/0/MaxAttempts: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 0.9}]`), "/States/S/Retry/0/BackoffRate: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 1e999}]`), "/States/S/Retry/0/BackoffRate: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "BackoffRate": "2"}]`), "/States/S/Retry/0/BackoffRate: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "IntervalSeconds": 2, "MaxDelaySeconds": 2}]`), "/States/S/Retry/0/MaxDelaySeconds: The value should be greater"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "JitterStrategy": "HALF"}]`), "/States/S/Retry/0/JitterStrategy: The value"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Retry": [{"ErrorEquals": ["A"], "Next": "Z"}]`), "/States/S/Retry/0/Next: Field 'Next' is not supported in a retrier"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Catch": [{"ErrorEquals": ["A"]}]`), "/States/S/Catch/0: The field 'Next' is missing"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Catch": [{"ErrorEquals": ["A"], "Next": "Y"}]`), "/States/S/Catch/0/Next: There is no state 'Y'"},
		{around(`"Type": "Task", "Next": "Z", "Resource": "r", "Catch": [{"ErrorEquals": ["A"], "Next": "Z", "ResultPath": "x"}]`), "/States/S/Catch/0/ResultPath: \"x\""},

		{around(`"Type": "Choice", "Default": "Z"`), "/States/S: The field 'Choices' is missing"},
		{around(`"Type": "Choice", "Choices": [], "Default": "Z"`), "/States/S/Choices: The value should be an array that is not empty"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true, "Next": "Z"}], "Default": ""`), "/States/S/Default: The value is empty"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true, "Next": "Z"}], "Default": "Y"`), "/States/S/Default: There is no state 'Y'"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true, "Next": "Y"}], "Default": "Z"`), "/States/S/Choices/0/Next: There is no state 'Y'"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true}], "Default": "Z"`), "/States/S/Choices/0: The field 'Next' is missing"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "Next": "Z"}]`), "/States/S/Choices/0: The comparison is missing"},
		{around(`"Type": "Choice", "Choices": [{"IsNull": true, "Next": "Z"}]`), "/States/S/Choices/0: The field 'Variable' is missing"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": true, "IsString": true, "Next": "Z"}]`), "/States/S/Choices/0/IsString: There is another comparison: 'IsNull'"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": "true", "Next": "Z"}]`), "/States/S/Choices/0/IsNull: The value should be true or false"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "StringEquals": 1, "Next": "Z"}]`), "/States/S/Choices/0/StringEquals: The value should be a string"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "StringMatches": 1, "Next": "Z"}]`), "/States/S/Choices/0/StringMatches: The value should be a string"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "NumericEquals": "1", "Next": "Z"}]`), "/States/S/Choices/0/NumericEquals: The value should be a number"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "BooleanEquals": 1, "Next": "Z"}]`), "/States/S/Choices/0/BooleanEquals: The value should be true or false"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "TimestampEquals": "2016-03-14t01:59:00Z", "Next": "Z"}]`), "/States/S/Choices/0/TimestampEquals: The value should be a time"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "StringEqualsPath": "x", "Next": "Z"}]`), "/States/S/Choices/0/StringEqualsPath: \"x\""},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "IsNullPath": "$", "Next": "Z"}]`), "/States/S/Choices/0/IsNullPath: There is no 'IsNullPath'"},
		{around(`"Type": "Choice", "Choices": [{"Variable": "$", "Like": "x", "Next": "Z"}]`), "/States/S/Choices/0/Like: Field 'Like' is not supported in a rule"},
		{around(`"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "Z"}]`), "/States/S/Choices/0/Condition: JSONata is not supported"},
		{around(`"Type": "Choice", "Choices": [{"And": [], "Next": "Z"}]`), "/States/S/Choices/0/And: The value should be an array that is not empty"},
		{around(`"Type": "Choice", "Choices": [{"Not": [], "Next": "Z"}]`), "/States/S/Choices/0/Not: The value should be an object"},
		{around(`"Type": "Choice", "Choices": [{"Or": [{"Variable": "$", "IsNull": true, "Next": "Z"}], "Next": "Z"}]`), "/States/S/Choices/0/Or/0/Next: Only the outermost rule has a Next"},
		{around(`"Type": "Choice", "Choices": [{"Or": [{"Variable": "$", "IsNull": true}], "Variable": "$", "Next": "Z"}]`), "/States/S/Choices/0/Variable: 'Or' compares no variable"},
		{around(`"Type": "Choice", "Choices": [` + strings.Repeat(`{"Not": `, 25) + `{}` + strings.Repeat(`}`, 25) + `]`), ": Rules are nested deeper than 20"},

		{around(`"Type": "Wait", "Next": "Z"`), "/States/S: The field 'Seconds', 'SecondsPath', 'Timestamp' or 'TimestampPath' is missing"},
		{around(`"Type": "Wait", "Next": "Z", "Seconds": 1, "Timestamp": "2016-03-14T01:59:00Z"`), "/States/S/Timestamp: There are both 'Seconds' and 'Timestamp'"},
		{around(`"Type": "Wait", "Next": "Z", "Seconds": -1`), "/States/S/Seconds: The value should be an integer from 0"},
		{around(`"Type": "Wait", "Next": "Z", "Timestamp": "tomorrow"`), "/States/S/Timestamp: The value should be a time"},
		{around(`"Type": "Wait", "Next": "Z", "TimestampPath": "$.*"`), "/States/S/TimestampPath: \"$.*\" is no Reference Path"},
		{around(`"Type": "Fail", "Error": 1`), "/States/S/Error: The value should be a string"},
		{around(`"Type": "Fail", "Error": "e", "ErrorPath": "$.e"`), "/States/S/ErrorPath: There are both 'Error' and 'ErrorPath'"},
		{around(`"Type": "Fail", "CausePath": "States.Array(1)"`), "/States/S/CausePath: States.Array does not return a string"},
		{around(`"Type": "Fail", "CausePath": "States.Format()"`), "/States/S/CausePath: "},
		{around(`"Type": "Fail", "CausePath": "x"`), "/States/S/CausePath: \"x\""},

		{around(`"Type": "Parallel", "Next": "Z"`), "/States/S: The field 'Branches' is missing"},
		{around(`"Type": "Parallel", "Next": "Z", "Branches": [1]`), "/States/S/Branches/0: The value should be an object"},
		{around(`"Type": "Parallel", "Next": "Z", "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Pass", "Next": "Z"}}}]`), "/States/S/Branches/0/States/B/Next: There is no state 'Z'"},
		{around(`"Type": "Parallel", "Next": "Z", "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Succeed"}}, "TimeoutSeconds": 1}]`), "/States/S/Branches/0/TimeoutSeconds: Field 'TimeoutSeconds'"},
		{around(`"Type": "Map", "Next": "Z"`), "/States/S: The field 'ItemProcessor' or 'Iterator' is missing"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "Iterator": ` + b), "/States/S/Iterator: There are both"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "ItemSelector": {}, "Parameters": {}`), "/States/S/Parameters: There are both"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "MaxConcurrency": -1`), "/States/S/MaxConcurrency: The value"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "MaxConcurrency": 1, "MaxConcurrencyPath": "$.x"`), "/States/S/MaxConcurrencyPath: There are both"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "ItemReader": {}`), "/States/S/ItemReader: A distributed Map is not supported"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": ` + b + `, "ToleratedFailurePercentage": 1`), "/States/S/ToleratedFailurePercentage: A distributed Map is not supported"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": {"ProcessorConfig": {"Mode": "DISTRIBUTED"}, "StartAt": "B", "States": {"B": {"Type": "Succeed"}}}`),
			"/States/S/ItemProcessor/ProcessorConfig/Mode: A distributed Map is not supported"},
		{around(`"Type": "Map", "Next": "Z", "ItemProcessor": {"ProcessorConfig": {"ExecutionType": "STANDARD"}, "StartAt": "B", "States": {"B": {"Type": "Succeed"}}}`),
			"/States/S/ItemProcessor/ProcessorConfig/ExecutionType: Field"},
	} {
		t.Run(c.want, func(t *testing.T) {
			got := problems(t, c.definition, asl.Dialect{})
			require.True(t, slices.ContainsFunc(got, func(told string) bool {
				return strings.HasPrefix(told, c.want) || strings.HasPrefix(c.want, ": ") && strings.Contains(told, c.want)
			}), "%q\nin %s", got, c.definition)
		})
	}
}

func TestAProblemIsToldOnce(t *testing.T) {
	require.Equal(t, []string{"/States/S/Next: There is no state 'Y'", "/States/Z: State 'Z' is not reachable"},
		problems(t, around(`"Type": "Pass", "Next": "Y"`), asl.Dialect{}))
	require.Equal(t, []string{"/States/S/Type: There is no type 'Job'"}, problems(t, around(`"Type": "Job", "Next": "Z"`), asl.Dialect{}))
	require.Equal(t, []string{"/States/S: The field 'Next' or 'End' is missing"}, problems(t, around(`"Type": "Pass"`), asl.Dialect{}))
	require.Equal(t, []string{"/States/S: The field 'Resource' is missing"}, problems(t, around(`"Type": "Task", "Next": "Z"`), asl.Dialect{}))
}

func TestADialect(t *testing.T) {
	var asked []string
	d := asl.Dialect{Resource: func(resource string, s *asl.State) error {
		asked = append(asked, s.Name+" "+resource+" "+text(s.Parameters()))
		switch resource {
		case "no":
			return errors.New("no such verb")
		case "parts":
			return &workflow.DefinitionError{Problems: []workflow.Problem{{Message: "one", Location: "/Parameters/a"}, {Code: "C", Message: "two", Location: s.Location + "/Parameters/b"}, {Message: "three"}}}
		}
		return nil
	}}
	definition := `{"StartAt": "A", "States": {
		"A": {"Type": "Task", "Resource": "%s", "Parameters": {"x": 1}, "Next": "P"},
		"P": {"Type": "Parallel", "End": true, "Branches": [{"StartAt": "B", "States": {"B": {"Type": "Task", "Resource": "yes", "End": true}}}]}}}`
	require.Empty(t, problems(t, fmt.Sprintf(definition, "yes"), d))
	slices.Sort(asked)
	require.Equal(t, []string{`A yes {"x":1}`, `B yes null`}, asked)
	require.Equal(t, []string{"/States/A/Resource: no such verb"}, problems(t, fmt.Sprintf(definition, "no"), d))
	require.Equal(t, []string{"/States/A/Parameters/a: one", "/States/A/Parameters/b: two", "/States/A: three"}, problems(t, fmt.Sprintf(definition, "parts"), d))
}
