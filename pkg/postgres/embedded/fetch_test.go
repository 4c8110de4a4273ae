//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A package of the same shape as the real one, packed by the real npm from a folder, without a registry.
func TestFetch(t *testing.T) {
	source := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		name = filepath.Join(source, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), mode))
	}
	write("package.json", `{"name": "binaries", "version": "1.0.0"}`, 0o644)
	write("native/bin/postgres", "#!/bin/sh\necho 'postgres (PostgreSQL) 15.1'\n", 0o755)
	write("native/bin/initdb", "#!/bin/sh\n", 0o755)
	write("native/lib/libpq.so.5.15", "library", 0o644)
	write("native/pg-symlinks.json", `[{"source": "native/lib/libpq.so.5.15", "target": "native/lib/libpq.so"}]`, 0o644)

	base, err := os.MkdirTemp("", "fetch") // where an unprivileged user can go
	require.NoError(t, err)
	defer os.RemoveAll(base)
	require.NoError(t, os.Chmod(base, 0o755))
	target := filepath.Join(base, "cache", "postgres")

	err = fetch(t.Context(), source, "sha512-other", target)
	require.ErrorContains(t, err, "not what was pinned")
	require.NoDirExists(t, target)
	entries, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left behind")

	pin := pinOf(t, fetch(t.Context(), source, "sha512-other", target))
	require.NoError(t, fetch(t.Context(), source, pin, target))
	require.NoError(t, fetch(t.Context(), source, pin, target), "another process was faster")
	require.Equal(t, 15, binaryVersion(t.Context(), filepath.Join(target, "native", "bin")))
	text, err := os.ReadFile(filepath.Join(target, "native", "lib", "libpq.so"))
	require.NoError(t, err)
	require.Equal(t, "library", string(text))

	require.ErrorContains(t, fetch(t.Context(), filepath.Join(source, "none"), pin, target), "npm pack")
}

var pins = regexp.MustCompile(`(sha512-[A-Za-z0-9+/=]+) instead of`)

// pinOf takes the hash out of the refusal.
func pinOf(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	m := pins.FindStringSubmatch(err.Error())
	require.Len(t, m, 2, err.Error())
	return m[1]
}

func TestLinksStayInside(t *testing.T) {
	for _, l := range []string{`{"source": "../../etc/passwd", "target": "native/x"}`, `{"source": "native/x", "target": "../x"}`} {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "native"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "native", "pg-symlinks.json"), []byte("["+l+"]"), 0o644))
		require.Error(t, link(dir), l)
	}
}
