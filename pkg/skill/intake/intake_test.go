package intake_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/agentplatform/agentplatform/pkg/skill/intake"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

var update = flag.Bool("update", false, "write what is read of the skills in testdata anew")

// example is what is in a folder of testdata/skills, by path from it.
func example(t testing.TB, name string) map[string]string {
	t.Helper()
	files, root := map[string]string{}, os.DirFS(filepath.Join("testdata", "skills", name))
	require.NoError(t, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		files[path] = string(content)
		return err
	}))
	return files
}

// zipped is a zip of these files, each put into a folder, "" for none.
func zipped(t testing.TB, folder string, files map[string]string) []byte {
	t.Helper()
	var made bytes.Buffer
	w := zip.NewWriter(&made)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		to, err := w.Create(folder + path)
		require.NoError(t, err)
		_, err = to.Write([]byte(files[path]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return made.Bytes()
}

// To write them anew:
//
//	go test ./pkg/skill/intake -run TestGolden -update
func TestGolden(t *testing.T) {
	for _, name := range []string{"weekly-report", "invoice-check", "trip-notes"} {
		u, err := intake.Read(zipped(t, name+"/", example(t, name)))
		require.NoError(t, err, name)
		got, err := json.MarshalIndent(u.Pack, "", "  ")
		require.NoError(t, err)
		file := filepath.Join("testdata", name+".json")
		if *update {
			require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got)+"\n")

		atTheTop, err := intake.Read(zipped(t, "", example(t, name)))
		require.NoError(t, err)
		require.Equal(t, u, atTheTop, "with its folder and without it is one pack")
	}
}

// testdata/zips/make.sh says what made them.
func TestAPackIsTheSameWhateverToolMadeItsZip(t *testing.T) {
	for _, name := range []string{"invoice-check", "trip-notes"} {
		want, err := intake.Read(zipped(t, name+"/", example(t, name)))
		require.NoError(t, err)
		zips, err := filepath.Glob("testdata/zips/*-" + name + ".zip")
		require.NoError(t, err)
		require.Len(t, zips, 6)
		for _, file := range zips {
			upload, err := os.ReadFile(file)
			require.NoError(t, err)
			got, err := intake.Read(upload)
			require.NoError(t, err, file)
			require.Equal(t, want, got, file)
		}
	}
}

// The Finder writes names in NFD, and files of its own beside each.
func TestAPackIsTheSameFromMacOS(t *testing.T) {
	want, err := intake.Read(zipped(t, "trip-notes/", example(t, "trip-notes")))
	require.NoError(t, err)
	files := map[string]string{"trip-notes/.DS_Store": "\x00Bud1", "__MACOSX/._trip-notes": "\x00\x05", "__MACOSX/trip-notes/._SKILL.md": "\x00\x05"}
	for path, content := range example(t, "trip-notes") {
		files["trip-notes/"+norm.NFD.String(path)] = content
	}
	got, err := intake.Read(zipped(t, "", files))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestWhatIsStoredIsThePack(t *testing.T) {
	for _, name := range []string{"weekly-report", "invoice-check", "trip-notes"} {
		files := example(t, name)
		u, err := intake.Read(zipped(t, "", files))
		require.NoError(t, err)
		again, err := intake.Read(u.Archive)
		require.NoError(t, err)
		require.Equal(t, u, again, "a pack that is downloaded can be uploaded")

		a, err := pack.Open(bytes.NewReader(u.Archive), int64(len(u.Archive)), u.Pack.Hash)
		require.NoError(t, err)
		require.Equal(t, u.Pack.Files, a.Files())
		require.Len(t, a.Files(), len(files))
		for _, f := range a.Files() {
			content, err := a.File(f.Path)
			require.NoError(t, err)
			require.Equal(t, files[f.Path], string(content))
		}
		said, err := a.Instructions()
		require.NoError(t, err)
		require.Equal(t, u.Pack.Instructions, said)
	}
}

func TestOneByteMoreIsAnotherPack(t *testing.T) {
	files, hashes := example(t, "weekly-report"), map[string]bool{}
	for _, more := range []map[string]string{nil, {"a": ""}, {"b": ""}, {"a": "x"}, {"a/b": ""}, {"SKILL.md": files["SKILL.md"] + "\n"}} {
		with := maps.Clone(files)
		maps.Copy(with, more)
		u, err := intake.Read(zipped(t, "", with))
		require.NoError(t, err)
		hashes[u.Pack.Hash] = true
	}
	require.Len(t, hashes, 6)
}

func TestTheLargestPackIsRead(t *testing.T) {
	files := example(t, "weekly-report")
	for i := range pack.MaxFiles - 2 {
		files[fmt.Sprintf("references/%d.md", i)] = strings.Repeat("A line.\n", 4800)
	}
	files["references/text.md"] = strings.Repeat("x", pack.MaxText)
	u, err := intake.Read(zipped(t, "weekly-report/", files))
	require.NoError(t, err)
	require.Len(t, u.Pack.Files, pack.MaxFiles)
	require.Greater(t, len(u.Archive), pack.MaxUnpacked*9/10)
	_, err = pack.Open(bytes.NewReader(u.Archive), int64(len(u.Archive)), u.Pack.Hash)
	require.NoError(t, err)
}
