//go:build long

package sandbox_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// TestThePlatformStaysAsItIs runs each bomb twenty times and measures this process, which is the platform: no memory, no goroutine, no process is left of
// any, in this process or as a child of it.
func TestThePlatformStaysAsItIs(t *testing.T) {
	limits := patient()
	limits.CPU, limits.Memory = 30*time.Millisecond, 16<<20
	roomy := patient()
	roomy.Memory = limits.Memory
	bySpace, byTime := openLocal(t, roomy), openLocal(t, limits)
	round := func() {
		for _, all := range []map[string]bomb{heavy, buffers} {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				run(t, bySpace, all[name].code, "")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(endless)) {
			run(t, byTime, endless[name].code, "")
		}
	}
	round() // what a process has once, it has from here on
	goroutines := runtime.NumGoroutine()
	heap, resident := use(t)
	for range 20 {
		round()
	}
	heapAfter, residentAfter := use(t)
	t.Logf("after 20 rounds of %d scripts: heap %d → %d KiB, resident %d → %d KiB", len(heavy)+len(buffers)+len(endless), heap>>10, heapAfter>>10, resident>>10, residentAfter>>10)
	require.Less(t, heapAfter-heap, 2<<20)
	require.Less(t, residentAfter-resident, 8<<20)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	left, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, file := range left {
		text, _ := os.ReadFile(file)
		require.Empty(t, strings.TrimSpace(string(text)), "no worker is left")
	}
	require.Equal(t, sandbox.StatusOK, run(t, bySpace, "return 1", "").Status)
}

// use is what this process has: on the heap, and of the machine's memory.
func use(t *testing.T) (heap, resident int) {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return int(m.HeapAlloc), pages * os.Getpagesize()
}
