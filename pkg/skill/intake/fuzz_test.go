package intake_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/intake"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

var (
	isName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	atLine = regexp.MustCompile(`^SKILL\.md, line (\d+): `)
)

// holds checks what every pack that is taken has, and that one that is not is refused in words.
func holds(t *testing.T, u intake.Upload, err error) {
	if err != nil {
		require.Equal(t, fault.ValidationError, fault.From(err).Type, "%v", err)
		require.Less(t, utf8.RuneCountInString(err.Error()), 600)
		require.True(t, utf8.ValidString(err.Error()), "%q", err)
		return
	}
	p := u.Pack
	require.Regexp(t, isName, p.Name)
	require.LessOrEqual(t, len(p.Name), 64)
	require.NotEmpty(t, strings.TrimSpace(p.Description))
	require.LessOrEqual(t, utf8.RuneCountInString(p.Description), 1024)
	require.LessOrEqual(t, utf8.RuneCountInString(p.Compatibility), 500)
	for _, text := range append([]string{p.Description, p.License, p.Compatibility, p.Instructions}, p.AllowedTools...) {
		require.True(t, utf8.ValidString(text) && !strings.Contains(text, "\x00"), "%q", text)
	}
	require.LessOrEqual(t, len(p.Files), pack.MaxFiles)
	total := int64(0)
	for _, f := range p.Files {
		require.True(t, filepath.IsLocal(f.Path) && filepath.Clean(f.Path) == f.Path, "%q", f.Path)
		total += f.Size
	}
	require.LessOrEqual(t, total, int64(pack.MaxUnpacked))

	again, err := intake.Read(u.Archive)
	require.NoError(t, err)
	require.Equal(t, u, again)
	a, err := pack.Open(bytes.NewReader(u.Archive), int64(len(u.Archive)), p.Hash)
	require.NoError(t, err)
	require.Equal(t, p.Files, a.Files())
	said, err := a.Instructions()
	require.NoError(t, err)
	require.Equal(t, p.Instructions, said)
}

func FuzzSkill(f *testing.F) {
	for _, name := range []string{"weekly-report", "invoice-check", "trip-notes"} {
		skill, err := os.ReadFile(filepath.Join("testdata", "skills", name, "SKILL.md"))
		require.NoError(f, err)
		f.Add(string(skill))
	}
	for _, seed := range []string{front("name: a", "description: b"), front("name: &a [*a, *a]"), front("name: a", "description: |", " x", "metadata: {a: b, c: 1}", "allowed-tools: [a]"),
		front("? a", ": - b"), front("name: a", "description: b") + "[a][b] `x` ![c](d)\n\n[b]: <e>\n", "---\n---\n" + strings.Repeat("[a](", 1000), "---\r\nname: a\r---\n", front("description: 'it's'")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, skill string) {
		u, err := intake.Read(zipped(t, "", map[string]string{"SKILL.md": skill, "there.md": ""}))
		holds(t, u, err)
		if err == nil {
			require.Equal(t, pack.Instructions(skill), u.Pack.Instructions)
		} else if found := atLine.FindStringSubmatch(err.Error()); found != nil {
			line, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			require.LessOrEqual(t, line, 1+strings.Count(skill, "\n"), "a line that is there")
			require.Positive(t, line)
		}
	})
}

func FuzzZip(f *testing.F) {
	zips, err := filepath.Glob("testdata/zips/*.zip")
	require.NoError(f, err)
	require.NotEmpty(f, zips)
	for _, name := range zips {
		upload, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(upload)
	}
	f.Add(made(f, entry{name: "a/b"}, entry{name: "A/B"}))
	f.Add(zipped(f, "a/", map[string]string{"SKILL.md": minimal, "é/x": "1"}))
	f.Fuzz(func(t *testing.T, upload []byte) {
		u, err := intake.Read(upload)
		holds(t, u, err)
	})
}
