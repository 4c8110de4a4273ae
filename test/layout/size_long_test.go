//go:build long

package layout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// largest is how large a function may be, in bytes: a cold start reads all of it. X-Ray takes about half (linked_test.go): it keeps every method
// of whatever is linked. Measured: 21 MB with a database only, 27 MB with most; the HTTP GraphQL function, which is all that answer a field,
// with S3, KMS and Cognito, has 34 MB.
var largest = map[string]int64{
	"./functions/thread/send-message":   24_000_000,
	"./functions/tenant/create-tenant":  28_000_000,
	"./functions/ledger/publish-anchor": 28_000_000,
	"./functions/graphql/graphql":       35_000_000,
}

func TestAFunctionStaysSmall(t *testing.T) {
	for function, most := range largest {
		name := filepath.Join(t.TempDir(), "bootstrap")
		build := exec.Command("go", "build", "-o", name, "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", function)
		build.Dir = root
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		built, err := os.Stat(name)
		require.NoError(t, err)
		t.Logf("%s has %d bytes", function, built.Size())
		require.Less(t, built.Size(), most, function)
	}
}
