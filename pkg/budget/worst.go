package budget

import (
	"math"
	"time"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// Limits are what the platform lets every turn do.
type Limits struct {
	Calls        int // model calls of a turn
	InputTokens  int // of a call: the budget of its context
	OutputTokens int // of a call
}

// Call is the most that one model call may cost, in millionths of a US dollar: all its input at the dearest price that input has (plain, or
// written to the cache) and all its output. known is false when the model has no price at that time.
func (l Limits) Call(p model.Prices, modelID string, at time.Time) (micros int64, known bool) {
	return dearest(p, modelID, l.InputTokens, l.OutputTokens, at)
}

// Worst is the most that a turn may cost, in millionths of a US dollar.
//
// Without a cap on its tokens: as many calls as a turn may make, each at the most (Call).
//
// A cap on tokens stops a turn behind the call with which it meets it. So it costs at most the tokens of the cap, as output (the dearest) as far
// as all its calls together may give some and else as input, and one more call; or what it costs without the cap, if that is less.
func (l Limits) Worst(p model.Prices, modelID string, tokensPerTurn *int64, at time.Time) (micros int64, known bool) {
	call, known := l.Call(p, modelID, at)
	if !known {
		return 0, false
	}
	micros = times(call, l.Calls)
	if tokensPerTurn == nil {
		return micros, true
	}
	before := int(min(*tokensPerTurn, math.MaxInt32*1000))
	output := min(before, l.Calls*l.OutputTokens)
	capped, _ := dearest(p, modelID, before-output, output, at)
	return min(micros, plus(capped, call)), true
}

func dearest(p model.Prices, modelID string, input, output int, at time.Time) (int64, bool) {
	plain, known := p.Cost(modelID, model.Usage{InputTokens: input, OutputTokens: output}, at)
	written, _ := p.Cost(modelID, model.Usage{CacheWriteTokens: input, OutputTokens: output}, at)
	return max(plain, written), known
}

// ceiling keeps sums of a few amounts within an int64.
const ceiling = math.MaxInt64 / 8

func plus(a, b int64) int64 { return min(min(a, ceiling)+min(b, ceiling), ceiling) }

func times(a int64, n int) int64 {
	if n > 0 && a > ceiling/int64(n) {
		return ceiling
	}
	return a * int64(n)
}
