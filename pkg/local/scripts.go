package local

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	workers "github.com/agentplatform/agentplatform/pkg/local/sandbox"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// Scripts at a time: each takes a processor, and up to 128 MiB.
const (
	scriptsWaiting  = 64
	scriptsPatience = 30 * time.Second
)

// openSandbox makes the sandbox. A program that cannot be its workers runs no scripts, and all else as ever: a test, say.
func (p *Platform) openSandbox() error {
	if !workers.Hooked() {
		p.scripts, p.programs = noWorkers{}, noWorkers{}
		return nil
	}
	atOnce := max(2, runtime.NumCPU())
	open := func(l sandbox.Limits) (sandbox.Sandbox, error) {
		s, err := workers.Open(workers.Config{Dir: filepath.Join(p.config.Dir, "sandbox"), Limits: l})
		return sandbox.NewBound(s, atOnce, scriptsWaiting, scriptsPatience), err
	}
	var err error
	if p.scripts, err = open(sandbox.Default); err != nil {
		return err
	}
	p.programs, err = open(awsapi.InterpreterLimits())
	return err
}

// noWorkers is the sandbox of a program whose main function does not call Worker.
type noWorkers struct{}

func (noWorkers) Run(context.Context, sandbox.Script) (sandbox.Result, error) {
	return sandbox.Result{}, workers.ErrNotHooked
}
