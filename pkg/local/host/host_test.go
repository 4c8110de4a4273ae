package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/local/host"
)

// folder holds the tests' function.
var folder string

func TestMain(m *testing.M) {
	if folder = os.Getenv(toBeKilled); folder != "" {
		hostUntilKilled()
	}
	code := func() int {
		var err error
		if folder, err = os.MkdirTemp("", "agentplatform-host-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(folder, "one"), "./testdata/function")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
		if err := os.Link(filepath.Join(folder, "one"), filepath.Join(folder, "two")); err != nil {
			panic(err)
		}
		return m.Run()
	}()
	os.Exit(code)
}

// toBeKilled has the test's binary be a host of the functions in that folder, which prints an instance's process id and waits.
const toBeKilled = "HOST_TO_BE_KILLED"

func hostUntilKilled() {
	h, err := host.New(host.Config{Dir: folder, Functions: []host.Function{{Name: "one"}}, StartLimit: time.Minute})
	if err != nil {
		panic(err)
	}
	raw, err := h.Invoke(context.Background(), "one", []byte(`{}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", raw)
	select {}
}

// However the host ends, its functions end.
func TestInstancesOfAKilledHost(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), toBeKilled+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var a answer
	require.NoError(t, json.NewDecoder(out).Decode(&a))
	require.NoError(t, syscall.Kill(a.PID, 0))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return gone(a.PID) }, time.Minute, time.Millisecond)
}

// gone: the process has ended, even if nobody has asked how.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(status), ") Z ")
}

// log is text that several write.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start is a host of the functions one and two, which leaves nothing behind.
func start(t *testing.T, change func(c *host.Config)) *host.Host {
	t.Helper()
	quiet := goleak.IgnoreCurrent()
	c := host.Config{Dir: folder, Functions: []host.Function{{Name: "one", Timeout: time.Minute}, {Name: "two", Timeout: time.Minute}},
		StartLimit: time.Minute, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	h, err := host.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.Stop()
		goleak.VerifyNone(t, quiet, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")) // of a request that was refused: it lingers
	})
	return h
}

type answer struct {
	PID                             int
	Text, Left, ARN, Request, Trace string
}

func invoke(t *testing.T, h *host.Host, name, event string) answer {
	t.Helper()
	raw, err := h.Invoke(t.Context(), name, []byte(event))
	require.NoError(t, err)
	var a answer
	require.NoError(t, json.Unmarshal(raw, &a), "%s", raw)
	return a
}

// failed is an invoke that must fail in the function.
func failed(t *testing.T, h *host.Host, name, event string) *host.FunctionError {
	t.Helper()
	_, err := h.Invoke(t.Context(), name, []byte(event))
	var f *host.FunctionError
	require.ErrorAs(t, err, &f)
	var body struct{ ErrorType, ErrorMessage string }
	require.NoError(t, json.Unmarshal(f.Payload, &body))
	require.Equal(t, f.Type, body.ErrorType)
	require.Equal(t, f.Message, body.ErrorMessage)
	return f
}

func TestAnInstanceStaysForTheNextInvoke(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Prefix = "agentplatform-test-" })
	first := invoke(t, h, "one", `{"text":"a"}`)
	require.Equal(t, "a", first.Text)
	require.Equal(t, "arn:aws:lambda:us-east-1:000000000000:function:agentplatform-test-one", first.ARN)
	require.Regexp(t, `^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0$`, first.Trace)
	left, err := time.ParseDuration(first.Left)
	require.NoError(t, err)
	require.LessOrEqual(t, left, time.Minute)
	for range 20 {
		again := invoke(t, h, "one", `{"text":"b"}`)
		require.Equal(t, first.PID, again.PID)
		require.NotEqual(t, first.Request, again.Request)
	}
	starts := h.Starts()
	require.Len(t, starts, 1)
	require.Equal(t, "one", starts[0].Function)
	require.Equal(t, 1, starts[0].Starts)
	require.Equal(t, 1, starts[0].Instances)
	require.Positive(t, starts[0].P50)
}

// Each of many invokes at a time has an instance of its own, up to the bound; then they wait.
func TestInstancesUnderLoad(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Functions[0].Concurrency = 3 })
	dir := t.TempDir()
	pids := make(chan int, 6)
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			raw, err := h.Invoke(t.Context(), "one", fmt.Appendf(nil, `{"do":"file","text":%q}`, filepath.Join(dir, fmt.Sprint(n))))
			if err != nil {
				t.Error(err)
			}
			var a answer
			_ = json.Unmarshal(raw, &a)
			pids <- a.PID
		})
	}
	require.Eventually(t, func() bool { s := h.Starts(); return len(s) == 1 && s[0].Starts == 3 }, time.Minute, time.Millisecond)
	require.Empty(t, pids)
	for n := range 6 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600))
	}
	all.Wait()
	close(pids)
	different := map[int]int{}
	for pid := range pids {
		different[pid]++
	}
	require.Len(t, different, 3)
	require.Equal(t, 3, h.Starts()[0].Starts)
}

// At the bound on all instances the idle ones of one function make room for another's.
func TestIdleInstancesMakeRoom(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Instances = 1 })
	for range 3 {
		one, two := invoke(t, h, "one", `{}`), invoke(t, h, "two", `{}`)
		require.NotEqual(t, one.PID, two.PID)
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if _, err := h.Invoke(t.Context(), []string{"one", "two"}[n%2], []byte(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestCrashes(t *testing.T) {
	h := start(t, nil)
	before := invoke(t, h, "one", `{}`)
	f := failed(t, h, "one", `{"do":"exit","n":7}`)
	require.Equal(t, "Runtime.ExitError", f.Type)
	require.Regexp(t, `^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: exit status 7$`, f.Message)
	require.Regexp(t, `Runtime exited without providing a reason$`, failed(t, h, "one", `{"do":"exit"}`).Message)
	f = failed(t, h, "one", `{"do":"panic","text":"test"}`)
	require.Equal(t, "string", f.Type)
	require.Equal(t, "of test", f.Message)
	f = failed(t, h, "one", `{"do":"fail","text":"no luck"}`)
	require.Equal(t, "errorString", f.Type)
	require.Equal(t, "no luck", f.Message)
	after := invoke(t, h, "one", `{}`)
	require.NotEqual(t, before.PID, after.PID)

	require.NoError(t, syscall.Kill(after.PID, syscall.SIGKILL)) // an idle one
	require.Eventually(t, func() bool { return h.Starts()[0].Instances == 0 }, time.Minute, time.Millisecond)
	require.NotEqual(t, after.PID, invoke(t, h, "one", `{}`).PID)
}

func TestTimeout(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Functions[0].Timeout = 200 * time.Millisecond })
	before := invoke(t, h, "one", `{}`)
	f := failed(t, h, "one", `{"do":"hang"}`)
	require.Equal(t, "Sandbox.Timedout", f.Type)
	require.Regexp(t, `^RequestId: [0-9a-f-]{36} Error: Task timed out after 0.20 seconds$`, f.Message)
	require.ErrorIs(t, syscall.Kill(before.PID, 0), syscall.ESRCH, "it is killed")
	require.NotEqual(t, before.PID, invoke(t, h, "one", `{}`).PID)
}

func TestPayloads(t *testing.T) {
	h := start(t, nil)
	text := func(n int) []byte { return []byte(`{"do":"` + strings.Repeat("x", n-len(`{"do":""}`)) + `"}`) }
	_, err := h.Invoke(t.Context(), "one", text(host.MaxPayload))
	require.NoError(t, err)
	_, err = h.Invoke(t.Context(), "one", text(host.MaxPayload+1))
	require.ErrorIs(t, err, host.ErrTooLarge)
	_, err = h.Invoke(t.Context(), "three", nil)
	require.ErrorIs(t, err, host.ErrUnknown)

	raw, err := h.Invoke(t.Context(), "one", fmt.Appendf(nil, `{"do":"large","n":%d}`, host.MaxPayload-2))
	require.NoError(t, err)
	require.Len(t, raw, host.MaxPayload)
	f := failed(t, h, "one", fmt.Sprintf(`{"do":"large","n":%d}`, host.MaxPayload+99))
	require.Equal(t, "Function.ResponseSizeTooLarge", f.Type)
	require.Equal(t, "Response payload size exceeded maximum allowed payload size (6291556 bytes).", f.Message)
	invoke(t, h, "one", `{}`)
}

func TestStartsThatFail(t *testing.T) {
	how := map[string]string{"one": "exit", "two": "report"}
	var said log
	h := start(t, func(c *host.Config) {
		c.Log = slog.New(slog.NewTextHandler(&said, nil))
		c.Environment = func(name string) []string { return []string{"START=" + how[name]} }
	})
	for range 2 { // each invoke tries again
		f := failed(t, h, "one", `{}`)
		require.Equal(t, "Runtime.ExitError", f.Type)
		require.Contains(t, f.Message, "exit status 3")
		f = failed(t, h, "two", `{}`)
		require.Equal(t, "Function.NoSetting", f.Type)
		require.Equal(t, "a setting is missing", f.Message)
	}
	require.Contains(t, said.String(), `level=WARN msg="cannot start: no reason" function=one`)
	require.Empty(t, h.Starts())

	slow := start(t, func(c *host.Config) {
		c.StartLimit = 200 * time.Millisecond
		c.Environment = func(string) []string { return []string{"START=never"} }
	})
	require.Equal(t, "Sandbox.Timedout", failed(t, slow, "one", `{}`).Type)

	_, err := host.New(host.Config{Dir: folder, Functions: []host.Function{{Name: "three"}}})
	require.ErrorContains(t, err, "the function three has no program at "+folder)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one"), []byte("no program"), 0o700))
	broken, err := host.New(host.Config{Dir: dir, Functions: []host.Function{{Name: "one"}}})
	require.NoError(t, err)
	defer broken.Stop()
	_, err = broken.Invoke(t.Context(), "one", []byte(`{}`))
	require.ErrorContains(t, err, "the function one cannot be started")
}

// A caller that goes away while its invoke waits takes it along; one whose invoke has begun leaves it to its end.
func TestACallerGoesAway(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Functions[0].Concurrency = 1 })
	dir := t.TempDir()
	file := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	ended := make(chan error)
	begin := func(ctx context.Context, n int) {
		go func() {
			_, err := h.Invoke(ctx, "one", fmt.Appendf(nil, `{"do":"file","text":%q}`, file(n)))
			ended <- err
		}()
		if ctx.Err() == nil {
			require.Eventually(t, func() bool { _, err := os.Stat(file(n) + ".begun"); return err == nil }, time.Minute, time.Millisecond)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	begin(t.Context(), 0)
	begin(gone, 1)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, os.WriteFile(file(0), nil, 0o600))
	require.NoError(t, <-ended)
	invoke(t, h, "one", `{}`)
	require.NoFileExists(t, file(1)+".begun")

	gone, cancel = context.WithCancel(t.Context())
	begin(gone, 2)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, os.WriteFile(file(2), nil, 0o600))
	require.Eventually(t, func() bool { _, err := os.Stat(file(2)); return os.IsNotExist(err) }, time.Minute, time.Millisecond)
	invoke(t, h, "one", `{}`)
}

// Stop ends what runs, what starts and what waits.
func TestStop(t *testing.T) {
	h := start(t, func(c *host.Config) { c.Functions[0].Concurrency = 1 })
	pid := invoke(t, h, "one", `{}`).PID
	errs := make(chan error)
	for range 2 {
		go func() { _, err := h.Invoke(t.Context(), "one", []byte(`{"do":"hang"}`)); errs <- err }()
	}
	go func() { _, err := h.Invoke(t.Context(), "two", []byte(`{"do":"hang"}`)); errs <- err }()
	h.Stop()
	for range 3 {
		require.ErrorIs(t, <-errs, host.ErrStopped)
	}
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	_, err := h.Invoke(t.Context(), "one", []byte(`{}`))
	require.ErrorIs(t, err, host.ErrStopped)
}

func TestEnvironmentAndLog(t *testing.T) {
	t.Setenv("OF_THE_HOST", "secret")
	var said log
	h := start(t, func(c *host.Config) {
		c.Functions[0].Memory = 256
		c.Log = slog.New(slog.NewTextHandler(&said, nil))
		c.Environment = func(name string) []string { return []string{"OWN=" + name} }
	})
	raw, err := h.Invoke(t.Context(), "one", []byte(`{"do":"environment"}`))
	require.NoError(t, err)
	var environment []string
	require.NoError(t, json.Unmarshal(raw, &environment))
	for _, v := range []string{"OWN=one", "AWS_LAMBDA_FUNCTION_NAME=one", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "AWS_REGION=us-east-1", "LAMBDA_TASK_ROOT=" + folder} {
		require.Contains(t, environment, v)
	}
	require.NotContains(t, string(raw), "OF_THE_HOST")

	invoke(t, h, "one", `{"do":"log","text":"hello","n":7}`)
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "plain hello") }, time.Minute, time.Millisecond)
	require.Regexp(t, `level=WARN msg=hello function=one n=7 requestId=[0-9a-f-]{36}`, said.String())
	require.Contains(t, said.String(), `level=WARN msg="plain hello" function=one`)
}
