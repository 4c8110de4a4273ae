package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stepTime is how long a command of a document may take; the platform's own start may build first.
const (
	stepTime  = 90 * time.Second
	buildTime = 5 * time.Minute
)

// runner runs documents in a tree.
type runner struct {
	tree      string
	scratch   string // for what is not the tree's
	port, tls string // free ports for the platform
	env       []string
	platform  *process // nil until a document starts it
	command   string   // that started it
	sh        *shell   // nil until a document needs it
	unrun     []unrun
}

// local puts the platform's real ports into a text of a document.
func (r *runner) local(text string) string {
	return strings.NewReplacer("127.0.0.1:8787", "127.0.0.1:"+r.port, "127.0.0.1:8788", "127.0.0.1:"+r.tls,
		"localhost:8787", "localhost:"+r.port, "localhost:8788", "localhost:"+r.tls).Replace(text)
}

// document runs a document's blocks.
func (r *runner) document(name, text string) error {
	blocks, err := parseDocument(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, b := range blocks {
		if b.skip != "" {
			continue
		}
		if len(b.needs) > 0 {
			for _, s := range b.steps {
				if err := r.look(s.command); err != nil {
					return fmt.Errorf("%s:%d: %w\n  $ %s", name, s.line, err, strings.ReplaceAll(s.command, "\n", "\n  "))
				}
				r.unrun = append(r.unrun, unrun{fmt.Sprintf("%s:%d", name, s.line), b.needs, s.command})
			}
			continue
		}
		for _, s := range b.steps {
			out, err := r.step(s)
			if err != nil {
				return fmt.Errorf("%s:%d: %w\n  $ %s\n%s", name, s.line, err, strings.ReplaceAll(s.command, "\n", "\n  "), out)
			}
			if want := r.local(s.want); s.checks && !matches(want, out) {
				return fmt.Errorf("%s:%d: the output is not as shown\n  $ %s\n--- shown\n%s\n--- printed\n%s", name, s.line, s.command, tidy(want), tidy(out))
			}
		}
	}
	return nil
}

func (r *runner) step(s step) (out string, err error) {
	switch {
	case platformCommand.MatchString(s.command):
		return r.start(s.command)
	case testCommand.MatchString(s.command):
		return "", nil
	}
	if r.sh == nil {
		if r.sh, err = r.shell(); err != nil {
			return "", err
		}
	}
	return r.sh.run(r.local(s.command))
}

// start starts the platform by a document's own command. There is one for all documents; another command's is stopped once it is up.
func (r *runner) start(command string) (out string, err error) {
	if r.platform != nil && command == r.command {
		return r.platform.output.String(), nil
	}
	cmd := exec.Command("bash", "-c", "exec "+envPrefix(command))
	cmd.Dir = r.tree
	cmd.Env = append(slices.Clone(r.env), "PORT="+r.port, "TLS_PORT="+r.tls)
	if r.platform != nil {
		cmd.Env = append(slices.Clone(r.env), "PORT=0", "TLS_PORT=0", "DATA_DIR="+filepath.Join(r.scratch, "other"))
	}
	proc, err := launch(cmd)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	if err = proc.output.await(ctx, upLine); err != nil {
		proc.signal(syscall.SIGKILL)
		<-proc.done
		return proc.output.String(), err
	}
	if r.platform == nil {
		r.platform, r.command = proc, command
		return proc.output.String(), nil
	}
	proc.signal(syscall.SIGINT)
	proc.exit()
	return proc.output.String(), nil
}

// envPrefix makes `NAME=value make run` a command that exec takes.
func envPrefix(command string) string { return "env " + command }

// close ends the shell, and the platform by Ctrl-C.
func (r *runner) close() (out string) {
	if r.sh != nil {
		r.sh.close()
	}
	if r.platform == nil {
		return ""
	}
	r.platform.signal(syscall.SIGINT)
	r.platform.exit()
	return r.platform.output.String()
}

// shell is a bash. What it runs shares variables, functions and the working directory.
type shell struct {
	*process
	stdin   io.WriteCloser
	results *bufio.Reader // an exit status a line
	dir     string
	n       int
}

func (r *runner) shell() (*shell, error) {
	dir, err := os.MkdirTemp(r.scratch, "shell")
	if err != nil {
		return nil, err
	}
	results, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir, cmd.ExtraFiles = r.tree, []*os.File{w}
	// A platform that a command starts on its own finds free ports and an empty folder.
	cmd.Env = append(slices.Clone(r.env), "PORT=0", "TLS_PORT=0", "DATA_DIR="+filepath.Join(dir, "data"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	proc, err := launch(cmd)
	w.Close()
	return &shell{process: proc, stdin: stdin, results: bufio.NewReader(results), dir: dir}, err
}

// run runs commands until one fails, and gives what they print.
func (s *shell) run(commands string) (out string, err error) {
	s.n++
	script, printed := filepath.Join(s.dir, fmt.Sprint(s.n, ".sh")), filepath.Join(s.dir, fmt.Sprint(s.n, ".out"))
	if err := os.WriteFile(script, []byte("set -eo pipefail\n"+commands+"\n"), 0o600); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(s.stdin, ". %s > %s 2>&1 < /dev/null 3>&-; set +e; echo $? >&3\n", script, printed); err != nil {
		return "", err
	}
	overdue := time.AfterFunc(stepTime, func() { s.signal(syscall.SIGKILL) })
	status, err := s.results.ReadString('\n')
	switch {
	case !overdue.Stop():
		err = fmt.Errorf("took longer than %s", stepTime)
	case err != nil: // set -e has ended the shell
		<-s.done
		err = fmt.Errorf("exit status %d", s.cmd.ProcessState.ExitCode())
	case status != "0\n":
		err = errors.New("exit status " + strings.TrimSpace(status))
	}
	text, readErr := os.ReadFile(printed)
	return string(text), errors.Join(err, readErr)
}

// close ends the shell and whatever it left running.
func (s *shell) close() {
	s.signal(syscall.SIGKILL)
	<-s.done
}
