package intake_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/intake"
)

// front is a SKILL.md with these lines for its front matter: the first of them is line 2.
func front(lines ...string) string { return "---\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n" }

func TestABrokenSkillIsRefusedAtItsLine(t *testing.T) {
	const name, description = "name: a", "description: b"
	for _, c := range []struct {
		skill string
		line  int
		words string
	}{
		{"", 1, "no front matter"},
		{"# Title\n", 1, "no front matter"},
		{"\n" + front(name, description), 1, "no front matter"},
		{"\uFEFF" + front(name, description), 1, "byte order mark"},
		{"---\nname: a\ndescription: b\n", 1, "has no end"},
		{front(), 1, "is empty"},
		{front("# nothing"), 1, "is empty"},
		{front(name, description) + "\n\n\xff", 8, "not UTF-8: byte 0xff"},
		{front(name, "description: caf\xe9"), 3, "not UTF-8: byte 0xe9"},
		{front(name, description) + "a\x00b", 6, "NUL"},
		{front(description), 1, "has no name"},
		{front(name), 1, "has no description"},

		{front(name, "description: Use: with care"), 3, "belongs in quotes"},
		{front(name, "\tdescription: b"), 3, "tab"},
		{front(name, "  description: b"), 3, "not YAML"},
		{front(name, description, "", "license: 'it's'"), 5, "not YAML"},
		{front(name, description, "license: [a"), 4, "not YAML"},
		{front(name, description, `license: "a`), 4, "not YAML"},
		{front(name, `description: "\q"`), 3, "unknown escape"},
		{front(name, "description: @b"), 3, "begins so belongs in quotes"},
		{front(name, "description: a", "more words"), 4, "not YAML"},
		{front(name, description, "}"), 4, "not YAML"},
		{front(name, description, "license: \x01"), 4, "control characters"},
		{front(name, description, "..."), 4, "one YAML document"},
		{front(name, description, "--- x"), 4, "one YAML document"},
		{front(name, "description: a\u2028b"), 3, "line break"},
		{front(name, "description: a\rb"), 3, "line break"},
		{front("just words"), 2, "must be fields"},
		{front("- name: a"), 2, "must be fields"},
		{front(name, description, "? [a]", ": b"), 4, "must be a word"},

		{front(name, description, "name: b"), 4, "name is given twice, first on line 2"},
		{front(name, description, "version: 1"), 4, "version is no field of a skill"},
		{front(name, description, "Name: a"), 4, "Name is no field"},
		{front(name, description, "<<: {license: x}"), 4, `<< is no field`},
		{front("name: &x a", "description: *x"), 2, "anchors and aliases"},
		{front(name, "description: *x"), 3, "anchors and aliases"},
		{front(name, description, "metadata:", "  a: &x b"), 5, "anchors and aliases"},
		{front(name, "description: !!binary YQ=="), 3, "tags"},
		{front(name, "description: !ruby/object b"), 3, "tags"},

		{front("name:", description), 2, "name is empty"},
		{front("name: ~", description), 2, "name is empty"},
		{front("name: A", description), 2, "name is A; it must be of a-z"},
		{front("name: -a", description), 2, "name is -a"},
		{front("name: a-", description), 2, "name is a-"},
		{front("name: a--b", description), 2, "no two in a row"},
		{front("name: a_b", description), 2, "name is a_b"},
		{front("name: ä", description), 2, "name is ä"},
		{front("name: a/b", description), 2, "name is a/b"},
		{front("name: "+strings.Repeat("a", 65), description), 2, "name has 65 characters; at most 64"},
		{front("name: [a]", description), 2, "name must be a text"},
		{front(name, "description: ''"), 3, "description is empty"},
		{front(name, "description: '  '"), 3, "description is empty"},
		{front(name, "description: >", "", "license: x"), 3, "description is empty"},
		{front(name, "description: "+strings.Repeat("é", 1025)), 3, "description has 1025 characters; at most 1024"},
		{front(name, "description: [b]"), 3, "description must be a text"},
		{front(name, "description:", "  b: c"), 4, "description must be a text"},
		{front(name, `description: "a\0b"`), 3, "control character"},
		{front(name, `description: "a\eb"`), 3, "control character"},
		{front(name, description, "compatibility: "+strings.Repeat("x", 501)), 4, "compatibility has 501 characters"},
		{front(name, description, "license:"), 4, "license is empty"},

		{front(name, description, "metadata: a"), 4, "metadata must be fields"},
		{front(name, description, "metadata:", "  - a"), 4, "metadata must be fields"},
		{front(name, description, "metadata:", "  a: b", "  a: c"), 6, "a is in metadata twice, first on line 5"},
		{front(name, description, "metadata:", "  a:", "    b: c"), 6, "metadata.a must be a text"},
		{front(name, description, "metadata:", "  a:"), 5, "metadata.a is empty"},
		{front(name, description, "metadata:", "  a: {{b}}"), 5, "metadata.a must be a text"},
		{front(name, description, "allowed-tools:"), 4, "allowed-tools is empty"},
		{front(name, description, "allowed-tools: []"), 4, "allowed-tools is empty"},
		{front(name, description, "allowed-tools: {a: b}"), 4, "allowed-tools must be a text"},
		{front(name, description, "allowed-tools: a, b"), 4, "by spaces, not by commas"},
		{front(name, description, "allowed-tools: Bash(git add"), 4, "parenthesis"},
		{front(name, description, "allowed-tools:", "  - a", "  - [b]"), 6, "allowed-tools must be a text"},

		{front(name, description, "license: "+strings.Repeat("x", 20_000)), 1, "more than 8 KiB"},
		{front(name, description, strings.Repeat("\n", 500)), 1, "more than 200 lines"},
		{front(name, description, "license: "+strings.Repeat("[", 7_000)), 4, "not YAML"},
		{front(name, description, "license: "+strings.Repeat("{a: ", 1_500)), 4, "not YAML"},
	} {
		_, err := intake.Read(zipped(t, "a/", map[string]string{"SKILL.md": c.skill}))
		require.Error(t, err, "%.200q", c.skill)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, "%.200q", c.skill)
		require.Regexp(t, "^"+regexp.QuoteMeta(fmt.Sprintf("SKILL.md, line %d: ", c.line))+".*"+regexp.QuoteMeta(c.words), err.Error(), "%.200q", c.skill)
		require.Less(t, len(err.Error()), 400)
	}
}

func TestWhatAFrontMatterMayHave(t *testing.T) {
	for _, c := range []struct {
		lines []string
		name  string
		tools []string
	}{
		{[]string{"# a comment", "description: b", `"name": 'a-1' # another`}, "a-1", nil},
		{[]string{"name: 123", "description: true"}, "123", nil},
		{[]string{"{name: a, description: b}"}, "a", nil},
		{[]string{"name: " + strings.Repeat("a", 64), "description: " + strings.Repeat("é", 1024), "compatibility: " + strings.Repeat("x", 500)}, strings.Repeat("a", 64), nil},
		{[]string{"name: a", "description: |", "  two", "  lines", "allowed-tools: Bash(git:*)   Bash(git add:*)\tRead"}, "a", []string{"Bash(git:*)", "Bash(git add:*)", "Read"}},
		{[]string{"name: a", "description: b", "allowed-tools: [Read, 'Bash(git add:*)']"}, "a", []string{"Read", "Bash(git add:*)"}},
	} {
		u, err := intake.Read(zipped(t, "", map[string]string{"SKILL.md": front(c.lines...)}))
		require.NoError(t, err, c.lines)
		require.Equal(t, c.name, u.Pack.Name)
		require.Equal(t, c.tools, u.Pack.AllowedTools)
		require.NotEmpty(t, u.Pack.Description)
		require.Equal(t, "Do it.", u.Pack.Instructions)
	}
}
