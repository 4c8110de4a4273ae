package pack_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

var contents = map[string][]byte{
	"SKILL.md":            []byte("---\nname: a\ndescription: b\n---\n\n\n  Do it.\n\nThen rest.\n\n"),
	"references/über.md":  []byte("Über.\n"),
	"assets/dot":          {0xff, 0, 1},
	"references-2/one.md": nil,
}

// hash is what `sha256sum` says of the lines that the package's words promise.
const hash = "989c63016460f7a0135c25bd8b4b55c7437f3b220416c520784b1909ebfcfae9"

func TestHashIsOfTheLinesThatArePromised(t *testing.T) {
	sum := func(path string) string {
		s := sha256.Sum256(contents[path])
		return hex.EncodeToString(s[:])
	}
	lines := ""
	for _, path := range []string{"SKILL.md", "assets/dot", "references-2/one.md", "references/über.md"} { // - is before /
		lines += path + "\x00" + sum(path) + "\n"
	}
	want := sha256.Sum256([]byte(lines))
	files := pack.List(contents)
	require.Equal(t, hex.EncodeToString(want[:]), pack.Hash(files))
	require.Equal(t, hash, pack.Hash(files), "it is stored: it never changes")

	slices.Reverse(files)
	require.Equal(t, hash, pack.Hash(files))
	require.Equal(t, "references/über.md", files[0].Path, "it is left in its order")
	files[0].Path = "references/uber.md"
	require.NotEqual(t, hash, pack.Hash(files))
}

func write(t *testing.T) []byte {
	t.Helper()
	archive, err := pack.Write(contents)
	require.NoError(t, err)
	return archive
}

func TestWriteMakesTheSameBytesForEver(t *testing.T) {
	archive := write(t)
	require.Equal(t, archive, write(t))
	sum := sha256.Sum256(archive)
	require.Equal(t, "0ed259c5796a2a09712c1f9793e44bef63d6e2c4f99e2a7748c52db18af10797", hex.EncodeToString(sum[:]), "archives that are stored would be others")

	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	require.Len(t, r.File, len(contents))
	for _, f := range r.File {
		from, err := f.Open()
		require.NoError(t, err)
		read, err := io.ReadAll(from)
		require.NoError(t, err)
		require.Equal(t, string(contents[f.Name]), string(read))
		require.Equal(t, 1980, f.Modified.Year(), "a day that a zip can name")
	}
}

// counted counts the bytes that are read of an archive.
type counted struct {
	from io.ReaderAt
	read int
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.from.ReadAt(p, at)
	c.read += n
	return n, err
}

func TestOpenReadsOneFileWithoutTheOthers(t *testing.T) {
	large := map[string][]byte{"SKILL.md": contents["SKILL.md"], "large": make([]byte, pack.MaxUnpacked-1000)}
	archive, err := pack.Write(large)
	require.NoError(t, err)
	from := &counted{from: bytes.NewReader(archive)}
	a, err := pack.Open(from, int64(len(archive)), pack.Hash(pack.List(large)))
	require.NoError(t, err)
	said, err := a.Instructions()
	require.NoError(t, err)
	require.Equal(t, "  Do it.\n\nThen rest.", said)
	require.Less(t, from.read, 50_000)
}

func TestOpenGivesWhatWasWritten(t *testing.T) {
	archive := write(t)
	a, err := pack.Open(bytes.NewReader(archive), int64(len(archive)), hash)
	require.NoError(t, err)
	require.Equal(t, pack.List(contents), a.Files(), "and which of them are text")
	for path, content := range contents {
		got, err := a.File(path)
		require.NoError(t, err)
		require.Equal(t, string(content), string(got))
	}
	_, err = a.Text("assets/dot")
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
	require.ErrorContains(t, err, "assets/dot is not text")
	for _, path := range []string{"", "../SKILL.md", "/SKILL.md", "skill.md", "references", "no\n"} {
		_, err = a.File(path)
		require.True(t, fault.IsMissing(err), path)
	}
}

// Whatever byte of a stored archive is changed, what an agent is given is what was pinned, or nothing.
func TestAChangedArchiveGivesNothingElse(t *testing.T) {
	archive := write(t)
	refused := 0
	for i := range archive {
		changed := bytes.Clone(archive)
		changed[i] ^= 0x21
		a, err := pack.Open(bytes.NewReader(changed), int64(len(changed)), hash)
		if err != nil {
			require.Equal(t, fault.InternalError, fault.From(err).Type, "it is nobody's mistake")
			refused++
			continue
		}
		for path, content := range contents {
			got, err := a.File(path)
			if err != nil {
				require.Equal(t, fault.InternalError, fault.From(err).Type)
				refused++
				continue
			}
			require.Equal(t, string(content), string(got), "byte %d, %s", i, path)
		}
	}
	require.Greater(t, refused, len(archive)/2)
}

func TestOpenTakesTheArchiveOfItsHashOnly(t *testing.T) {
	archive := write(t)
	other := map[string][]byte{"SKILL.md": []byte("other")}
	_, err := pack.Open(bytes.NewReader(archive), int64(len(archive)), pack.Hash(pack.List(other)))
	require.ErrorContains(t, err, "not what was stored")
	require.Equal(t, "internal error", fault.From(err).Message)

	var compressed bytes.Buffer // a bomb in the place of an archive
	w := zip.NewWriter(&compressed)
	f := pack.Describe("SKILL.md", bytes.Repeat([]byte{'a'}, 100_000))
	to, err := w.CreateHeader(&zip.FileHeader{Name: f.Path, Method: zip.Deflate, Comment: "text " + f.SHA256})
	require.NoError(t, err)
	_, err = to.Write(bytes.Repeat([]byte{'a'}, 100_000))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = pack.Open(bytes.NewReader(compressed.Bytes()), int64(compressed.Len()), pack.Hash([]pack.File{f}))
	require.ErrorContains(t, err, "not what was stored")
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		skill, front, body string
		line               int
	}{
		{"---\na: b\n---\nBody\n", "a: b\n", "Body\n", 4},
		{"---\r\na: b\r\n--- \t\r\nBody", "a: b\r\n", "Body", 4},
		{"---\n---", "", "", 3},
		{"---\na: --- b\n ---\n---\n---\n", "a: --- b\n ---\n", "---\n", 5},
		{"---\na: b\n----\n", "", "", 0},
		{"---", "", "", 0},
		{"", "", "", -1},
		{"\n---\na: b\n---\n", "", "", -1},
		{"----\na: b\n---\n", "", "", -1},
	} {
		front, body, line := pack.Split(c.skill)
		require.Equal(t, []any{c.front, c.body, c.line}, []any{front, body, line}, "%q", c.skill)
	}
	require.Equal(t, "    code\n\ntext", pack.Instructions("---\n---\n \n\n    code\r\n\r\ntext \r\n\r\n"))
	require.Empty(t, pack.Instructions("---\n---\n \n"))
	require.Empty(t, pack.Instructions(strings.Repeat("\n", 10)))
}

func TestAnArchiveWithoutASkillHasNoInstructions(t *testing.T) {
	other := map[string][]byte{"README.md": []byte("text")}
	archive, err := pack.Write(other)
	require.NoError(t, err)
	a, err := pack.Open(bytes.NewReader(archive), int64(len(archive)), pack.Hash(pack.List(other)))
	require.NoError(t, err)
	_, err = a.Instructions()
	require.True(t, fault.IsMissing(err))
	_, err = a.Text("SKILL.md")
	require.ErrorContains(t, err, `the skill pack has no file "SKILL.md"`)
}
