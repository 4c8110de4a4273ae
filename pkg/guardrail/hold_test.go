package guardrail

import (
	"regexp/syntax"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holds is how many characters each kind of rule holds back at the most, as docs/guardrails.md says. Text of which no more than the surroundings have
// been read, as a name before its value, is not held back.
var holds = map[BuiltIn]int{
	AWSAccessKey: 20, PrivateKey: 77, GitHubToken: 40, SlackToken: 46, StripeKey: 24, JWT: 407, Secret: 40,
	EMail: 189, Phone: 46, CreditCard: 37, IBAN: 64, USSSN: 11, IPAddress: 44,
}

func TestAMatchIsDecidedWithinItsBound(t *testing.T) {
	require.Len(t, holds, len(builtIns))
	for b, known := range builtIns {
		longest := 0
		for _, p := range known.programs() {
			longest = max(longest, hold(t, p))
		}
		assert.Equal(t, holds[b], longest, b)
	}
	require.Equal(t, 9, hold(t, masking(t, own("number", `[A-Z]{4}-\d{4}`)).compiled[0].program), "an own pattern's longest match")
	require.Equal(t, 15, hold(t, masking(t, Rule{Topic: &Topic{"pay", []string{"pay", "salaries of CEO"}}}).compiled[0].program), "the longest phrase")
}

// hold is the longest way through a program between two places where it matches, in characters.
func hold(t require.TestingT, p *program) int {
	const under, way = -1, "goes on without end before it has matched"
	known := map[uint32]int{}
	var next func(pc uint32, seen map[uint32]bool, reads *[]uint32) bool
	next = func(pc uint32, seen map[uint32]bool, reads *[]uint32) (ends bool) {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		switch i := p.insts[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a, b := next(i.Out, seen, reads), next(i.Arg, seen, reads)
			return a || b
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			return next(i.Out, seen, reads)
		case syntax.InstMatch:
			return p.check == nil && p.after == nil // else it may not count
		case syntax.InstFail:
			return false
		}
		*reads = append(*reads, pc)
		return false
	}
	var from func(pc uint32) int
	from = func(pc uint32) int {
		if n, is := known[pc]; is {
			require.NotEqual(t, under, n, way)
			return n
		}
		known[pc] = under
		var reads []uint32
		n := 1
		if ends := next(p.insts[pc].Out, map[uint32]bool{}, &reads); !ends {
			for _, r := range reads {
				n = max(n, 1+from(r))
			}
		}
		known[pc] = n
		return n
	}
	longest, marked := 0, map[uint32]bool{}
	if p.marked { // only what is behind the mark
		for pc, i := range p.insts {
			if i.Op == syntax.InstCapture && i.Arg == 2 {
				var todo []uint32
				next(uint32(pc), map[uint32]bool{}, &todo)
				for len(todo) > 0 {
					pc := todo[0]
					if todo = todo[1:]; !marked[pc] {
						marked[pc] = true
						next(p.insts[pc].Out, map[uint32]bool{}, &todo)
					}
				}
			}
		}
	}
	for pc, i := range p.insts {
		switch i.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if !p.marked || marked[uint32(pc)] {
				longest = max(longest, from(uint32(pc)))
			}
		}
	}
	return longest
}
