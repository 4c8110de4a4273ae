package sandbox

import (
	"bytes"
	background "context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

// probe is what TestMain is for a program that is started by one of these names: a worker that tries what none can, and a platform that is killed.
func probe() {
	switch os.Args[0] {
	case "confined":
		text, _ := json.Marshal(attempts())
		_, _ = os.Stdout.Write(text)
		os.Exit(0)
	case "platform":
		s, err := Open(Config{Dir: os.Args[1], Limits: forever()})
		if err == nil {
			fmt.Println("open")
			_, err = s.Run(background.Background(), port.Script{Language: port.JavaScript, Code: "for (;;);"})
		}
		fmt.Println(err)
		os.Exit(1)
	}
}

// attempts confines this process and tells what it can do then.
func attempts() map[string]string {
	said := map[string]string{}
	try := func(name string, err error) { said[name] = fmt.Sprint(err) }
	parent := os.Getppid()
	open, err := confine(port.Default)
	try("confine", err)
	said["open"] = open

	_, err = os.Open("/etc/passwd")
	try("read a file", err)
	_, err = os.ReadDir(".")
	try("read the folder", err)
	try("write a file", os.WriteFile("file", []byte("x"), 0o600))
	try("make a folder", os.Mkdir("folder", 0o700))
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	try("a socket", err)
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	try("a local socket", err)
	_, err = net.Dial("tcp", "127.0.0.1:1")
	said["a connection"] = "<nil>"
	if err != nil {
		said["a connection"] = "refused"
	}
	try("kill the platform", unix.Kill(parent, 0))
	try("trace the platform", unix.PtraceAttach(parent))
	_, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(parent), 0, 0, 0, 0, 0)
	try("read its memory", errno)
	try("change a limit", unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1000, Max: 1000}))
	try("mount", unix.Mount("none", "/", "tmpfs", 0, ""))
	try("another root", unix.Chroot("/"))
	try("a namespace", unix.Unshare(unix.CLONE_NEWUSER))
	_, _, errno = unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	try("fork", errno)
	_, _, errno = unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	try("fork anew", errno)
	try("another program", unix.Exec("/bin/true", []string{"true"}, nil))
	said["environment"] = fmt.Sprint(os.Environ())

	var threads, there sync.WaitGroup // what the interpreter's language needs goes on
	there.Add(8)
	for range 8 {
		threads.Go(func() {
			runtime.LockOSThread()
			there.Done()
			there.Wait()
		})
	}
	threads.Wait()
	runtime.GC()
	if b := make([]byte, 32<<20); b[len(b)-1] == 0 {
		said["compute"] = "yes"
	}
	return said
}

func TestWhatAWorkerCannotDo(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: []string{"confined"}, Env: []string{}, Dir: t.TempDir(), Stdout: &stdout, Stderr: &stderr}
	require.NoError(t, cmd.Run(), stderr.String())
	var said map[string]string
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &said), stdout.String())
	require.Equal(t, "", said["open"], "this kernel filters system calls")
	want := map[string]string{"confine": "<nil>", "open": "", "compute": "yes", "environment": "[]", "a connection": "refused",
		"read a file": "open /etc/passwd: operation not permitted", "read the folder": "open .: operation not permitted", "write a file": "open file: operation not permitted",
		"make a folder": "mkdir folder: operation not permitted", "fork anew": "function not implemented"}
	for name, got := range said {
		if want[name] == "" && name != "open" {
			want[name] = "operation not permitted"
		}
		require.Equal(t, want[name], got, name)
	}
	require.Greater(t, len(said), 20)
}

// A platform that is killed takes its workers with it.
func TestTheWorkerEndsWithThePlatform(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := &exec.Cmd{Path: self, Args: []string{"platform", filepath.Join(t.TempDir(), "empty")}, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	var worker []int
	require.Eventually(t, func() bool {
		worker = childrenOf(t, cmd.Process.Pid)
		return len(worker) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !running(worker[0]) }, time.Minute, time.Millisecond)
}

// children are the workers of this process.
func children(t *testing.T) []int { return childrenOf(t, os.Getpid()) }

func childrenOf(t *testing.T, parent int) (found []int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // of one that has gone, nothing
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) && strings.TrimRight(string(line), "\x00") == name {
			found = append(found, pid)
		}
	}
	return found
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// What the kernel says of a worker whose script runs.
func TestAWorkerAsTheKernelSeesIt(t *testing.T) {
	w := begin(t, open(t, forever()))
	file := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", w.cmd.Process.Pid, name))
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return strings.Contains(file("status"), "Seccomp:\t2") }, time.Minute, time.Millisecond)
	status := file("status")
	require.Contains(t, status, "NoNewPrivs:\t1")
	require.Contains(t, status, "CapEff:\t0000000000000000")
	require.Empty(t, file("environ"))
	if os.Getuid() == 0 {
		require.Contains(t, status, "Uid:\t65533\t65533\t65533\t65533")
		require.Contains(t, status, "Gid:\t65533\t65533\t65533\t65533")
		require.Regexp(t, `Groups:\s*\n`, status)
		root, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", w.cmd.Process.Pid))
		require.NoError(t, err)
		require.Empty(t, root)
	}
	limits := file("limits")
	for name, most := range map[string]string{"Max file size": "0", "Max core file size": "0", "Max open files": "16", "Max cpu time": "3602"} {
		require.Regexp(t, name+` +`+most+` +`+most, limits)
	}
	require.NotRegexp(t, `Max address space +unlimited`, limits)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.cmd.Process.Pid))
	require.NoError(t, err)
	var pipes, own int
	for _, fd := range open {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", w.cmd.Process.Pid, fd.Name()))
		require.NoError(t, err)
		switch {
		case strings.HasPrefix(name, "pipe:"):
			pipes++
		// Its own figures; its share of the processors, which Go reads; what Go's scheduler waits with.
		case strings.HasSuffix(name, "/status"), strings.HasPrefix(name, "/sys/fs/cgroup/"), strings.HasPrefix(name, "anon_inode:"):
			own++
		default:
			require.Fail(t, "a worker holds "+name)
		}
	}
	require.Equal(t, 3, pipes)
	require.LessOrEqual(t, own, 5)
}
