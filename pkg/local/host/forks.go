package host

import (
	"os/exec"
	"runtime"
)

// forks starts processes from one thread. To Linux a child's parent is the thread that forked it, and children are to end with this process: so the
// thread lives until all have ended.
type forks struct {
	wanted chan fork
}

type fork struct {
	cmd  *exec.Cmd
	done chan error
}

func newForks() forks {
	f := forks{make(chan fork)}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		for w := range f.wanted {
			w.done <- w.cmd.Start()
		}
	}()
	return f
}

func (f forks) start(cmd *exec.Cmd) error {
	w := fork{cmd, make(chan error, 1)}
	f.wanted <- w
	return <-w.done
}

// end ends the thread; all processes have ended.
func (f forks) end() { close(f.wanted) }
