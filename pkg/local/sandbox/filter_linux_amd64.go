package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

var computingHere = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_TIME}
