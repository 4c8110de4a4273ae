package layout_test

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// refers reports whether the file mentions pkg.name.
func refers(s source, pkg, name string) (found bool) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if on, ok := sel.X.(*ast.Ident); ok && on.Name == pkg {
				found = true
			}
		}
		return !found
	})
	return found
}

// Every package says what it is before it shows any code. A function's main needs no words: its name and its constructor have them.
func TestAPackageSaysWhatItIs(t *testing.T) {
	documented, file := map[string]bool{}, map[string]string{}
	for _, s := range sources(t) {
		if matches("functions/*/*", s.folder()) {
			continue
		}
		name := s.ast.Name.Name
		key := s.folder() + " " + strings.TrimSuffix(name, "_test")
		file[key] = s.path
		if s.ast.Doc == nil {
			continue
		}
		documented[key] = true
		want := "Package " + name + " "
		if name == "main" {
			want = "Command " + path.Base(s.folder()) + " "
		}
		assert.True(t, strings.HasPrefix(s.ast.Doc.Text(), want), "%s: its package comment begins with %q", s.path, want)
	}
	for key := range file {
		assert.True(t, documented[key], "the package of %s has no package comment", file[key])
	}
}

// Each type of audit event but the reserved ones is recorded by an operation, whose test runs it and finds the event.
func TestEveryTypeIsRecordedAndTested(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t(\w+) +Type = "([a-z_.]+)"`)
	all := constant.FindAllStringSubmatch(read(t, "pkg/audit/type.go"), -1)
	require.Len(t, all, 19)
	recorded := 0
	for _, c := range all {
		name, typ := c[1], audit.Type(c[2])
		code, test := false, false
		for _, s := range sources(t) {
			outside := s.folder() != "pkg/audit" && !strings.HasPrefix(s.folder(), "pkg/audit/")
			code = code || outside && !s.test() && !strings.HasPrefix(s.folder(), "test/") && refers(s, "audit", name)
			test = test || s.test() && strings.HasPrefix(s.folder(), "functions/") && refers(s, "audit", name)
		}
		assert.Equal(t, typ.Recorded(), code, "%s: an operation records it", typ)
		assert.True(t, test || !code, "%s: a test in functions/ runs that operation", typ)
		if code {
			recorded++
		}
	}
	require.Equal(t, 14, recorded)
}

// A missing service is a failed test, and a test waits for what happens, not for a time.
func TestTestsNeitherSkipNorSleep(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() {
			continue
		}
		assert.False(t, refers(s, "time", "Sleep"), "%s sleeps: wait for a signal", s.path)
		for _, name := range []string{"t", "b", "f", "tb"} {
			for _, skip := range []string{"Skip", "Skipf", "SkipNow"} {
				assert.False(t, refers(s, name, skip), "%s skips: fail and say what is missing", s.path)
			}
		}
	}
}

// Migrations go forward only and are numbered without gaps: what is deployed is never edited, and never taken back. So are the versions of tables that a
// part of the one-machine cloud keeps for itself, in a folder of its own.
func TestMigrationsGoForward(t *testing.T) {
	number, own := 0, map[string]int{}
	for _, name := range paths(t) {
		if path.Ext(name) != ".sql" {
			continue
		}
		if matches("pkg/local/*/tables", path.Dir(name)) {
			own[path.Dir(name)]++
			require.Equal(t, strconv.Itoa(own[path.Dir(name)])+".sql", path.Base(name), path.Dir(name))
			continue
		}
		require.Equal(t, "schema/sql", path.Dir(name), "%s: SQL files are migrations", name)
		number++
		assert.Regexp(t, regexp.MustCompile(`^0*`+strconv.Itoa(number)+`_[a-z0-9_]+\.sql$`), path.Base(name))
	}
	require.Positive(t, number)
}

// unwanted are words that must not be in any file.
var unwanted = map[string]*regexp.Regexp{
	"a path of one person's machine": regexp.MustCompile(`(?:^|[\s"'=(,:\x60])/(?:home|root|work|Users)/[A-Za-z0-9_.-]+`),
	"an unfinished mark":             regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`),
}

// wellKnown are absolute paths that are the same on every machine that has them.
var wellKnown = []string{"/home/linuxbrew/"}

func TestFilesHoldNoUnwantedWords(t *testing.T) {
	for _, name := range paths(t) {
		if path.Base(name) == "package-lock.json" || path.Base(name) == "go.sum" {
			continue
		}
		for number, line := range strings.Split(read(t, name), "\n") {
			for _, known := range wellKnown {
				line = strings.ReplaceAll(line, known, "")
			}
			for what, pattern := range unwanted {
				assert.Empty(t, pattern.FindString(line), "%s:%d holds %s", name, number+1, what)
			}
		}
	}
}
