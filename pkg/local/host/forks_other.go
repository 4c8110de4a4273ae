//go:build !linux

package host

import "syscall"

// dieWithParent does nothing where the kernel cannot: a function of a killed host ends by itself, when its next request to the Runtime API fails.
func dieWithParent(*syscall.SysProcAttr) {}
