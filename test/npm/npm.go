// Package npm gives tests the npm packages that test/e2e/package-lock.json pins, installed once per checkout.
//
// Packages of tests run at the same time in several processes: the first takes a file lock and runs `npm ci`, the others wait for
// it. An installation is good as long as the lock file it was made from has not changed. Without node or npm the test fails.
package npm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Folder is test/e2e with node_modules in it. A script there, or started with it as working directory, can import the packages.
func Folder(t testing.TB) string {
	t.Helper()
	_, self, _, ok := runtime.Caller(0)
	require.True(t, ok)
	folder := filepath.Join(filepath.Dir(self), "..", "e2e")
	Install(t, folder)
	return folder
}

// Install is Folder for another folder with a package-lock.json of its own.
func Install(t testing.TB, folder string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "this test needs Node.js 20 or later: %s is not on the PATH", program)
	}
	locked, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	require.NoError(t, err)
	sum := sha256.Sum256(locked)
	want := hex.EncodeToString(sum[:])
	stamp := filepath.Join(folder, "node_modules", ".installed")

	lock, err := os.OpenFile(filepath.Join(folder, "package.json"), os.O_RDONLY, 0) // no file of its own is left behind
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return
	}
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = folder
	output, err := install.CombinedOutput()
	require.NoError(t, err, "npm ci in %s: %s", folder, output)
	require.NoError(t, os.WriteFile(stamp, []byte(want), 0o644))
}
