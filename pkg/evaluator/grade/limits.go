package grade

import (
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
)

func quick(s evaluator.Spec, x Sample) (bool, string) {
	took := x.Latency.Milliseconds()
	if s.MaxMs == nil {
		return false, "there is no limit to compare with"
	}
	return took <= int64(*s.MaxMs), fmt.Sprintf("the turn took %d ms; %d ms are allowed", took, *s.MaxMs)
}

func cheap(s evaluator.Spec, x Sample) (bool, string) {
	switch {
	case s.MaxMicros == nil:
		return false, "there is no limit to compare with"
	case x.CostMicros == nil:
		return false, "what the turn cost is not known: its model has no price"
	}
	return *x.CostMicros <= int64(*s.MaxMicros), fmt.Sprintf("the turn cost %s US dollars; %s are allowed", dollars(*x.CostMicros), dollars(int64(*s.MaxMicros)))
}

func dollars(micros int64) string { return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6) }
