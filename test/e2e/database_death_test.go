package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A platform whose database has died says so and ends; the next start has everything that was committed.
func TestDatabaseDies(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	p.killDatabase(t)
	require.Equal(t, 1, p.exit())
	require.Contains(t, p.stderr.String(), "PostgreSQL has ended")
	again := startOn(t, p.dir)
	require.Contains(t, again.output.String(), "opened CHAT-2")
}

// An event that a client has seen is there for good: after the crash of the database its number is no other event's.
func TestEventsOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice := p.as(t, "alice")
	f := alice.follow(alice.open(t))
	turn := alice.send(t, f.thread, "/slow 60", "/say "+words(40))
	chunks := 0
	_, err := f.listen(t, 1000, func(e event) bool {
		if e.Typename == "StreamChunkEvent" {
			chunks++
		}
		return chunks > 3
	})
	require.NoError(t, err)
	p.killDatabase(t)
	p.exit()
	f.user = startOn(t, p.dir).as(t, "alice")
	require.Equal(t, "succeeded", f.ended(t, turn).Status)
	fresh := f.follow(f.thread)
	require.NoError(t, fresh.catchUp())
	require.Equal(t, f.all, fresh.all[:len(f.all)])
	f.check(t)
}

// killDatabase kills the platform's PostgreSQL, whose backends then end without another write.
func (p *platform) killDatabase(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(raw))[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
