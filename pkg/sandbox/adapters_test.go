package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/codeinterpreter"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	local "github.com/agentplatform/agentplatform/pkg/local/sandbox"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

func TestMain(m *testing.M) {
	local.Worker()
	var err error
	if scratch, err = os.MkdirTemp("", "sandbox"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

var scratch string

// workers is the program of workers: this one, in any case without the race detector, by which a script would take ten times its time and memory.
var workers = sync.OnceValues(func() (string, error) {
	if !raced {
		return "", nil
	}
	program := filepath.Join(scratch, "worker")
	out, err := exec.Command("go", "test", "-c", "-o", program, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return program, err
})

func openLocal(t *testing.T, l sandbox.Limits) sandbox.Sandbox {
	program, err := workers()
	require.NoError(t, err)
	s, err := local.Open(local.Config{Dir: filepath.Join(t.TempDir(), "empty"), Limits: l, Program: program})
	require.NoError(t, err)
	return s
}

func TestContractLocal(t *testing.T) {
	t.Parallel()
	testContract(t, openLocal, buffers)
}

// What functions in processes of their own ask on one machine: the interpreter in place of the service's.
func TestContractCodeInterpreterHere(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T, l sandbox.Limits) sandbox.Sandbox {
		behind := awsapi.InterpreterLimits()
		behind.CPU, behind.Wall, behind.Memory = l.CPU, l.Wall, l.Memory
		return interpreter(t, l, openLocal(t, behind))
	}, buffers)
}

// What the service runs programs by: Node.js. Its own wire is awsapi's here, and its virtual machine this one.
func openNode(t *testing.T, l sandbox.Limits) sandbox.Sandbox { return interpreter(t, l, node{}) }

// One script of each outcome; TestContractCodeInterpreterNode runs them all.
func TestCodeInterpreterNode(t *testing.T) {
	t.Parallel()
	s := openNode(t, patient())
	require.Equal(t, `{"a":1}`, string(run(t, s, `console.log("hi"); return input`, `{"a":1}`).Value))
	r := run(t, s, "console.log(1)\n\nnoSuchName()", "")
	require.Equal(t, "1\n", r.Stdout)
	require.Equal(t, "ReferenceError: noSuchName is not defined (line 3)", r.Error)
	heavy["lines"].run(t, s)
	heavy["arrays"].run(t, openNode(t, small()))
	endless["a loop that has printed"].run(t, openNode(t, quick()))
}

// interpreter is the cloud's adapter over AWS's wire form, with what runs the programs behind it.
func interpreter(t *testing.T, l sandbox.Limits, behind sandbox.Sandbox) sandbox.Sandbox {
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", InterpreterID: "local", Sandbox: behind,
		Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler()}))
	t.Cleanup(server.Close)
	client := bedrockagentcore.New(bedrockagentcore.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", "")})
	return codeinterpreter.New(codeinterpreter.Config{Client: client, ID: "local", Limits: l})
}

// node runs the program that is a script's input, as Node.js 20 or later runs CommonJS.
type node struct{}

func (node) Run(ctx context.Context, s sandbox.Script) (sandbox.Result, error) {
	var program string
	if err := json.Unmarshal(s.Input, &program); err != nil {
		return sandbox.Result{}, err
	}
	file, err := os.CreateTemp("", "program-*.cjs") // longer than an argument may be
	if err != nil {
		return sandbox.Result{}, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(program); err != nil {
		return sandbox.Result{}, err
	}
	if err := file.Close(); err != nil {
		return sandbox.Result{}, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", file.Name())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the script's process ends with it, as the service's machine does
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	r := sandbox.Result{Status: sandbox.StatusOK, Stdout: stdout.String(), Error: stderr.String()}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		r.Status = sandbox.StatusError
	case err != nil:
		return r, err
	}
	return r, nil
}
