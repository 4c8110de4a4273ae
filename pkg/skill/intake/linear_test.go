package intake_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/skill/intake"
)

// busy are texts, by what they repeat, that keep parsers of Markdown busy for a time in the square of their length, or did.
var busy = []string{"a ", "[", "[a](", "](", "[a](<b", "*a_ ", "`a``b```", "> ", "- ", "* ", "a <!A", "a <?", "a <![CDATA[", "![[]()", "[ (](", "<!--", "~", "```\n", "[a]: #b\n", "[a]\n", "[\n",
	"    - a\n", "1. ", `\`, "[a][b]", "[[a]()](", "\n\n> ", `[a](\`, "[a](((((", "`", "` ``\n", "x\n"}

// readAll reads a skill of that size that repeats a unit, and would not end within a test's time if anything took more than linear time.
func readAll(t *testing.T, unit string, size int) {
	t.Helper()
	u, err := intake.Read(zipped(t, "", map[string]string{"SKILL.md": minimal + "x" + strings.Repeat(unit, size/len(unit)) + "\n\n[the end](no.md)\n"}))
	if err == nil { // all of it is code, or a comment
		require.Contains(t, u.Pack.Instructions, "[the end](no.md)", unit)
		return
	}
	require.ErrorContains(t, err, ": the link is to ", unit)
}

func TestNoSkillTakesLong(t *testing.T) {
	for _, unit := range busy {
		readAll(t, unit, 1<<15)
	}
	readAll(t, "[a](", 1<<19)
	var runs strings.Builder // of backticks, each of another length
	for i := 1; runs.Len() < 1<<19; i++ {
		runs.WriteString(strings.Repeat("`", i) + " ")
	}
	readAll(t, runs.String(), 1<<19+1<<10)
}

// What a parser must try again and again to find the line.
func TestNoFrontMatterTakesLong(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "- ", "? ", "? ? ", "'", "&a ", "a: 'x\n", "a: {\n", "a: |\n", "!<", "- - - - ", "b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,b,\n"} {
		count := 8000 / len(unit)
		if strings.Contains(unit, "\n") {
			count = 190 // as many lines as are tried
		}
		for _, first := range []string{"", "x: ", "x: ["} {
			_, err := intake.Read(zipped(t, "", map[string]string{"SKILL.md": front(first + strings.Repeat(unit, count))}))
			require.ErrorContains(t, err, "SKILL.md, line ", unit)
		}
	}
}
