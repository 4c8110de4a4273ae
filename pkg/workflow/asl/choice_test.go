package asl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

const choiceData = `{"s": "abc", "e": "abc", "b": true, "f": false, "n": 5, "m": 5.0, "z": null, "t": "2016-03-14T01:59:00Z", "u": "2016-03-14T02:59:00.000+01:00",
	"later": "2016-03-14T01:59:00.001Z", "o": {"a": 1}, "l": [1], "star": "a*b", "path": "log/x/2.txt"}`

func TestRules(t *testing.T) {
	for rule, want := range map[string]bool{
		`"Variable": "$.s", "StringEquals": "abc"`:                                                              true,
		`"Variable": "$.s", "StringEquals": "abd"`:                                                              false,
		`"Variable": "$.s", "StringEqualsPath": "$.e"`:                                                          true,
		`"Variable": "$.s", "StringEqualsPath": "$.n"`:                                                          false,
		`"Variable": "$.n", "StringEquals": "5"`:                                                                false,
		`"Variable": "$.s", "StringLessThan": "abd"`:                                                            true,
		`"Variable": "$.s", "StringLessThan": "abc"`:                                                            false,
		`"Variable": "$.s", "StringLessThanEquals": "abc"`:                                                      true,
		`"Variable": "$.s", "StringGreaterThan": "abb"`:                                                         true,
		`"Variable": "$.s", "StringGreaterThanEquals": "abd"`:                                                   false,
		`"Variable": "$.s", "StringGreaterThanEqualsPath": "$.e"`:                                               true,
		`"Variable": "$.s", "StringLessThanPath": "$.star"`:                                                     false,
		`"Variable": "$.n", "NumericEquals": 5.00`:                                                              true,
		`"Variable": "$.n", "NumericEqualsPath": "$.m"`:                                                         true,
		`"Variable": "$.s", "NumericEquals": 5`:                                                                 false,
		`"Variable": "$.n", "NumericEqualsPath": "$.s"`:                                                         false,
		`"Variable": "$.n", "NumericLessThan": 5.1`:                                                             true,
		`"Variable": "$.n", "NumericLessThanEquals": 5`:                                                         true,
		`"Variable": "$.n", "NumericGreaterThan": 5`:                                                            false,
		`"Variable": "$.n", "NumericGreaterThanEqualsPath": "$.m"`:                                              true,
		`"Variable": "$.b", "BooleanEquals": true`:                                                              true,
		`"Variable": "$.b", "BooleanEquals": false`:                                                             false,
		`"Variable": "$.b", "BooleanEqualsPath": "$.f"`:                                                         false,
		`"Variable": "$.s", "BooleanEquals": true`:                                                              false,
		`"Variable": "$.t", "TimestampEquals": "2016-03-14T01:59:00.0Z"`:                                        true,
		`"Variable": "$.t", "TimestampEqualsPath": "$.u"`:                                                       true,
		`"Variable": "$.t", "TimestampLessThanPath": "$.later"`:                                                 true,
		`"Variable": "$.t", "TimestampLessThanEqualsPath": "$.u"`:                                               true,
		`"Variable": "$.t", "TimestampGreaterThan": "2016-03-14T01:58:59Z"`:                                     true,
		`"Variable": "$.t", "TimestampGreaterThanEquals": "2017-03-14T01:58:59Z"`:                               false,
		`"Variable": "$.s", "TimestampEquals": "2016-03-14T01:59:00Z"`:                                          false,
		`"Variable": "$.path", "StringMatches": "log*.txt"`:                                                     true,
		`"Variable": "$.path", "StringMatches": "*"`:                                                            true,
		`"Variable": "$.path", "StringMatches": "log/*/2*"`:                                                     true,
		`"Variable": "$.path", "StringMatches": "log"`:                                                          false,
		`"Variable": "$.path", "StringMatches": "*/x/*/*"`:                                                      false,
		`"Variable": "$.s", "StringMatches": "ab*bc"`:                                                           false,
		`"Variable": "$.star", "StringMatches": "a\\*b"`:                                                        true,
		`"Variable": "$.s", "StringMatches": "a\\*c"`:                                                           false,
		`"Variable": "$.n", "StringMatches": "*"`:                                                               false,
		`"Variable": "$.z", "IsNull": true`:                                                                     true,
		`"Variable": "$.s", "IsNull": false`:                                                                    true,
		`"Variable": "$.z", "IsPresent": true`:                                                                  true,
		`"Variable": "$.nothing", "IsPresent": true`:                                                            false,
		`"Variable": "$.nothing.at.all", "IsPresent": false`:                                                    true,
		`"Variable": "$.n", "IsNumeric": true`:                                                                  true,
		`"Variable": "$.s", "IsNumeric": false`:                                                                 true,
		`"Variable": "$.s", "IsString": true`:                                                                   true,
		`"Variable": "$.t", "IsString": true`:                                                                   true,
		`"Variable": "$.b", "IsBoolean": true`:                                                                  true,
		`"Variable": "$.z", "IsBoolean": true`:                                                                  false,
		`"Variable": "$.t", "IsTimestamp": true`:                                                                true,
		`"Variable": "$.u", "IsTimestamp": true`:                                                                true,
		`"Variable": "$.s", "IsTimestamp": false`:                                                               true,
		`"Variable": "$$.Execution.Name", "StringEquals": "run"`:                                                true,
		`"And": [{"Variable": "$.n", "NumericGreaterThan": 4}, {"Variable": "$.n", "NumericLessThan": 6}]`:      true,
		`"And": [{"Variable": "$.nothing", "IsPresent": true}, {"Variable": "$.nothing", "NumericEquals": 1}]`:  false,
		`"Or": [{"Variable": "$.n", "NumericEquals": 5}, {"Variable": "$.nothing", "NumericEquals": 1}]`:        true,
		`"Or": [{"Variable": "$.n", "NumericEquals": 6}, {"Not": {"Variable": "$.b", "BooleanEquals": false}}]`: true,
		`"Not": {"And": [{"Or": [{"Variable": "$.b", "BooleanEquals": true}]}]}`:                                false,
	} {
		t.Run(rule, func(t *testing.T) {
			s := state(t, `"Type": "Choice", "Choices": [{`+rule+`, "Comment": "c", "Next": "Z"}], "Default": "S"`)
			next, f := s.Choose(data(t, choiceData), object())
			require.Nil(t, f)
			require.Equal(t, want, next == "Z")
		})
	}
}

func TestAChoiceFails(t *testing.T) {
	for rule, want := range map[string]string{
		`"Variable": "$.s", "StringEquals": "x"`:                  asl.ErrorNoChoice,
		`"Variable": "$.nothing", "StringEquals": "x"`:            asl.ErrorRuntime,
		`"Variable": "$.nothing", "IsNull": true`:                 asl.ErrorRuntime,
		`"Variable": "$.s", "StringEqualsPath": "$.nothing"`:      asl.ErrorRuntime,
		`"Not": {"Variable": "$.nothing", "BooleanEquals": true}`: asl.ErrorRuntime,
	} {
		s := state(t, `"Type": "Choice", "Choices": [{`+rule+`, "Next": "Z"}]`)
		next, f := s.Choose(data(t, choiceData), object())
		require.Empty(t, next)
		require.Equal(t, want, f.Error, rule)
		require.NotContains(t, f.Cause, "abc", "a cause quotes no data")
	}
}

func TestTheFirstRuleThatHoldsIsTaken(t *testing.T) {
	s := parsed(t, `{"StartAt": "S", "States": {"S": {"Type": "Choice", "Choices": [
		{"Variable": "$", "NumericLessThan": 1, "Next": "A"}, {"Variable": "$", "NumericLessThan": 2, "Next": "B"}], "Default": "C"},
		"A": {"Type": "Succeed"}, "B": {"Type": "Succeed"}, "C": {"Type": "Fail"}}}`).States["S"]
	for value, want := range map[string]string{"0": "A", "1.5": "B", "2": "C"} {
		next, f := s.Choose(data(t, value), nil)
		require.Nil(t, f)
		require.Equal(t, want, next)
	}
}
