package atomicfile_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, atomicfile.Write(path, []byte("one"), 0o600))
	require.NoError(t, atomicfile.Write(path, nil, 0o640))
	got, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, got.Size())
	require.Equal(t, fs.FileMode(0o640), got.Mode())

	require.ErrorIs(t, atomicfile.Write(filepath.Join(dir, "missing", "file"), nil, 0o600), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, atomicfile.Write(filepath.Join(dir, "folder"), []byte("x"), 0o600))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing unfinished stays")
}

// Readers find one of the contents, whole, whoever writes.
func TestWritersAndReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 100_000) }
	require.NoError(t, atomicfile.Write(path, content(0), 0o600))
	var writers, readers sync.WaitGroup
	errs, done := make([]error, 4), make(chan struct{})
	for i := range errs {
		writers.Go(func() {
			for range 20 {
				if err := atomicfile.Write(path, content(i), 0o600); err != nil {
					errs[i] = err
				}
			}
		})
	}
	torn := make([]bool, 2)
	for i := range torn {
		readers.Go(func() {
			for {
				got, err := os.ReadFile(path)
				if err != nil || len(got) != 100_000 || !bytes.Equal(got, bytes.Repeat(got[:1], 100_000)) {
					torn[i] = true
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NotContains(t, torn, true)
}
