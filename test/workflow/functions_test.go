package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// functions are what the corpus' tasks call. Every engine has some of its own.
type functions struct {
	t      testing.TB
	ctx    context.Context
	engine engine // whose tokens the function ask gets

	mu    sync.Mutex
	calls map[string]int
	wg    sync.WaitGroup
}

func newFunctions(t testing.TB) *functions {
	ctx, cancel := context.WithCancel(t.Context())
	f := &functions{t: t, ctx: ctx, calls: map[string]int{}}
	t.Cleanup(func() { cancel(); f.wg.Wait() })
	return f
}

// ask is what the functions take.
type ask struct {
	Type, Message string // fail, flaky: the error

	Key    string   // flaky: counts calls by it
	Times  int      // flaky: how many calls fail
	Errors []string // flaky: instead, with what

	Token   string          // ask: answered by one of the following, later
	Succeed json.RawMessage // with this output
	Fail    *struct{ Error, Cause string }
	Beats   int // after as many heartbeats, a half second apart
}

// invoke calls one of them:
//
//	echo   answers with what it is given
//	fail   fails
//	flaky  fails a few times, then answers with the number of calls
//	hang   answers when nobody waits any more
//	ask    answers {}, and the token later
//
// and begin-step, whose verbs are done when it is called, but for what is denied.
func (f *functions) invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	var a ask
	if function != "echo" {
		if err := json.Unmarshal(payload, &a); err != nil {
			return nil, err
		}
	}
	switch function {
	case "echo":
		return payload, nil
	case "fail":
		return nil, messages.InvokeResponse_Error{Type: a.Type, Message: a.Message}
	case "flaky":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls[a.Key]++
		if n := f.calls[a.Key]; n <= len(a.Errors) {
			a.Type, a.Times = a.Errors[n-1], n
		}
		if f.calls[a.Key] <= a.Times {
			return nil, messages.InvokeResponse_Error{Type: a.Type, Message: a.Message}
		}
		return json.Marshal(map[string]int{"calls": f.calls[a.Key]})
	case "hang":
		select {
		case <-ctx.Done():
		case <-f.ctx.Done():
		}
		return nil, ctx.Err()
	case "ask":
		f.wg.Go(func() { f.tell(a) })
		return []byte(`{}`), nil
	}
	if function == "begin-step" {
		var call routine.Call
		if err := json.Unmarshal(payload, &call); err != nil {
			return nil, err
		}
		return []byte(`{}`), f.begin(call)
	}
	return nil, host.ErrUnknown
}

// begin does a verb: what it is asked is what it makes, with which attempt it was.
func (f *functions) begin(call routine.Call) error {
	a := ask{Token: call.Token}
	made, err := json.Marshal(object{"verb": call.Verb, "state": call.State, "attempt": call.Attempt, "input": call.Input})
	a.Succeed = made
	var approval struct{ Details struct{ Deny bool } }
	if json.Unmarshal(call.Input, &approval) == nil && approval.Details.Deny {
		a.Fail = &struct{ Error, Cause string }{"Denied", "by Ada"}
	}
	f.wg.Go(func() { f.tell(a) })
	return err
}

// tell answers a token, which may not be waited for yet.
func (f *functions) tell(a ask) {
	for err := workflow.ErrNoTask; errors.Is(err, workflow.ErrNoTask) && f.ctx.Err() == nil; pause(f.ctx, tick) {
		switch {
		case a.Beats > 0:
			if err = f.engine.Heartbeat(f.ctx, a.Token); err == nil {
				a.Beats, err = a.Beats-1, workflow.ErrNoTask
				pause(f.ctx, 25*tick)
			}
		case a.Fail != nil:
			err = f.engine.Fail(f.ctx, a.Token, a.Fail.Error, a.Fail.Cause)
		case a.Succeed != nil:
			err = f.engine.Succeed(f.ctx, a.Token, a.Succeed)
		default:
			return
		}
		if err != nil && !errors.Is(err, workflow.ErrNoTask) && f.ctx.Err() == nil {
			f.t.Errorf("a token could not be answered: %v", err)
		}
	}
}

func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}
