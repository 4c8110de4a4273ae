package layout_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	createsTable = regexp.MustCompile(`(?m)^create table (\w+)`)
	inBackQuotes = regexp.MustCompile("`([a-z_]+)`")
)

// Whoever adds a table says what bounds it, in docs/operations.md; whoever takes one away takes its line along.
func TestEveryTableSaysWhatBoundsIt(t *testing.T) {
	made := map[string]bool{}
	for _, name := range paths(t) {
		if strings.HasPrefix(name, "schema/sql/") {
			for _, m := range createsTable.FindAllStringSubmatch(read(t, name), -1) {
				made[m[1]] = true
			}
		}
	}
	require.Greater(t, len(made), 30)

	_, section, found := strings.Cut(read(t, "docs/operations.md"), "\n## What grows, and what bounds it\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	told := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue // no line of the table
		}
		for _, m := range inBackQuotes.FindAllStringSubmatch(cells[1], -1) {
			assert.False(t, told[m[1]], "%s is told of twice", m[1])
			told[m[1]] = true
			assert.NotEmpty(t, strings.TrimSpace(cells[3]), m[1])
		}
	}
	for name := range made {
		assert.True(t, told[name], "the table %s grows, and docs/operations.md does not say what bounds it", name)
	}
	for name := range told {
		assert.True(t, made[name], "docs/operations.md tells of a table %s, which no migration makes", name)
	}
}
