package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

const (
	// room is address space beyond a script's memory, for what is reserved more than it is used: Go's heap as it grows, and in a program with C in it some
	// 72 MiB a thread. The interpreter's own limit is below, and the worker's watch is over memory in use.
	room = 1 << 30

	// Of a worker that could have root's rights: nobody's, who owns no file and is no server's user. Threads count as processes here.
	user      = 65533
	processes = 512
)

// self is this program as the kernel knows it, wherever its file is by now and whoever may read the folder.
func self() (string, error) { return "/proc/self/exe", nil }

// dieWithParent has the kernel end the worker when the platform is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// closeOnExec keeps descriptors that this program was started with from its workers; all others are closed anyway.
func closeOnExec() {
	if unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := 3; fd < 1024; fd++ { // a kernel before 5.11
		unix.CloseOnExec(fd)
	}
}

// confine gives up everything that computing does not take. open says why system calls are not filtered, if so.
func confine(l port.Limits) (open string, err error) {
	mapped, err := addressSpace()
	if err != nil {
		return "", err
	}
	if status, err = os.Open("/proc/self/status"); err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		dropRoot()
	}
	seconds := uint64((l.CPU + grace).Seconds()) // after the worker's own watch
	for _, limit := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_AS, mapped + uint64(l.Memory) + room},
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, 16},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.most, Max: limit.most}); err != nil {
			return "", fmt.Errorf("limit %d: %w", limit.resource, err)
		}
	}
	runtime.LockOSThread() // no_new_privs is the thread's, until the filter takes it to all, and who sets the filter must have it
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", fmt.Errorf("no_new_privs: %w", err)
	}
	return reason(filter()), nil
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// dropRoot makes the working directory, which is empty, the root, and the worker nobody. A container may have taken root's rights to do so; what it has left
// of them goes by the filter.
func dropRoot() {
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: processes, Max: processes})
	if syscall.Chroot(".") == nil {
		_ = syscall.Chdir("/")
	}
	if syscall.Setgroups(nil) == nil && syscall.Setresgid(user, user, user) == nil {
		_ = syscall.Setresuid(user, user, user)
	}
}

// status tells of this process. It stays open: nothing can be opened later.
var status *os.File

// peak is the most memory that this process had, in bytes. Not getrusage's, which begins with the platform's own: the process that it was made of.
func peak() int {
	text := make([]byte, 4096)
	n, err := status.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	_, rest, _ := strings.Cut(string(text[:n]), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// addressSpace is how much of it the process has mapped or reserved by now, in bytes: Go reserves much that it never touches.
func addressSpace() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(pages, 10, 64)
	return n * uint64(os.Getpagesize()), err
}
