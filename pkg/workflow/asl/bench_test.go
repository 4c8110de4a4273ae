package asl_test

import (
	"strings"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// BenchmarkTransition is what the language costs from a state's input, as text, to the next state's: without an engine, and without keeping anything.
func BenchmarkTransition(b *testing.B) {
	small := `{"tenantId": "0190", "count": 3, "items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "note": "` + strings.Repeat("x", 500) + `"}`
	large := `{"count": 3, "items": [` + strings.TrimSuffix(strings.Repeat(`{"id": 1, "name": "a", "text": "some text"},`, 5000), ",") + `]}`
	for _, c := range []struct{ name, fields, input string }{
		{"pass", `"Type": "Pass", "Next": "Z"`, small},
		{"choice", `"Type": "Choice", "Choices": [{"Variable": "$.note", "StringEquals": "y", "Next": "Z"}, {"And": [{"Variable": "$.count", "NumericGreaterThan": 2}], "Next": "Z"}]`, small},
		{"task", `"Type": "Task", "Resource": "r", "Next": "Z", "Parameters": {"id.$": "$$.Execution.Id", "ids.$": "$.items[*].id", "text.$": "States.Format('{}: {}', $.count, $.note)"},
			"ResultSelector": {"n.$": "$.text"}, "ResultPath": "$.result"`, small},
		{"filter of 200 KiB", `"Type": "Pass", "Next": "Z", "Parameters": {"found.$": "$.items[?(@.id == 2)]"}`, large},
		{"pass of 200 KiB", `"Type": "Pass", "Next": "Z"`, large},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, context := state(b, c.fields), object()
			b.ReportAllocs()
			for b.Loop() {
				raw, err := asl.Decode([]byte(c.input))
				if err != nil {
					b.Fatal(err)
				}
				input, f := s.Input(raw, context)
				if f == nil && s.Type == asl.Choice {
					_, f = s.Choose(input, context)
				}
				var output any
				if f == nil {
					output, f = s.Output(raw, s.Result(input), context)
				}
				if f != nil {
					b.Fatal(*f)
				}
				asl.Encode(output)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/transition")
		})
	}
}

// BenchmarkParse is what saving a definition costs.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := asl.Parse(whole, asl.Dialect{}); err != nil {
			b.Fatal(err)
		}
	}
}
