//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

// peak is the most memory that this process had, in bytes, as macOS counts it.
func peak() int {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int(u.Maxrss)
}

// self is the path of this program.
func self() (string, error) { return os.Executable() }

// dieWithParent does nothing where the kernel cannot: the worker's standard input ends.
func dieWithParent(*syscall.SysProcAttr) {}

// closeOnExec keeps descriptors that this program was started with from its workers; all others are closed anyway.
func closeOnExec() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// confine sets the limits that the kernel holds. There is no filter.
func confine(l port.Limits) (open string, err error) {
	seconds := uint64((l.CPU + grace).Seconds())
	for _, limit := range []struct {
		resource int
		most     uint64
	}{{syscall.RLIMIT_CPU, seconds}, {syscall.RLIMIT_FSIZE, 0}, {syscall.RLIMIT_CORE, 0}, {syscall.RLIMIT_NOFILE, 16}} {
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return "", err
		}
	}
	return "this system has none", nil
}
