package main

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// binaries is a folder of small programs, as built at that time by someone with that umask.
func binaries(t *testing.T, built time.Time, mode fs.FileMode) string {
	folder := t.TempDir()
	for name, program := range map[string]string{"list-agents": "one", "send-message": "another, " + string(bytes.Repeat([]byte("longer "), 9000))} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(program), mode))
		require.NoError(t, os.Chtimes(path, built, built))
	}
	return folder
}

func TestTheSameBinariesGiveTheSameBytes(t *testing.T) {
	names := []string{"list-agents", "send-message"}
	first, second := t.TempDir(), t.TempDir()
	one, err := pack(t.Context(), binaries(t, time.Now(), 0o755), first, names)
	require.NoError(t, err)
	two, err := pack(t.Context(), binaries(t, time.Now().Add(-1000*time.Hour), 0o700), second, names)
	require.NoError(t, err)
	require.Equal(t, one, two)
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(first, name+".zip"))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(second, name+".zip"))
		require.NoError(t, err)
		require.Equal(t, a, b, name)
	}
}

func TestAZipHoldsOneProgramThatMayRun(t *testing.T) {
	out := t.TempDir()
	packed, err := pack(t.Context(), binaries(t, time.Now(), 0o600), out, []string{"send-message"})
	require.NoError(t, err)
	archive, err := zip.OpenReader(filepath.Join(out, "send-message.zip"))
	require.NoError(t, err)
	defer archive.Close()
	require.Len(t, archive.File, 1)
	file := archive.File[0]
	require.Equal(t, "bootstrap", file.Name)
	require.Equal(t, fs.FileMode(0o755), file.Mode())
	require.True(t, written.Equal(file.Modified), file.Modified)
	content, err := file.Open()
	require.NoError(t, err)
	program, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Len(t, program, int(packed[0].binary))
	require.Less(t, packed[0].zip, packed[0].binary)
}

func TestAFunctionThatIsNoMoreLosesItsZip(t *testing.T) {
	out := t.TempDir()
	bin := binaries(t, time.Now(), 0o755)
	_, err := pack(t.Context(), bin, out, []string{"list-agents", "send-message"})
	require.NoError(t, err)
	_, err = pack(t.Context(), bin, out, []string{"list-agents"})
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(out, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(out, "list-agents.zip")}, left)
}

func TestAMissingBinaryIsAnError(t *testing.T) {
	out := t.TempDir()
	_, err := pack(t.Context(), t.TempDir(), out, []string{"send-message"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
