package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStart: the binary on an empty data directory, until the first reply is there; then its memory once it has nothing to do.
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "local")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/local").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var replied []time.Duration
	var resident int
	for b.Loop() {
		began := time.Now()
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "DATA_DIR="+b.TempDir(), "PORT=0", "TLS_PORT=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "first reply") {
				replied = append(replied, time.Since(began))
			}
			if strings.HasPrefix(lines.Text(), "Ctrl-C") {
				break
			}
		}
		if resident, err = memory(cmd.Process.Pid); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			b.Fatal(err)
		}
		for lines.Scan() { // until it has closed its output
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(percentile(replied, 50), "first-reply-ms")
	b.ReportMetric(float64(resident)/1024, "idle-MiB")
}

// memory is a process's resident set in KiB.
func memory(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", pid)
}
