package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience bounds every wait.
const patience = time.Minute

// binary is the command, built once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "agent-runtime-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "agent-runtime"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "agent-runtime"))
	if err != nil {
		return "", err
	}
	_ = os.RemoveAll(dir)
	return string(program), nil
})

// world is a tenant, and what a runtime finds around it: a database, a model, AppSync, Lambda.
type world struct {
	pgtest.World
	t     *testing.T
	db    *pgtest.DB
	model *httptest.Server
	aws   *httptest.Server

	calls   atomic.Int32  // of the model
	gated   atomic.Int32  // this call of the model waits in the middle of its text; 0: none
	reached chan struct{} // it does
	open    chan struct{} // closed: it goes on

	mu        sync.Mutex
	published []string // mutations
	invoked   []string // functions
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, reached: make(chan struct{}, 8), open: make(chan struct{})}
	answers := offline.New(offline.Config{BeforeDelta: func(ctx context.Context, n int) {
		if n == 1 && w.calls.Load() == w.gated.Load() {
			w.reached <- struct{}{}
			select {
			case <-w.open:
			case <-ctx.Done():
			}
		}
	}})
	w.model = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.calls.Add(1)
		answers.ServeHTTP(rw, r)
	}))
	w.aws = httptest.NewServer(http.HandlerFunc(w.cloud))
	t.Cleanup(w.model.Close)
	t.Cleanup(w.aws.Close)
	return w
}

// cloud answers as AppSync and as Lambda.
func (w *world) cloud(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/2015-03-31/functions/"); ok {
		w.invoked = append(w.invoked, strings.TrimSuffix(name, "/invocations"))
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	var asked struct {
		Query string `json:"query"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	topic := "publishThreadEvent"
	if strings.Contains(asked.Query, "publishAgentActivity") {
		topic = "publishAgentActivity"
	}
	w.published = append(w.published, topic)
	fmt.Fprintf(rw, `{"data":{%q:{}}}`, topic)
}

func (w *world) woken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.invoked...)
}

// environment is all that a container is given.
func (w *world) environment() []string {
	return []string{"PORT=0", "DATABASE_URL=" + w.db.AppTCPURL, "DATABASE_MAX_CONNS=4", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME=" + w.model.URL,
		"APPSYNC_URL=" + w.aws.URL, "AWS_ENDPOINT_URL_LAMBDA=" + w.aws.URL, "FUNCTION_PREFIX=agentplatform-test-",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true"}
}

// ask is a new thread with one message; it gives the turn that is to answer.
func (w *world) ask(body string) (th thread.Thread, turnID string) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		if th, err = thread.Create(w.t.Context(), tx, w.TenantID, thread.New{}); err != nil {
			return err
		}
		asked, err := turn.Request(w.t.Context(), tx, w.TenantID, turn.Ask{ThreadID: th.ID, Body: body, OnBusy: turn.Enqueue, UserID: w.UserID})
		turnID = asked.TurnID
		return err
	}))
	return th, turnID
}

func (w *world) turn(id string) turn.Turn {
	w.t.Helper()
	got, err := turn.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

func (w *world) dispatch(turnID string) []byte {
	w.t.Helper()
	body, err := json.Marshal(turn.Dispatch{TenantID: w.TenantID, TurnID: turnID})
	require.NoError(w.t, err)
	return body
}

func (w *world) wait() {
	w.t.Helper()
	select {
	case <-w.reached:
	case <-time.After(patience):
		w.t.Fatal("the model was not asked")
	}
}

// process is the real command in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	done chan struct{}
	mu   sync.Mutex
	said strings.Builder
}

// start runs the command with this environment and nothing else, until it serves. The test ends it.
func start(t *testing.T, env []string) *process {
	t.Helper()
	p := launch(t, env)
	select {
	case <-p.done:
		t.Fatalf("the runtime ended: %s", p.output())
	default:
	}
	return p
}

// launch is start for a command that may end instead.
func launch(t *testing.T, env []string) *process {
	t.Helper()
	program, err := binary()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "agent-runtime")
	require.NoError(t, os.WriteFile(path, []byte(program), 0o755))
	cmd := exec.Command(path)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	serving, started := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // to Linux a child's parent is the thread that forked it, and the child dies with it
		started <- cmd.Start()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.note(lines.Text(), serving)
		}
		_ = cmd.Wait() // exit tells
		close(p.done)
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	select {
	case <-serving:
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("the runtime does not serve: %s", p.output())
	}
	return p
}

func (p *process) note(line string, serving chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.WriteString(line + "\n")
	var entry struct{ Message, Address string }
	if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "serving" {
		_, port, _ := net.SplitHostPort(entry.Address)
		p.url = "http://127.0.0.1:" + port
		close(serving)
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// exit waits for the end and gives the exit code; -1 after a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("the runtime does not end: %s", p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}
