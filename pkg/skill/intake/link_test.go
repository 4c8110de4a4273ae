package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/intake"
)

// In each body `no.md` is not in the pack, and `there.md`, `a b.md`, `c(d).md` and `references/x.md` are.
func TestALinkLeadsToAFile(t *testing.T) {
	for _, c := range []struct {
		body string
		line int // of the link that is refused; 0: all are right
	}{
		{"[a](there.md) ![b](references/x.md) [c](references) [d](references/) [e](./there.md) [f](references/../there.md)", 0},
		{"[a](no.md)", 5},
		{"\n\ntext\nand [a](there.md) and [b](no.md \"title\")", 8},
		{"[a\nb](no.md)", 5},
		{"[a](<no.md>)", 5},
		{"[a](<a b.md>) [b](a%20b.md) [c](c(d).md) [d](c\\(d\\).md) [e](<c(d).md>)", 0},
		{"[a](there.md#part) [b](there.md?x=1) [c](#part) [d]()", 0},
		{"[a](no.md#part)", 5},
		{"[a](https://example.com/no.md) [b](mailto:a@b.c) [c](//example.com/no.md) [d](/no.md) <https://no.md>", 0},
		{"[a](../there.md)", 5},
		{"[a](references/../../a/there.md)", 5},
		{"[a](..)", 5},
		{"[a](references\\\\x.md)", 5},
		{"[a](THERE.md)", 5},
		{"[![image](no.png)](there.md)", 5},
		{"[![image](references/x.md)](no.md)", 5},
		{"- one\n- two\n  - [a](no.md)", 7},
		{"- one\n\n    [a](no.md)", 7},
		{"> quoted [a](no.md)", 5},
		{"| a | b |\n|---|---|\n| [a](no.md) | c |", 7},
		{"# [a](no.md)", 5},
		{"[a][b]\n\n[b]: no.md 'title'", 7},
		{"[a][b]\n\n[b]: <a b.md>\n[c]: https://example.com", 0},
		{"A note[^1].\n\n[^1]: Words of it.\n\n[WARNING]: this is a sentence", 0},

		{"`[a](no.md)` and ``b ` [c](no.md)``", 0},
		{"`[a](there.md) [b](no.md)", 5},
		{"``[b](no.md)`", 5},
		{"`a\n[b](no.md)`", 0},
		{"`a\n\n[b](no.md)`", 7},
		{"\\`[b](no.md)`", 5},
		{"\\``[b](no.md)", 5},
		{"\\[a](no.md) [a\\](no.md)", 0},
		{"```md\n[a](no.md)\n```\n[b](there.md)", 0},
		{"```\n[a](there.md)\n```\n[b](no.md)", 8},
		{"~~~\n```\n[a](no.md)\n~~~", 0},
		{"````\n```\n[a](no.md)\n````", 0},
		{"- item\n  ```\n  [a](no.md)\n  ```", 0},
		{"> ```\n> [a](no.md)\n> ```", 0},
		{"```a`b\n[a](no.md)", 6},
		{"text\n\n    [a](no.md)", 0},
		{"text\n    [a](no.md)", 6},
		{"<!-- [a](no.md) -->\n<!--\n[b](no.md)\n-->\n[c](there.md)", 0},
		{"<!-- a -->\n[b](no.md)", 6},
		{"arr[0](x) is no.md", 5},
		{"f(x)](no.md) [ ] (no.md) [a] (no.md)", 0},
		{"[a](no.md", 0},
		{"[a](no.md more words)", 0},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			skill := strings.ReplaceAll(front("name: a", "description: b"), "Do it.\n", c.body+"\n")
			_, err := intake.Read(zipped(t, "", map[string]string{"SKILL.md": strings.ReplaceAll(skill, "\n", end), "there.md": "", "a b.md": "", "c(d).md": "", "references/x.md": ""}))
			if c.line == 0 {
				require.NoError(t, err, "%q", c.body)
				continue
			}
			require.ErrorContains(t, err, fmt.Sprintf("SKILL.md, line %d: the link ", c.line), "%q", c.body)
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
		}
	}
}
