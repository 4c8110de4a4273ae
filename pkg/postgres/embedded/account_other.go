//go:build unix && !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent: no such thing here. The next start finds the server that was left behind and ends it (settle).
func dieWithParent(*syscall.SysProcAttr) {}

// serves reports whether pid is a PostgreSQL server on this data directory, as far as its command line tells.
func serves(pid int, data string) bool {
	line, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(line), "postgres") && strings.Contains(string(line), data)
}
