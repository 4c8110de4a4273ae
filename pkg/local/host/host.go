package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// Function is a function as its deployment describes it.
type Function struct {
	Name        string
	Timeout     time.Duration // of one invoke; default 3 s, as Lambda's
	Memory      int           // MiB; the function is told, nothing enforces it. Default 128, as Lambda's
	Concurrency int           // most instances at a time; default Config.Concurrency
}

// Functions are all functions of a manifest.
func Functions(m manifest.Manifest) []Function {
	all := make([]Function, len(m.Rows))
	for i, row := range m.Rows {
		all[i] = Function{Name: row.Name, Timeout: row.Timeout.Duration(), Memory: row.Memory}
		if row.Reserved != nil {
			all[i].Concurrency = *row.Reserved
		}
	}
	return all
}

// Config is what a Host needs.
type Config struct {
	Dir         string                     // where the binaries are, each named as its function. Required
	Functions   []Function                 // which there are. Required
	Environment func(name string) []string // of a function, NAME=value each, beside what Lambda sets itself. Nothing of this process's own is handed on

	Prefix  string // put before a name to give the function's name in AWS
	Region  string // default us-east-1
	Account string // default 000000000000

	Concurrency int           // most instances of one function at a time; default 2 a processor, at least 4
	Instances   int           // most instances of all functions; default 16 a processor, at least 32
	StartLimit  time.Duration // for an instance to ask for its first invoke; default 10 s, as Lambda's
	Log         *slog.Logger  // gets what functions write, a record a line; default slog.Default()
}

// Host runs functions. Make one by New; Stop it.
type Host struct {
	config    Config
	functions map[string]*function
	listener  net.Listener
	server    *http.Server
	forks     forks
	ending    sync.Once

	mu        sync.Mutex
	instances map[string]*instance // by token, until they have ended
	leaving   int                  // of these, how many are making room
	stopped   bool
	running   sync.WaitGroup // processes
}

// New makes a host; it starts no function. A function without a binary makes it fail.
func New(c Config) (*Host, error) {
	c.Region, c.Account = or(c.Region, "us-east-1"), or(c.Account, "000000000000")
	c.Concurrency = or(c.Concurrency, max(4, 2*runtime.NumCPU()))
	c.Instances = or(c.Instances, max(32, 16*runtime.NumCPU()))
	c.StartLimit = or(c.StartLimit, 10*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Environment == nil {
		c.Environment = func(string) []string { return nil }
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, err
	}
	h := &Host{config: c, functions: map[string]*function{}, instances: map[string]*instance{}}
	for _, f := range c.Functions {
		f.Timeout, f.Memory, f.Concurrency = or(f.Timeout, 3*time.Second), or(f.Memory, 128), or(f.Concurrency, c.Concurrency)
		binary := filepath.Join(c.Dir, f.Name)
		if info, err := os.Stat(binary); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			return nil, fmt.Errorf("the function %s has no program at %s; build the functions for this machine, or name another folder", f.Name, binary)
		}
		h.functions[f.Name] = &function{Function: f, binary: binary}
	}
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	h.server = &http.Server{Handler: h.runtimeAPI(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug)}
	h.forks = newForks()
	go func() {
		if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
			c.Log.Error("the functions' Runtime API has ended", "error", err)
		}
	}()
	return h, nil
}

// or is v, or d for the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// Invoke runs a function with a JSON payload, {} if it is empty, and waits for its answer. The error is a *FunctionError when the function failed; ErrUnknown, ErrTooLarge, ErrStopped or ctx's
// own when it was not reached, or not waited for.
func (h *Host) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	f := h.functions[name]
	if f == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("%w: a request to %s must be smaller than %d bytes, this one has %d", ErrTooLarge, name, MaxPayload, len(payload))
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	v := &invocation{id: ident.New(), payload: payload, came: time.Now(), done: make(chan outcome, 1)}
	if err := h.enqueue(f, v); err != nil {
		return nil, err
	}
	select {
	case o := <-v.done:
		return o.answer, o.err
	case <-ctx.Done():
		h.withdraw(f, v)
		return nil, ctx.Err()
	}
}

// Handler is a function to those who call handlers.
func (h *Host) Handler(name string) lambda.Handler { return handler{h, name} }

type handler struct {
	host *Host
	name string
}

func (h handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return h.host.Invoke(ctx, h.name, payload)
}

// Stop ends all instances, whatever they do, and waits for their ends.
func (h *Host) Stop() {
	h.mu.Lock()
	h.stopped = true
	for _, f := range h.functions {
		for _, v := range f.waiting {
			v.end(nil, ErrStopped)
		}
		f.waiting = nil
	}
	for _, i := range h.instances {
		i.kill()
	}
	h.mu.Unlock()
	h.running.Wait()
	h.ending.Do(h.forks.end)
	_ = h.server.Close()
}
