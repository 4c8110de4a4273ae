package sandbox

import (
	"encoding/json"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

// order is what a worker is told, on standard input, which stays open: its end is the platform's.
type order struct {
	Request []byte // for the runner
	Limits  port.Limits
}

// answer is what it says, on standard output, before it ends.
type answer struct {
	Outcome port.Outcome
	Stdout  string
	Took    time.Duration
	Open    string `json:",omitempty"` // why system calls are not filtered
}

const (
	name     = "agentplatform-sandbox-worker" // argument zero, which no other process has
	maxStack = 128 << 20                      // bytes; of a goroutine. The interpreter's own bound comes first
	tick     = 10 * time.Millisecond
	grace    = 2 * time.Second // from the worker's own limits to those that end it from outside
)

var hooked bool // Worker was called

// Worker is called first in the main function of a program that opens a sandbox: a worker is the same program, started once more. In a worker it does
// not return.
func Worker() {
	hooked = true
	if len(os.Args) != 1 || os.Args[0] != name {
		return
	}
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	w := &worker{began: time.Now()}
	if err := json.NewDecoder(os.Stdin).Decode(&w.order); err != nil {
		os.Exit(1) // the platform has gone
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // likewise
	}()
	open, err := confine(w.order.Limits)
	if err != nil {
		_, _ = os.Stderr.WriteString("confining the worker: " + err.Error())
		os.Exit(1)
	}
	w.open, w.spent, w.used = open, cpu(), peak()
	go w.watch()
	w.end(w.run())
}

// worker runs one script. Whoever ends first ends the process.
type worker struct {
	order order
	began time.Time
	spent time.Duration // of computing, before the script
	used  int           // of memory, likewise
	open  string

	mu     sync.Mutex
	stdout []byte
}

// print takes what the script writes; what is too long is the script's end.
func (w *worker) print(s string) {
	w.mu.Lock()
	w.stdout = append(w.stdout, s...)
	over := len(w.stdout) > w.order.Limits.Output
	w.mu.Unlock()
	if over {
		w.end(port.Outcome{Status: port.StatusOutput})
	}
}

// end answers and ends the process. A script that had more memory than it may, be it for a moment, has met that limit, whatever came of it: an interpreter
// out of memory has none left to say so.
func (w *worker) end(o port.Outcome) {
	w.mu.Lock() // for ever: who comes second waits for the process's end
	if peak()-w.used > w.order.Limits.Memory {
		o = port.Outcome{Status: port.StatusMemory}
	}
	out := w.stdout
	if max := w.order.Limits.Output + utf8.UTFMax; len(out) > max {
		out = out[:max]
	}
	text, err := json.Marshal(answer{Outcome: o, Stdout: string(out), Took: time.Since(w.began), Open: w.open})
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watch ends a script that takes too long or too much, wherever it is: also inside a regular expression.
func (w *worker) watch() {
	l := w.order.Limits
	for time.Since(w.began) < l.Wall {
		if cpu()-w.spent >= l.CPU || peak()-w.used > l.Memory {
			break
		}
		time.Sleep(tick)
	}
	w.end(port.Outcome{Status: port.StatusTimeout})
}

// cpu is what this process has computed.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
