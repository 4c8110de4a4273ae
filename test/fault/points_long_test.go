//go:build long

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cut is a conversation, or a run of a schedule or a routine, whose platform is killed twice: at a crash point, and again when it has been taken up. Between two points there is nothing
// that lasts, or one transaction: what a budget has set aside and spent is settled in that of "tools finished" and of "committed", and a guardrail's other decisions
// are in the transaction of the step that they belong to.
type cut struct {
	point    string
	nth      int    // the time that it is reached; 0: the first
	then     string // the second death's; empty: the same, for the first time
	attempts int    // in which the turn ends
	lost     bool   // what has an effect outside was in flight, an entry or a mail: whether it was made is not known
	maybe    bool   // it may have been, or not yet, or not any more
	held     func(l *lane, t *testing.T, c cut)
}

// cuts are all, in the order of a turn, of a schedule's run and of a routine's: the crash points of the code and no other (TestEveryPointIsCut).
var cuts = []cut{
	{point: "message requested", then: "claimed", attempts: 2, held: (*lane).work},
	{point: "run requested", then: "claimed", attempts: 2, held: (*lane).webhook},
	{point: "claimed", attempts: 3, held: (*lane).work},
	{point: "input checked", then: "claimed", attempts: 3, held: (*lane).work},
	{point: "model asked", attempts: 3, held: (*lane).work},
	{point: "stream stored", attempts: 3, lost: true, maybe: true, held: (*lane).work},
	{point: "model answered", attempts: 3, held: (*lane).work},
	{point: "tools started", then: "tool called", attempts: 3, lost: true, held: (*lane).work},
	{point: "tool called", attempts: 3, lost: true, held: (*lane).work},
	{point: "tool called", nth: 2, attempts: 3, lost: true, held: (*lane).work},
	{point: inFlight, then: "tool ended", attempts: 3, lost: true, held: (*lane).flight},
	{point: "tool ended", attempts: 3, lost: true, held: (*lane).work},
	{point: "tool ended", nth: 2, attempts: 3, lost: true, held: (*lane).work},
	{point: "tools finished", then: "model asked", attempts: 3, held: (*lane).work},
	{point: "model asked", nth: 2, attempts: 3, held: (*lane).work},
	{point: "model answered", nth: 2, attempts: 3, held: (*lane).work},
	{point: "answered", attempts: 3, held: (*lane).work},
	{point: "reply made", attempts: 3, held: (*lane).work},
	{point: "waiting", then: "message requested", attempts: 1, held: (*lane).question},
	{point: "person decided", then: "tools started", attempts: 2, lost: true, held: (*lane).approval},
	{point: "handed back", attempts: 1, held: (*lane).stopped},
	{point: "committed", attempts: 1, held: (*lane).over},
	{point: "published", attempts: 1, held: (*lane).over},
	{point: "next dispatched", then: "claimed", attempts: 2, held: (*lane).queue},
	{point: "summary made", attempts: 1, held: (*lane).summary},
	{point: "rating asked", attempts: 1, held: (*lane).over},
	{point: "rating claimed", attempts: 1, held: (*lane).over},
	{point: "rating graded", attempts: 1, held: (*lane).over},

	{point: "schedule run written", then: "execution opened", held: (*lane).loop},
	{point: "execution opened", held: (*lane).loop},
	{point: "callback added", held: (*lane).loop},
	{point: "callback claimed", held: (*lane).loop},
	{point: "callback told", held: (*lane).loop},
	{point: "iteration graded", held: (*lane).loop},
	{point: "iteration rated", held: (*lane).loop},
	{point: "iteration decided", held: (*lane).loop},
	{point: "iteration decided", nth: 2, then: "execution closed", held: (*lane).loop},
	{point: "execution closed", held: (*lane).loop},

	{point: "machine put", held: (*lane).routineMade},
	{point: "machine deleted", held: (*lane).routineRetired},
	{point: "run stopped", then: "run ended", held: (*lane).routineStopped},

	{point: "run written", then: "run prepared", held: (*lane).errandBegun},
	{point: "run prepared", held: (*lane).errandBegun},
	{point: "run started", lost: true, maybe: true, held: (*lane).errandBegun},
	{point: "step begun", lost: true, maybe: true, held: (*lane).errandBegun},
	{point: "step claimed", held: (*lane).errandBegun},
	{point: "tool called", lost: true, maybe: true, held: (*lane).errandBegun},
	{point: "step done", lost: true, held: (*lane).errandBegun},
	{point: "step finished", then: "callback claimed", held: (*lane).errandBegun},

	{point: "step decided", then: "callback claimed", held: (*lane).errandDecided},
	{point: "step begun", lost: true, maybe: true, held: (*lane).errandDecided},
	{point: "step claimed", held: (*lane).errandDecided},
	{point: "mail asked", then: "step done", lost: true, held: (*lane).errandDecided},
	{point: "step done", lost: true, held: (*lane).errandDecided},
	{point: "step finished", then: "callback told", held: (*lane).errandDecided},
	{point: "run started", held: (*lane).errandDecided},
	{point: "run ended", held: (*lane).errandDecided},
	{point: "run ended", nth: 2, held: (*lane).errandDecided},
	{point: "run settled", then: "callback claimed", held: (*lane).errandDecided},
	{point: "step decided", then: "callback told", held: (*lane).denied},

	{point: "execution opened", then: "run prepared", held: (*lane).scheduled},
	{point: "run requested", then: "run started", held: (*lane).called},
	{point: "run written", then: "run ended", held: (*lane).called},
	{point: "run written", attempts: 3, held: (*lane).agents},

	{point: "delivery taken in", then: "claimed", held: (*lane).outside},
	{point: "reply claimed", held: (*lane).outside},
	{point: "reply posted", held: (*lane).outside},
	{point: "reply finished", held: (*lane).outside},

	{point: "task event taken in", held: (*lane).tracked},
	{point: "task event claimed", held: (*lane).tracked},
	{point: "task event written", held: (*lane).tracked},
	{point: "push claimed", lost: true, held: (*lane).tracked},
	{point: "push sent", held: (*lane).tracked},
	{point: "task event over", held: (*lane).tracked},
}

// inFlight is no crash point: the platform is killed from outside, while the tool's server works on the call.
const inFlight = "in flight"

// The list is all crash points there are: each has a conversation or a run that dies there, and there is none that is not in the code.
func TestEveryPointIsCut(t *testing.T) {
	signals := regexp.MustCompile(`[sS]ignal(?:\(\))?\("([^"]+)"\)`)
	var written []string
	for _, pattern := range []string{"pkg/turn/*.go", "pkg/tool/use.go", "pkg/evaluation/turn.go", "pkg/callback/*.go", "pkg/schedule/*.go", "pkg/routine/*.go", "pkg/routine/step/*.go", "pkg/integration/*.go", "pkg/task/*.go",
		"functions/*/*.go"} {
		files, err := filepath.Glob("../../" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range signals.FindAllSubmatch(raw, -1) {
				written = append(written, string(m[1]))
			}
		}
	}
	var listed []string
	for _, c := range cuts {
		if c.point != inFlight {
			listed = append(listed, c.point)
		}
	}
	slices.Sort(written)
	slices.Sort(listed)
	require.Equal(t, slices.Compact(written), slices.Compact(listed))
}
