package intake_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/intake"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

const minimal = "---\nname: a\ndescription: b\n---\n"

// entry is a member as it is written: nothing of it is checked.
type entry struct {
	name    string
	content string
	change  func(*zip.FileHeader)
}

func made(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, e := range append([]entry{{name: "SKILL.md", content: minimal}}, entries...) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(e.content)), CompressedSize64: uint64(len(e.content)), UncompressedSize64: uint64(len(e.content))}
		if e.change != nil {
			e.change(h)
		}
		to, err := w.CreateRaw(h)
		require.NoError(t, err)
		_, err = to.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return archive.Bytes()
}

func mode(m fs.FileMode) func(*zip.FileHeader) {
	return func(h *zip.FileHeader) { h.SetMode(m) }
}

func TestAHostileZipIsRefused(t *testing.T) {
	for _, c := range []struct {
		why     string
		entries []entry
		words   string
	}{
		{"traversal", []entry{{name: "../evil"}}, "../evil: the path leads out of the pack"},
		{"traversal inside", []entry{{name: "a/../../evil"}}, "a/../../evil: the path leads out of the pack"},
		{"a folder that leads out", []entry{{name: "a/../"}}, "a/../: the path leads out of the pack"},
		{"a dot", []entry{{name: "./a"}}, "./a: the path has an empty part"},
		{"two slashes", []entry{{name: "a//b"}}, "a//b: the path has an empty part"},
		{"absolute", []entry{{name: "/etc/passwd"}}, "/etc/passwd: the path is absolute"},
		{"a drive", []entry{{name: "C:evil"}}, `"C:evil": the path is absolute`},
		{"backslashes", []entry{{name: `a\..\b`}}, "has a backslash"},
		{"not UTF-8", []entry{{name: "a\xff"}}, `the name of file 2 of the zip, "a\xff", is not UTF-8`},
		{"a newline", []entry{{name: "a\nb"}}, `"a\nb": the path has a character that is not to be seen`},
		{"right to left", []entry{{name: "a\u202egpj.exe"}}, `"a\u202egpj.exe": the path has a character that is not to be seen`},
		{"NUL", []entry{{name: "a\x00b"}}, "not to be seen"},
		{"no name", []entry{{name: ""}}, "file 2 of the zip has no name"},
		{"a long name", []entry{{name: strings.Repeat("a/", 200)}}, "the path has more than 300 bytes"},
		{"a symbolic link", []entry{{name: "link", content: "/etc/passwd", change: mode(fs.ModeSymlink | 0o777)}}, "link is a symbolic link"},
		{"a device", []entry{{name: "null", change: mode(fs.ModeDevice | fs.ModeCharDevice | 0o666)}}, "null is a special file"},
		{"a pipe", []entry{{name: "pipe", change: mode(fs.ModeNamedPipe)}}, "pipe is a special file"},
		{"twice", []entry{{name: "b"}, {name: "b"}}, "b is in the zip twice"},
		{"SKILL.md twice", []entry{{name: "SKILL.md", content: minimal}}, "SKILL.md is in the zip twice"},
		{"twice but for case", []entry{{name: "README"}, {name: "ReadMe"}}, "README and ReadMe differ in upper and lower case only"},
		{"twice but for what folds", []entry{{name: "straße"}, {name: "STRASSE"}}, "straße and STRASSE differ in upper and lower case only"},
		{"twice but for composition", []entry{{name: "\u00e9"}, {name: "e\u0301"}}, "is in the zip twice"},
		{"a file that is a folder", []entry{{name: "b"}, {name: "B/c"}}, "b is a file, and the folder of B/c"},
		{"encrypted", []entry{{name: "b", change: func(h *zip.FileHeader) { h.Flags |= 1 }}}, "b is encrypted"},
		{"another method", []entry{{name: "b", change: func(h *zip.FileHeader) { h.Method = 14 }}}, "b is compressed by method 14"},
		{"a wrong checksum", []entry{{name: "b", content: "x", change: func(h *zip.FileHeader) { h.CRC32++ }}}, "b cannot be unpacked"},
		{"not deflated", []entry{{name: "b", content: "x", change: func(h *zip.FileHeader) { h.Method = zip.Deflate }}}, "b cannot be unpacked"},
		{"a size that is claimed", []entry{{name: "b", content: "x", change: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 }}}, "more than 20 MiB"},
		{"a text that is too long", []entry{{name: "b c", content: strings.Repeat("x", pack.MaxText+1)}}, `"b c" has 1048577 bytes; a file of text has at most 1 MiB`},
	} {
		u, err := intake.Read(made(t, c.entries...))
		require.ErrorContains(t, err, c.words, c.why)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, c.why)
		require.Empty(t, u)
	}
}

func TestAFolderHasNoContent(t *testing.T) {
	upload := bytes.ReplaceAll(made(t, entry{name: "folder?", content: "hidden"}), []byte("folder?"), []byte("folder/"))
	_, err := intake.Read(upload)
	require.ErrorContains(t, err, "folder/ is a folder with content")
}

func TestWhereSkillMdMustBe(t *testing.T) {
	for words, files := range map[string]map[string]string{
		"the zip has no SKILL.md":                                 {"README.md": ""},
		"a/b/SKILL.md is too deep in the zip":                     {"a/b/SKILL.md": minimal},
		"several skill packs: a, b; upload each by itself":        {"a/SKILL.md": minimal, "b/SKILL.md": minimal},
		"README.md is outside of the pack's folder a":             {"a/SKILL.md": minimal, "README.md": ""},
		"other/x is outside of the pack's folder a":               {"a/SKILL.md": minimal, "other/x": ""},
		"a/skill.md must be named SKILL.md":                       {"a/skill.md": minimal},
		"Skill.md must be named SKILL.md":                         {"Skill.md": minimal},
		"SKILL.md, line 2: name is a, and the folder is other-a;": {"other-a/SKILL.md": minimal},
	} {
		_, err := intake.Read(zipped(t, "", files))
		require.ErrorContains(t, err, words)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
	}
	for _, upload := range [][]byte{nil, []byte("PK"), []byte(minimal), made(t)[:50], make([]byte, 1000)} {
		_, err := intake.Read(upload)
		require.ErrorContains(t, err, "not a zip that can be read")
	}
	_, err := intake.Read(make([]byte, pack.MaxZip+1))
	require.ErrorContains(t, err, "more than 5 MiB")
}

func TestTooManyFilesAreRefused(t *testing.T) {
	var entries []entry
	for i := range pack.MaxFiles {
		entries = append(entries, entry{name: fmt.Sprint("f", i)})
	}
	_, err := intake.Read(made(t, entries...))
	require.ErrorContains(t, err, "more than 500 files")
	_, err = intake.Read(made(t, entries[1:]...))
	require.NoError(t, err)
	for i := range 4 * pack.MaxFiles {
		entries = append(entries, entry{name: fmt.Sprint("folder", i, "/")})
	}
	_, err = intake.Read(made(t, entries...))
	require.ErrorContains(t, err, "more than 500 files")
}

// A bomb that lies about its size, one that says it, and one whose members share their bytes.
func TestBombsDoNotGoOff(t *testing.T) {
	var deflated bytes.Buffer
	w := zip.NewWriter(&deflated)
	to, err := w.Create("SKILL.md")
	require.NoError(t, err)
	_, err = to.Write([]byte(minimal))
	require.NoError(t, err)
	to, err = w.Create("zeros")
	require.NoError(t, err)
	for range 100 {
		_, err = to.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	honest := deflated.Bytes()

	lying := bytes.Clone(honest)
	at := bytes.LastIndex(lying, []byte("PK\x01\x02")) // the size is 24 bytes into the list's last line
	require.Equal(t, uint32(100<<20), binary.LittleEndian.Uint32(lying[at+24:]))
	binary.LittleEndian.PutUint32(lying[at+24:], 1000)

	shared := made(t, entry{name: "b", content: strings.Repeat("x", 1000)}, entry{name: "c", content: strings.Repeat("x", 1000)})
	at = bytes.LastIndex(shared, []byte("PK\x01\x02")) // where the member is, is 42 bytes into its line
	first := bytes.LastIndex(shared[:at], []byte("PK\x01\x02"))
	copy(shared[at+42:at+46], shared[first+42:first+46])

	var directory []byte // nothing but a list of members
	line := shared[at : at+47]
	for len(directory)+len(line)+22 <= pack.MaxZip {
		directory = append(directory, line...)
	}
	end := []byte("PK\x05\x06\x00\x00\x00\x00")
	for range 2 { // as many as two bytes can say
		end = binary.LittleEndian.AppendUint16(end, uint16(len(directory)/len(line)))
	}
	end = binary.LittleEndian.AppendUint32(end, uint32(len(directory)))
	directory = append(directory, append(end, 0, 0, 0, 0, 0, 0)...)

	for words, upload := range map[string][]byte{"more than 20 MiB together": honest, "zeros cannot be unpacked": lying, "b and c overlap in the zip": shared, "more than 500 files": directory} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := intake.Read(upload)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, words)
		require.Equal(t, fault.ValidationError, fault.From(err).Type)
		t.Logf("%d bytes, %v: %d KiB allocated", len(upload), err, (after.TotalAlloc-before.TotalAlloc)>>10)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), words)
	}
}

func TestRealSizesAreAddedUp(t *testing.T) {
	files, random := map[string]string{"SKILL.md": minimal}, rand.NewChaCha8([32]byte{1})
	for i := range 21 {
		block := make([]byte, 1<<10)
		_, _ = random.Read(block)
		files[fmt.Sprint("part", i)] = strings.Repeat(string(block), 1<<10)
	}
	_, err := intake.Read(zipped(t, "", files))
	require.ErrorContains(t, err, "more than 20 MiB together")
	delete(files, "part0")
	delete(files, "part1")
	_, err = intake.Read(zipped(t, "", files))
	require.NoError(t, err)
}
