//go:build unix

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A second process in these tests is this test binary again, told what to do by its first argument.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serveForTest(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// serveForTest runs a server until it is killed, and says the server's process number.
func serveForTest(dir string) {
	s, err := Start(context.Background(), Config{Dir: dir, Password: password})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("serving", s.proc.cmd.Process.Pid, s.URL(Superuser, password, Database))
	<-s.Done()
}

const password = "p'ä ss:/?"

func config(t *testing.T) Config { return Config{Dir: closed(t), Password: password} }

// closed is a folder below one that nobody but this user can go to.
func closed(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	return filepath.Join(dir, "pg")
}

func start(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func refused(t *testing.T, c Config, words ...string) {
	t.Helper()
	_, err := Start(t.Context(), c)
	require.Error(t, err)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, err.Error(), "\n")
	require.NotEmpty(t, e.Remedy)
	for _, w := range words {
		require.Contains(t, err.Error(), w)
	}
}

func keep(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "create table kept as select 'yes' as v")
	require.NoError(t, err)
}

func query(t *testing.T, url, sql string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

func TestStartBelowAClosedFolder(t *testing.T) {
	c := config(t)
	c.Durable = true
	c.Settings = map[string]string{"work_mem": "7MB"}
	began := time.Now()
	s := start(t, c)
	t.Logf("first start, durable: %v", time.Since(began))
	require.Equal(t, "on", query(t, s.URL(Superuser, password, Database), "show fsync"))
	require.Equal(t, "7MB", query(t, s.TCPURL(Superuser, password, Database), "show work_mem"))
	require.Equal(t, "C UTF8", query(t, s.URL(Superuser, password, Database),
		"select datcollate || ' ' || pg_encoding_to_char(encoding) from pg_database where datname = 'postgres'"))
	keep(t, s.URL(Superuser, password, Database))
	require.NoError(t, s.Stop(t.Context()))

	began = time.Now()
	s = start(t, c)
	t.Logf("second start: %v", time.Since(began))
	require.Equal(t, "yes", query(t, s.URL(Superuser, password, Database), "select v from kept"))

	_, err := pgx.Connect(t.Context(), s.URL(Superuser, "wrong", Database))
	require.ErrorContains(t, err, "28P01")
}

func TestStartAsAnUnprivilegedUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // then the other tests were
	}
	self, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	base, err := os.MkdirTemp("", "unprivileged")
	require.NoError(t, err)
	defer os.RemoveAll(base)
	require.NoError(t, os.Chown(base, nobody, nobody))
	binary := filepath.Join(base, "test")
	require.NoError(t, os.WriteFile(binary, self, 0o755))
	cmd := exec.Command(binary, "-test.run", "^TestStartBelowAClosedFolder|TestALongFolderName|TestAKilled|TestASecond")
	cmd.Dir = "/"
	cmd.Env = []string{"TMPDIR=" + base, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
}

func TestALongFolderName(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := config(t)
	c.Dir = filepath.Join(c.Dir, strings.Repeat("long, ", 20), `and "quoted"`)
	s := start(t, c)
	require.NotContains(t, s.socket, c.Dir)
	require.Equal(t, "1", query(t, s.URL(Superuser, password, Database), "select '1'"))
	require.NoError(t, s.Stop(t.Context()))
	require.NoDirExists(t, s.socket)

	c.Password = "other"
	refused(t, c, "another superuser password")
	left, err := filepath.Glob(filepath.Join(os.TempDir(), socketPrefix+"*"))
	require.NoError(t, err)
	require.Empty(t, left, "a start that fails removes it too")
}

func TestASecondProcessIsRefused(t *testing.T) {
	c := config(t)
	start(t, c)
	refused(t, c, "is in use by process "+strconv.Itoa(os.Getpid()), "stop it")
}

// serving starts another process that serves dir.
func serving(t *testing.T, dir string) (other *exec.Cmd, postmaster int, url string) {
	t.Helper()
	other = exec.Command(os.Args[0], "serve", dir)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	words := strings.Fields(line)
	require.Equal(t, "serving", words[0], line)
	postmaster, err = strconv.Atoi(words[1])
	require.NoError(t, err)
	return other, postmaster, words[2]
}

func TestAKilledProcessLeavesNothingInTheWay(t *testing.T) {
	for name, everything := range map[string]bool{"process": false, "process and server": true} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			c.Dir = filepath.Join(c.Dir, strings.Repeat("x", 100)) // with a socket folder that is left behind
			other, postmaster, url := serving(t, c.Dir)
			keep(t, url)
			refused(t, c, "is in use by process "+strconv.Itoa(other.Process.Pid))
			if everything {
				require.NoError(t, syscall.Kill(postmaster, syscall.SIGKILL))
			}
			require.NoError(t, other.Process.Kill())
			_ = other.Wait()
			s := start(t, c)
			require.Equal(t, "yes", query(t, s.URL(Superuser, password, Database), "select v from kept"))
			require.NoDirExists(t, s.lock.previous.Socket)
		})
	}
}

func TestAForeignServerIsNamed(t *testing.T) {
	c := config(t)
	other, postmaster, _ := serving(t, c.Dir)
	// The lock is on the file that was opened: with another file in its place, the server is somebody else's.
	require.NoError(t, os.Remove(filepath.Join(c.Dir, "lock")))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, c)
	require.ErrorContains(t, err, "is in use by process "+strconv.Itoa(postmaster))
	require.NoError(t, syscall.Kill(postmaster, 0), "it still runs")
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	start(t, c)
}

func TestWhatAnInterruptionLeavesBehind(t *testing.T) {
	c := config(t)
	// a first start that was killed
	require.NoError(t, os.MkdirAll(filepath.Join(c.Dir, making, "base"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "lock"), []byte(`{"pro`), 0o600))
	s := start(t, c)
	require.NoError(t, s.Stop(t.Context()))
	// a machine that was switched off, whose process numbers are other programs' by now
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	pids := fmt.Sprintf("%d\n/proc/self/fd/3\n1700000000\n5432\n\n127.0.0.1\n  1234567 1\nready\n", other.Process.Pid)
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "data", "postmaster.pid"), []byte(pids), 0o644))
	start(t, c)
}

func TestWhatCannotStart(t *testing.T) {
	whole := config(t)
	s := start(t, whole)
	require.NoError(t, s.Stop(t.Context()))
	data := filepath.Join(whole.Dir, "data")
	swap := func(name, text string) (restore func()) {
		was, err := os.ReadFile(filepath.Join(data, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(data, name), []byte(text), 0o600))
		return func() { require.NoError(t, os.WriteFile(filepath.Join(data, name), was, 0o600)) }
	}
	t.Run("version file garbage", func(t *testing.T) {
		defer swap("PG_VERSION", "\x00\x01")()
		refused(t, whole, data, "PG_VERSION", "remove "+whole.Dir)
	})
	t.Run("version that is not installed", func(t *testing.T) {
		defer swap("PG_VERSION", "9\n")()
		refused(t, whole, "PostgreSQL 9, which made "+data, "was not found", "install that version")
	})
	t.Run("control file cut off", func(t *testing.T) {
		defer swap("global/pg_control", "short")()
		refused(t, whole, data, "pg_control", "remove "+whole.Dir)
	})
	t.Run("control file gone", func(t *testing.T) {
		name := filepath.Join(data, "global", "pg_control")
		require.NoError(t, os.Rename(name, name+".was"))
		defer func() { require.NoError(t, os.Rename(name+".was", name)) }()
		refused(t, whole, filepath.Join(data, "global", "pg_control"), "remove "+whole.Dir)
	})
	t.Run("log of changes gone", func(t *testing.T) {
		require.NoError(t, os.Rename(filepath.Join(data, "pg_wal"), filepath.Join(data, "was")))
		defer func() { require.NoError(t, os.Rename(filepath.Join(data, "was"), filepath.Join(data, "pg_wal"))) }()
		refused(t, whole, data, "pg_wal", "remove "+whole.Dir)
	})
	t.Run("another password", func(t *testing.T) {
		c := whole
		c.Password = "other"
		refused(t, c, "another superuser password", "remove the folder")
	})
	t.Run("port taken", func(t *testing.T) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		c := whole
		c.Port = l.Addr().(*net.TCPAddr).Port
		refused(t, c, fmt.Sprintf("port %d", c.Port), "is in use")
	})
	t.Run("no binaries", func(t *testing.T) {
		c := config(t)
		c.Binaries = t.TempDir()
		refused(t, c, "PostgreSQL 15 or newer was not found in "+c.Binaries)
	})
	t.Run("folder with something else", func(t *testing.T) {
		c := config(t)
		require.NoError(t, os.MkdirAll(c.Dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "PG_VERSION"), nil, 0o600))
		refused(t, c, c.Dir, "is not empty")
	})
	t.Run("folder that is a file", func(t *testing.T) {
		c := config(t)
		require.NoError(t, os.WriteFile(c.Dir, nil, 0o600))
		refused(t, c, c.Dir, "choose another folder")
	})
	t.Run("and whole again", func(t *testing.T) { start(t, whole) })
	t.Run("a user's own, by root", func(t *testing.T) {
		if os.Geteuid() != 0 {
			return
		}
		require.NoError(t, filepath.WalkDir(data, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(name, 12345, 12345))
		}))
		start(t, whole)
	})
}

func TestACancelledStartLeavesNothingRunning(t *testing.T) {
	c := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	start(t, c)
}
