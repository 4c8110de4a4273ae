package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// claimDir makes the data directory when there is none and takes it for this process, before anything in it is read or written. The
// kernel frees the claim with the file, so a killed process leaves none behind.
func claimDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the data directory cannot be made: %w; choose another one with DATA_DIR", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w; choose another one with DATA_DIR", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		who := make([]byte, 20)
		n, _ := f.Read(who)
		return nil, fmt.Errorf("the data directory %s is in use by process %s; stop it, or choose another one with DATA_DIR",
			dir, strings.TrimSpace(string(who[:n])))
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the data directory cannot be used: %w; choose another one with DATA_DIR", err)
	}
	return f, nil
}
