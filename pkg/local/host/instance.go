package host

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// instance is one process of a function.
type instance struct {
	host  *Host
	of    *function
	token string
	cmd   *exec.Cmd
	began time.Time
	work  chan *invocation // what an idle instance is given; it holds one

	// Under the host's lock.
	started bool        // the process is there
	killed  bool        // it shall end
	polled  bool        // it has asked for its first invoke
	asking  bool        // it waits for an invoke
	since   time.Time   // when it asked last
	limit   *time.Timer // of its start, then of its invoke
	current *invocation // what it has not answered yet
	left    bool        // it makes room
	why     *FunctionError
}

// start makes an instance, whose process starts soon. The lock is held.
func (h *Host) start(f *function) {
	random := make([]byte, 16)
	rand.Read(random)
	i := &instance{host: h, of: f, token: hex.EncodeToString(random), began: time.Now(), work: make(chan *invocation, 1)}
	h.instances[i.token] = i
	i.cmd = h.command(f, i.token)
	i.limit = time.AfterFunc(h.config.StartLimit, i.tooSlow)
	h.running.Go(i.run)
}

// command is a function's process in the environment that Lambda gives it. The X-Ray SDK takes it for Lambda by LAMBDA_TASK_ROOT, and says so by an
// empty file below /tmp/.aws-xray.
func (h *Host) command(f *function, token string) *exec.Cmd {
	cmd := exec.Command(f.binary)
	cmd.Dir = filepath.Dir(f.binary)
	name := h.config.Prefix + f.Name
	cmd.Env = append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + h.listener.Addr().String() + "/" + token,
		"AWS_LAMBDA_FUNCTION_NAME=" + name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(f.Memory),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + name, "AWS_LAMBDA_LOG_STREAM_NAME=" + token,
		"AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_REGION=" + h.config.Region, "AWS_DEFAULT_REGION=" + h.config.Region, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_XRAY_DAEMON_ADDRESS=127.0.0.1:2000", "AWS_XRAY_CONTEXT_MISSING=LOG_ERROR", // as in Lambda; no invoke is sampled, so nothing is sent
		"LAMBDA_TASK_ROOT=" + cmd.Dir, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=en_US.UTF-8", "TZ=:UTC", "TMPDIR=" + os.TempDir(),
	}, h.config.Environment(f.Name)...)
	lines := &lines{log: h.config.Log, function: f.Name}
	cmd.Stdout, cmd.Stderr = lines, lines
	// A group of its own: Ctrl-C in a terminal is for the host, which then ends its functions in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = 5 * time.Second // for children that hold the pipes
	return cmd
}

// run is the life of the process.
func (i *instance) run() {
	err := i.host.forks.start(i.cmd)
	if err != nil {
		i.gone(err)
		return
	}
	i.host.mu.Lock()
	i.started = true
	if i.killed || i.host.stopped {
		i.kill()
	}
	i.host.mu.Unlock()
	_ = i.cmd.Wait() // ProcessState tells
	i.gone(nil)
}

// kill ends the process, if need be as soon as it is there. The lock is held.
func (i *instance) kill() {
	i.killed = true
	if i.started {
		_ = i.cmd.Process.Kill() // one that has ended has ended
	}
}

// leave ends an idle instance. The lock is held.
func (i *instance) leave() {
	i.left = true
	i.host.leaving++
	i.of.idle = slices.DeleteFunc(i.of.idle, func(o *instance) bool { return o == i })
	i.kill()
}

// tooSlow ends an instance that has not asked for an invoke in time.
func (i *instance) tooSlow() {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	if !i.polled {
		i.why = sandbox("Sandbox.Timedout", "", "Error: Task timed out after %.2f seconds, before its first invoke", i.host.config.StartLimit.Seconds())
		i.kill()
	}
}

// assign has an instance begin an invoke. The lock is held.
func (i *instance) assign(v *invocation) {
	i.of.free--
	i.current, i.asking = v, false
	v.deadline = time.Now().Add(i.of.Timeout)
	i.limit = time.AfterFunc(i.of.Timeout, func() { i.timedOut(v) })
}

func (i *instance) timedOut(v *invocation) {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	if i.current == v {
		i.why = sandbox("Sandbox.Timedout", v.id, "Task timed out after %.2f seconds", i.of.Timeout.Seconds())
		i.kill()
	}
}

// finish ends the invoke of that id; false: the instance has no such invoke.
func (i *instance) finish(id string, answer []byte, err error) bool {
	i.host.mu.Lock()
	defer i.host.mu.Unlock()
	v := i.current
	if v == nil || v.id != id {
		return false
	}
	i.current = nil
	i.limit.Stop()
	i.of.free++
	v.end(answer, err)
	return true
}

// gone is the end of the process: whoever waits for it hears why. An instance that never asked for an invoke fails one that waits, else a function that
// cannot start would be started for ever.
func (i *instance) gone(failed error) {
	h, f := i.host, i.of
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.instances, i.token)
	i.limit.Stop()
	f.count--
	f.idle = slices.DeleteFunc(f.idle, func(o *instance) bool { return o == i })
	if i.left {
		h.leaving--
	}
	v := i.current
	if i.current = nil; v == nil {
		f.free--
		if !i.polled && len(f.waiting) > 0 {
			v, f.waiting = f.waiting[0], f.waiting[1:]
		}
	}
	if !h.stopped && !i.left && failed == nil {
		h.config.Log.Warn("an instance of a function has ended", "function", f.Name, "how", i.cmd.ProcessState.String(), "asked_for_work", i.polled)
	}
	switch {
	case v == nil:
	case h.stopped:
		v.end(nil, ErrStopped)
	case failed != nil:
		v.end(nil, errors.Join(errors.New("the function "+f.Name+" cannot be started"), failed))
	case i.why != nil:
		v.end(nil, i.why)
	case i.cmd.ProcessState.Success():
		v.end(nil, sandbox("Runtime.ExitError", v.id, "Runtime exited without providing a reason"))
	default:
		v.end(nil, sandbox("Runtime.ExitError", v.id, "Runtime exited with error: %s", i.cmd.ProcessState))
	}
	h.balance()
}
