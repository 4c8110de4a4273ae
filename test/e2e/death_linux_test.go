package e2e

import "syscall"

// dieWithParent has the kernel end a program when the tests are killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
