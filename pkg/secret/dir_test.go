package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

var key, otherKey = strings.Repeat("k", 32), strings.Repeat("k", 31) + "l"

func open(t *testing.T, path, key string) secret.Store {
	t.Helper()
	store, err := secret.Dir(path, key)
	require.NoError(t, err)
	return store
}

// fileOf is the file of a secret that was just put into an empty folder.
func fileOf(t *testing.T, path string) string {
	t.Helper()
	files, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, files, 1, "one file a secret, and nothing else")
	return filepath.Join(path, files[0].Name())
}

func TestContractDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "here")
	plant := func(t *testing.T, id secret.ID, value string) {
		elsewhere := t.TempDir()
		require.NoError(t, open(t, elsewhere, key).Put(t.Context(), id, value))
		require.NoError(t, os.WriteFile(filepath.Join(path, filepath.Base(fileOf(t, elsewhere))), []byte(value), 0o600))
	}
	testContract(t, place{open(t, path, key), open(t, path, key), plant})
}

func TestDirIsSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	store, id := open(t, path, key), of(t, ident.New(), "tool-servers", ident.New())
	require.NoError(t, store.Put(t.Context(), id, strings.Repeat(marker, 100)))
	file := fileOf(t, path)
	sealed, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(sealed), marker)
	for name, mode := range map[string]os.FileMode{path: 0o700 | os.ModeDir, file: 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	require.NoError(t, store.Put(t.Context(), id, strings.Repeat(marker, 100)))
	next, err := os.ReadFile(file)
	require.NoError(t, err)
	require.False(t, bytes.Equal(sealed, next), "two of one value do not look alike")

	foreign := func(store secret.Store, id secret.ID) {
		t.Helper()
		_, err := store.Get(t.Context(), id)
		require.ErrorIs(t, err, secret.ErrForeign)
		require.NotContains(t, err.Error(), marker)
	}
	foreign(open(t, path, otherKey), id)
	for i := range sealed { // each byte of it counts
		changed := bytes.Clone(next)
		changed[i] ^= 1
		require.NoError(t, os.WriteFile(file, changed, 0o600))
		foreign(store, id)
	}
	for _, changed := range [][]byte{{}, next[:10], next[:28], next[:len(next)-1], append(bytes.Clone(next), 0), bytes.Repeat([]byte("a"), 1<<20)} {
		require.NoError(t, os.WriteFile(file, changed, 0o600))
		foreign(store, id)
	}

	require.NoError(t, os.WriteFile(file, sealed, 0o600))
	other := of(t, ident.New(), "tool-servers", ident.New())
	require.NoError(t, os.Rename(file, strings.Replace(file, strings.ReplaceAll(id.String(), "/", "."), strings.ReplaceAll(other.String(), "/", "."), 1)))
	foreign(store, other)
	_, err = store.Get(t.Context(), id)
	require.ErrorIs(t, err, secret.ErrMissing)
}

func TestDirStaysWhereItWasOpened(t *testing.T) {
	t.Chdir(t.TempDir())
	store, id := open(t, "secrets", key), of(t, ident.New(), "a")
	require.NoError(t, store.Put(t.Context(), id, "value"))
	t.Chdir(t.TempDir())
	got, err := store.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "value", got)
}

func TestDirRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	_, err := secret.Dir(path, key[1:])
	require.ErrorContains(t, err, "the key must have at least 32 characters")
	require.NoDirExists(t, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = secret.Dir(path, key)
	require.ErrorContains(t, err, path)

	// A folder that is gone: each error names the secret, and not its value.
	path = filepath.Join(t.TempDir(), "secrets")
	store, id := open(t, path, key), of(t, ident.New(), "a")
	require.NoError(t, os.Remove(path))
	for _, err := range []error{store.Put(t.Context(), id, marker), store.Delete(t.Context(), id)} {
		require.ErrorContains(t, err, "secret "+id.String()+": ")
		require.NotContains(t, err.Error(), marker)
	}
}
