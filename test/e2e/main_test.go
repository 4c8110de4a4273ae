// Package e2e drives the platform from outside: the real binary, in a process of its own, over its public APIs only.
//
// The *.txt files are scripts that one reads without knowing Go; README.md lists their commands. What a script cannot say is in Go:
// bad input, kills and restarts, the real Amplify client and aws CLI, and the commands of the documentation.
//
// The binary is built once. Tests that leave the platform as they found it, but for rows, share one; the others start their own. No
// process and no file outlives the tests, not even when these are killed (on Linux).
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The platform and the verifier, built by TestMain.
var binary, verifier string

// functionsVariable names a folder of the functions' binaries, for platforms that run the functions as AWS does: each in processes of its own. Empty: in
// the platform's process.
const functionsVariable = "AGENTPLATFORM_TEST_FUNCTIONS"

var functions = os.Getenv(functionsVariable)

const startsTitle = "from the start of a function's process to the first invoke it asks for:"

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	scratch, err := os.MkdirTemp("", "agentplatform-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = removeAll(scratch) }()
	binary, verifier = filepath.Join(scratch, "local"), filepath.Join(scratch, "audit-verifier")
	build := exec.Command("go", "build", "-o", scratch+string(filepath.Separator), "../../cmd/local", "../../cmd/audit-verifier")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the platform:", err)
		return 1
	}
	code = m.Run()
	if p := shared.platform; p != nil {
		if functions != "" {
			fmt.Printf("\n%s\n%s", startsTitle, p.functionStarts())
		}
		if exit := p.stop(); exit != 0 && code == 0 {
			fmt.Fprintln(os.Stderr, "the shared platform ended with exit code", exit)
			code = 1
		}
		if code != 0 {
			fmt.Fprintf(os.Stderr, "--- the shared platform said:\n%s---\n", p.output.String())
		}
		_ = removeAll(p.dir)
	}
	return code
}

// shared is the platform of the tests that need none of their own.
var shared struct {
	sync.Once
	*platform
	err error
}

// sharedPlatform is started by the first test that asks, and stopped by TestMain. Its tests run at the same time as others': they look
// only at what they made.
func sharedPlatform(t testing.TB) *platform {
	t.Helper()
	shared.Do(func() {
		dir, err := os.MkdirTemp("", "agentplatform-e2e-")
		if err == nil {
			shared.platform, err = start(dir)
		}
		shared.err = err
	})
	require.NoError(t, shared.err)
	return shared.platform
}
