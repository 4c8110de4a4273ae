package schedule_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/ident"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// tasks are those of a workflow engine that wait with a token: each is answered once.
type tasks struct {
	workflow.Machines
	workflow.Runs

	mu      sync.Mutex
	answers map[string]chan answer // by token
	beats   int
	refused int // answers to tasks that were over
}

// answer is how a task ended.
type answer struct {
	Output  callback.Turn
	Failure *pkgschedule.Failure // nil: it succeeded
}

// task is a new one that waits.
func (e *tasks) task() (token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	token = "token-" + ident.New()
	e.answers[token] = make(chan answer, 1)
	return token
}

// timesOut ends a task that nobody answered.
func (e *tasks) timesOut(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[token] = nil
}

func (e *tasks) end(token string, a answer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	to, known := e.answers[token]
	switch {
	case !known:
		return workflow.ErrNoTask
	case to == nil || len(to) > 0:
		e.refused++
		return workflow.ErrTaskOver
	}
	to <- a
	return nil
}

func (e *tasks) Succeed(_ context.Context, token string, output json.RawMessage) error {
	var a answer
	if err := json.Unmarshal(output, &a.Output); err != nil {
		return err
	}
	return e.end(token, a)
}

func (e *tasks) Fail(_ context.Context, token, code, cause string) error {
	return e.end(token, answer{Failure: &pkgschedule.Failure{Error: code, Cause: cause}})
}

func (e *tasks) Heartbeat(_ context.Context, token string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to := e.answers[token]; to == nil || len(to) > 0 {
		return workflow.ErrTaskOver
	}
	e.beats++
	return nil
}

// answered waits until a task is.
func (w *world) answered(token string) answer {
	w.t.Helper()
	w.tasks.mu.Lock()
	to := w.tasks.answers[token]
	w.tasks.mu.Unlock()
	select {
	case a := <-to:
		to <- a // it has been answered
		return a
	case <-time.After(minute):
		require.Fail(w.t, "nobody answered the token")
		return answer{}
	}
}
