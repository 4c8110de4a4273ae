//go:build !linux

package e2e

import "syscall"

// dieWithParent does nothing where the kernel cannot: there a killed test run leaves its platforms behind.
func dieWithParent(*syscall.SysProcAttr) {}
