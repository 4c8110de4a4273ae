package host

import "syscall"

// dieWithParent has the kernel end a function when its host is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
