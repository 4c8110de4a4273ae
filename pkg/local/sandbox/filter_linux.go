package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of struct seccomp_data, which a filter reads: the call's number, its architecture, and its first argument's lower half on a little-endian machine.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetFirst  = 16
)

// computing are the system calls that a worker has left: memory, threads, time, signals among its own threads, its three pipes.
var computing = append([]uint32{
	unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_CLOSE,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_GETTID, unix.SYS_GETPID,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, // Go's scheduler waits with these
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}, computingHere...)

// filter has the kernel refuse every other system call to all threads of this process, for good: EPERM, as if the process were not allowed to, and ENOSYS
// for the one that libraries have another way for.
func filter() error {
	if auditArch == 0 {
		return fmt.Errorf("there is no filter for %s", runtime.GOARCH)
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		any   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	allow := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW}
	deny := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS}, // another architecture's call
		{Code: load, K: offsetNumber},
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, // its flags are where a filter cannot read them
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: equal, K: unix.SYS_CLONE, Jf: 4}, // a thread, and never a process
		{Code: load, K: offsetFirst},
		{Code: any, K: unix.CLONE_THREAD, Jf: 1},
		allow,
		deny,
		{Code: equal, K: unix.SYS_TGKILL, Jf: 4}, // to itself
		{Code: load, K: offsetFirst},
		{Code: equal, K: uint32(unix.Getpid()), Jf: 1},
		allow,
		deny,
	}
	for _, number := range computing {
		program = append(program, unix.SockFilter{Code: equal, K: number, Jf: 1}, allow)
	}
	program = append(program, deny)
	code := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&code)))
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return fmt.Errorf("seccomp: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d cannot take the filter", thread)
	}
	return nil
}
