package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startTime = 90 * time.Second // for a start on a busy machine, the database made
	waitTime  = 45 * time.Second // for anything that a running platform does
	upLine    = "Ctrl-C stops the platform"
)

// process is a program that runs in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	output *transcript // stdout and stderr as they came
	stderr *transcript
	done   chan struct{}
}

// launch starts cmd, its output captured. To Linux a child's parent is the thread that forked it, and the child is to die with this
// process: so the thread lives as long as the child.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: newTranscript(nil), done: make(chan struct{})}
	p.stderr = newTranscript(p.output)
	cmd.Stdout, cmd.Stderr = p.output, p.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = 5 * time.Second // for children that hold the pipes
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // exit tells
			p.output.close()
			p.stderr.close()
			close(p.done)
		}
	}()
	return p, <-started
}

// signal sends a signal to the program and, as a terminal does, to its group.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done: // the number may be another program's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// exit waits for the end and gives the exit code; -1 after a signal. Who does not end in time is killed.
func (p *process) exit() int {
	select {
	case <-p.done:
	case <-time.After(waitTime):
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	return p.cmd.ProcessState.ExitCode()
}

// platform is a running platform.
type platform struct {
	*process
	dir      string // DATA_DIR
	env      []string
	Outputs  outputs
	Password string
}

// environment is the machine's without what would configure the platform, and with settings of the test's own.
func environment(dir string, settings ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "DATA_DIR", "PORT", "TLS_PORT", "LOCAL_PASSWORD", "DATABASE_URL", "MODEL", "MODEL_ID", "LOG_LEVEL", "SERVICE_PLATFORM_OPERATOR_EMAILS",
			"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "GOCOVERDIR", "ANCHOR_INTERVAL", "ANCHOR_WITNESS_URL", "ANCHOR_WITNESS_KEY", "AGENT_RUNTIMES", functionsVariable:
		default:
			env = append(env, v)
		}
	}
	return append(append(env, "DATA_DIR="+dir, "PORT=0", "TLS_PORT=0"), settings...)
}

// command is the platform's, not yet started.
func command(dir string, settings []string, args ...string) *exec.Cmd {
	if functions != "" {
		args = append([]string{"-functions", functions}, args...)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = environment(dir, settings...)
	return cmd
}

var (
	apiLine      = regexp.MustCompile(`(?m)^API\s+(http://\S+)/graphql$`)
	passwordLine = regexp.MustCompile(`(?m)^password: (.+)$`)
)

// start starts a platform on dir and waits until it serves.
func start(dir string, settings ...string) (*platform, error) {
	proc, err := launch(command(dir, settings))
	if err != nil {
		return nil, err
	}
	p := &platform{process: proc, dir: dir, env: settings}
	if err := p.ready(); err != nil {
		p.signal(syscall.SIGKILL)
		<-p.done
		return nil, fmt.Errorf("%w; the platform said:\n%s", err, p.output)
	}
	return p, nil
}

func (p *platform) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if err := p.output.await(ctx, upLine); err != nil {
		return err
	}
	text := p.output.String()
	api, password := apiLine.FindStringSubmatch(text), passwordLine.FindStringSubmatch(text)
	if api == nil || password == nil {
		return errors.New("no API or password line")
	}
	p.Password = password[1]
	return getJSON(ctx, api[1]+"/local/outputs.json", &p.Outputs)
}

// startPlatform starts a platform of the test's own on an empty data directory. It is stopped with the test.
func startPlatform(t testing.TB, settings ...string) *platform {
	t.Helper()
	return startOn(t, dataDir(t), settings...)
}

// startOn starts a platform on a data directory.
func startOn(t testing.TB, dir string, settings ...string) *platform {
	t.Helper()
	p, err := start(dir, settings...)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.signal(syscall.SIGINT)
		p.exit()
		if t.Failed() {
			t.Logf("the platform said:\n%s", p.output)
		}
	})
	return p
}

// functionStarts is the platform's table of how long its functions took to start.
func (p *platform) functionStarts() string {
	res, err := plainClient.Get(p.Outputs.APIURL + "/local/functions")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// stop is Ctrl-C; it gives the exit code.
func (p *platform) stop() int {
	p.signal(syscall.SIGINT)
	return p.exit()
}

// kill is kill -9.
func (p *platform) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// restart starts the platform again on the same data, with the same settings. It must have ended.
func (p *platform) restart(t testing.TB, settings ...string) *platform {
	t.Helper()
	return startOn(t, p.dir, append(append([]string{}, p.env...), settings...)...)
}

// dataDir is an empty folder, removed with the test. t.TempDir would fail where the database of a killed platform still writes.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agentplatform-e2e-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeAll(dir)) })
	return dir
}

// removeAll removes a folder, patiently.
func removeAll(dir string) error {
	deadline := time.After(waitTime)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline:
			return err
		}
	}
}

// transcript is text that grows.
type transcript struct {
	mu     sync.Mutex
	text   bytes.Buffer
	closed bool
	grown  chan struct{} // closed and replaced whenever there is more
	also   *transcript
}

func newTranscript(also *transcript) *transcript {
	return &transcript{grown: make(chan struct{}), also: also}
}

func (t *transcript) Write(b []byte) (int, error) {
	if t.also != nil {
		_, _ = t.also.Write(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
	return t.text.Write(b)
}

func (t *transcript) wake() {
	close(t.grown)
	t.grown = make(chan struct{})
}

func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.wake()
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// await waits until the text contains part.
func (t *transcript) await(ctx context.Context, part string) error {
	for {
		t.mu.Lock()
		found, closed, grown := strings.Contains(t.text.String(), part), t.closed, t.grown
		t.mu.Unlock()
		switch {
		case found:
			return nil
		case closed:
			return fmt.Errorf("the program ended without %q", part)
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return fmt.Errorf("no %q in time", part)
		}
	}
}
