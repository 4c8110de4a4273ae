//go:build long

package layout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// largest is how large a function may be, in bytes: a cold start reads all of it. Measured with the packages of dependencies as pinned:
// 33.0 MB, of which X-Ray takes about half (linked_test.go): it keeps every method of every linked client, and each function links the clients of all
// needs (S3, Cognito and KMS are 10 MB of it).
const largest = 35_000_000

func TestAFunctionStaysSmall(t *testing.T) {
	name := filepath.Join(t.TempDir(), "send-message")
	build := exec.Command("go", "build", "-o", name, "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "./functions/thread/send-message")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	built, err := os.Stat(name)
	require.NoError(t, err)
	t.Logf("send-message has %d bytes", built.Size())
	require.Less(t, built.Size(), int64(largest))
}
