package layout_test

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tops are the names a path in a document can begin with. A name that is made (dist, .local) is not promised to be there.
var tops = map[string]bool{
	"functions": true, "pkg": true, "schema": true, "infra": true, "cmd": true, "test": true, "docs": true, ".ci": true,
	"Makefile": true, "LICENSE": true, "README.md": true, "CONTRIBUTING.md": true, "go.mod": true, "go.sum": true, "samconfig.toml": true,
}

var (
	fence    = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	span     = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	wordlike = regexp.MustCompile(`^[A-Za-z0-9._*/-]+$`)
	selector = regexp.MustCompile(`\.[A-Z]\w*$`) // pkg/turn.Runner
)

// A reader who follows a path or a link of README.md, CONTRIBUTING.md or docs/ arrives.
func TestDocumentsNameWhatExists(t *testing.T) {
	documents := 0
	for _, name := range paths(t) {
		if path.Ext(name) != ".md" || path.Dir(name) != "." && !strings.HasPrefix(name, "docs/") {
			continue
		}
		documents++
		text := read(t, name)
		for _, p := range pathsIn(text) {
			assert.True(t, exists(p), "%s names %s, which does not exist", name, p)
		}
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if !strings.Contains(l[1], ":") {
				assert.True(t, exists(path.Join(path.Dir(name), l[1])), "%s links to %s, which does not exist", name, l[1])
			}
		}
	}
	require.Positive(t, documents, "there is no README.md")
}

// pathsIn are the words in back quotes and code blocks that look like a path of this repository.
func pathsIn(text string) (found []string) {
	var code []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		code = append(code, m[1])
	}
	for _, m := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		code = append(code, m[1])
	}
	for word := range strings.FieldsSeq(strings.Join(code, "\n")) {
		word = strings.TrimPrefix(strings.TrimRight(word, ".,;:"), "./")
		top, _, below := strings.Cut(word, "/")
		word = strings.TrimSuffix(word, "/")
		if wordlike.MatchString(word) && tops[top] && (below || strings.Contains(word, ".") || word == "Makefile") {
			found = append(found, word)
		}
	}
	return found
}

func exists(name string) bool {
	for _, n := range []string{name, selector.ReplaceAllString(name, ""), strings.TrimSuffix(name, "/...")} {
		if found, err := filepath.Glob(filepath.Join(root, n)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

func TestPathsInADocument(t *testing.T) {
	require.Equal(t, []string{"cmd/local", "functions/*/main.go", "pkg/turn.Runner", "Makefile", ".ci/run", "docs"},
		pathsIn("```sh\ngo run ./cmd/local --once\nls dist/bin\n```\nSee `functions/*/main.go`, `pkg/turn.Runner`, `Makefile`, `.ci/run`, `docs/`, `functions/<noun>`, `test` and pkg/none."))
	require.True(t, exists("pkg/handler.Env") && exists("pkg/...") && exists("functions/*/get_agent.go"))
	require.False(t, exists("pkg/none") || exists("pkg/handler.go"))
}
