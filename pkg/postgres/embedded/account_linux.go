package embedded

import (
	"fmt"
	"os"
	"syscall"
)

// dieWithParent has the kernel ask the program to end (for PostgreSQL: a fast shutdown) when the thread that started it dies.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGINT }

// serves reports whether pid is a PostgreSQL server on this data directory: that is its working directory.
func serves(pid int, data string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false // gone, a zombie, or somebody else's
	}
	here, err := os.Stat(data)
	return err == nil && os.SameFile(there, here)
}
