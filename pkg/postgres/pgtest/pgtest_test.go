package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

func TestNew(t *testing.T) {
	New(t)
	began := time.Now()
	a, b := New(t), New(t)
	t.Logf("a database each in %v", time.Since(began)/2)
	tenant := a.Tenant(t, "acme")
	require.NoError(t, a.App.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
		var user, slug string
		err := tx.QueryRow(t.Context(), "select current_user, slug from tenants").Scan(&user, &slug)
		require.Equal(t, "agentplatform_app acme", user+" "+slug)
		return err
	}))
	var n int
	require.NoError(t, b.Superuser(t).QueryRow(t.Context(), "select count(*) from tenants").Scan(&n))
	require.Zero(t, n, "another database")
	for _, url := range []string{a.AppURL, a.OwnerURL, a.LedgerURL, a.ReaderURL, a.SuperURL, a.AppTCPURL} {
		require.NoError(t, a.Connect(t, url).Ping(t.Context()))
	}
}

func TestClone(t *testing.T) {
	db := New(t)
	tenant := db.Tenant(t, "acme")
	count := func(db *DB) (n int) {
		require.NoError(t, db.App.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select count(*) from tenants").Scan(&n)
		}))
		return n
	}
	inUse := db.Superuser(t)
	require.NoError(t, inUse.Ping(t.Context()))
	a := db.Clone(t)
	require.Error(t, inUse.Ping(t.Context()), "copying ends the connections")
	require.Equal(t, 1, count(a))
	_, err := a.Superuser(t).Exec(t.Context(), "delete from tenants")
	require.NoError(t, err)
	require.Zero(t, count(a))
	require.Equal(t, 1, count(db.Clone(t)), "each is a copy of its own")
}

func TestNewInParallel(t *testing.T) {
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			New(t).Tenant(t, "acme")
		})
	}
}

// What a test run leaves behind: nothing, whether its tests pass or fail. (This test binary is run again, on a test of these.)
func TestNothingIsLeftBehind(t *testing.T) {
	for _, end := range []string{"pass", "fail"} {
		stale, err := os.MkdirTemp(root(), prefix) // of a test process that was killed an hour ago
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(stale, "lock"), nil, 0o600))
		hourAgo := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(stale, hourAgo, hourAgo))

		cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestThatEnds$")
		cmd.Env = append(os.Environ(), "PGTEST_END="+end)
		out, err := cmd.CombinedOutput()
		require.Equal(t, end == "fail", err != nil, "%s", out)
		dir := regexp.MustCompile(`folder (\S+)`).FindSubmatch(out)
		require.Len(t, dir, 2, "%s", out)
		require.NoDirExists(t, string(dir[1]))
		require.NoDirExists(t, stale)
	}
}

func TestThatEnds(t *testing.T) {
	end := os.Getenv("PGTEST_END")
	if end == "" {
		return // it is for TestNothingIsLeftBehind
	}
	New(t)
	t.Log("folder", shared.dir)
	if end == "fail" {
		t.Fatal("on purpose")
	}
}
