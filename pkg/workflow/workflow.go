// Package workflow is the port to an engine that runs Amazon States Language: in the cloud AWS Step Functions (pkg/cloud/stepfunctions), on one machine
// the platform's own database (pkg/local/workflow).
//
// A machine is a definition under a name; a run is one execution of it. What holds:
//
//   - A machine never changes. Another version is another machine, so that a run is always of the definition that its starter meant, and who put a
//     machine may start it at once: nothing of an older version is served for a while. Putting the same again does nothing.
//   - A run is started once under its name: who starts it again with the same input gets the same run, whether it still goes on or is over. Engines
//     remember that for 90 days after a run's end; then its name is free, and run, input, output and history are gone.
//   - Data are JSON texts of at most MaxData bytes without the white space around their tokens. Larger ones are refused before they travel.
//   - Inputs and outputs hold what people said. An engine keeps them with the run and writes them into no log. It may log the code and the cause of a
//     failure: they quote nobody.
//   - A token is as good as the task that it was given for: it is in no error.
//
// Why a call was refused is one of the errors below, for errors.Is; any other error is the engine's own, and a call may be repeated after it.
package workflow

import (
	"context"
	"encoding/json"
	"time"
)

// Engine runs machines. It is safe for concurrent use. Its parts are what callers are given: none needs more than one or two of them.
type Engine interface {
	Machines
	Runs
	Tasks
}

// Machines are what there is to run.
type Machines interface {
	// Put makes the machine of that name. One that has this definition already stays; one that has another is ErrMachineExists. What the engine
	// cannot run is a *DefinitionError.
	Put(ctx context.Context, machine, definition string) error
	// Delete takes a machine away; one that is not there is no error. Its runs end at their next state, and none starts. Its name is not for use again.
	Delete(ctx context.Context, machine string) error
}

// Runs are what runs, or has run.
type Runs interface {
	RunReader
	// Start starts a run of a machine, and returns the id that it has in the engine and, as $$.Execution.Id, in the definition. Another input than
	// the run of that name has is ErrRunExists. Two inputs are the same if their texts are, but for white space around tokens.
	Start(ctx context.Context, machine, name string, input json.RawMessage) (run string, err error)
	// Stop aborts a run, for a reason: a short code and a text, either may be empty. A run that is over stays as it is.
	Stop(ctx context.Context, run, code, cause string) error
}

// RunReader reads what runs, or has run.
type RunReader interface {
	// Describe tells how a run is.
	Describe(ctx context.Context, run string) (Run, error)
	// History is at most limit (at least 1) of a run's steps, in order, from the one after that Seq on; 0 is before the first. Fewer than limit are
	// all that there are as yet.
	History(ctx context.Context, run string, after, limit int) ([]Step, error)
}

// Tasks are what a run waits for: each is answered once, by its token.
type Tasks interface {
	// Succeed ends the task that waits with that token; output becomes its result.
	Succeed(ctx context.Context, token string, output json.RawMessage) error
	// Fail ends it with an error, which the machine may retry or catch by its code.
	Fail(ctx context.Context, token, code, cause string) error
	// Heartbeat tells that the task is still being worked on, where its state has HeartbeatSeconds.
	Heartbeat(ctx context.Context, token string) error
}

// Status is how far a run is.
type Status string

const (
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT" // after the definition's TimeoutSeconds
	Aborted   Status = "ABORTED"   // by Stop
)

// Run is one execution of a machine.
type Run struct {
	ID      string
	Status  Status
	Input   json.RawMessage
	Output  json.RawMessage // of a run that has SUCCEEDED
	Error   string          // the code of what it FAILED with, or was ABORTED for; may be empty
	Cause   string          // its text; may be empty
	Started time.Time
	Ended   time.Time // zero while it is RUNNING
}

// Kind is what happened to a state.
type Kind string

const (
	StateEntered Kind = "entered"
	StateExited  Kind = "exited"  // also by a Catch
	StateFailed  Kind = "failed"  // an attempt of it
	StateRetried Kind = "retried" // another attempt has begun
)

// Step is one thing that happened to a state of a run. States of branches and iterations are among them, in the order in which things happened. A state
// that a run's end or another branch's failure cut off has been entered, and that was all.
type Step struct {
	Seq   int // 1, 2, 3 … within the run
	Visit int // Seq of the step that entered the state: what belongs together where branches run side by side, or a state is entered again
	At    time.Time
	Kind  Kind
	State string // its name
	Type  string // as the language has it: Pass, Task, Choice, Wait, Succeed, Fail, Parallel or Map

	Input  json.RawMessage // of a state that was entered
	Output json.RawMessage // of one that was exited
	// Of a failure. A Fail state fails, too, and what ends a run without being caught. Empty where the engine does not tell: of a Parallel or Map in
	// which something failed it may tell only what did.
	Error, Cause string
}
