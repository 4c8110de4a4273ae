// Package asl is the Amazon States Language with JSONPath: definitions read and checked, and what each state makes of its data. It runs nothing, keeps
// nothing and waits for nothing: an engine asks it what comes of a state, and does what it says. What holds:
//
//   - Whatever Parse returns without an error can be stepped to its end without a panic: each path, intrinsic function and target is known to be good.
//   - Data are what Decode makes: nil, bool, json.Number, string, []any and map[string]any. They are never changed, but shared: what a state returns may
//     be, or contain, what it was given.
//   - A number keeps its text from input to output, and is compared exactly: 1.0 stays 1.0 and equals 1, and no integer is rounded.
//   - A definition is a stranger's. What one call computes is bounded, whatever the definition says: by MaxWork visited values, and by
//     workflow.MaxData bytes of what it makes; more is States.Runtime or States.DataLimitExceeded.
//   - An object has no order: what a path's * and .. find in one comes in the order of its names.
//
// The words are those of https://states-language.net and of the Step Functions Developer Guide; where they leave something open, Step Functions'
// behaviour is meant. JSONata, variables (Assign) and distributed Map are refused when a definition is parsed.
package asl

import (
	"iter"
	"time"
)

// Machine is a definition, or a part of it that has states of its own: a branch of a Parallel, the processor of a Map.
type Machine struct {
	Comment string
	StartAt string
	States  map[string]*State
	Timeout int // TimeoutSeconds; 0 is none. Only of the whole definition
}

// All is each state, those of branches and processors too, in no order.
func (m *Machine) All() iter.Seq[*State] {
	return func(yield func(*State) bool) { m.all(yield) }
}

func (m *Machine) all(yield func(*State) bool) bool {
	for _, s := range m.States {
		if !yield(s) {
			return false
		}
		for _, b := range s.Branches {
			if !b.all(yield) {
				return false
			}
		}
		if s.Processor != nil && !s.Processor.all(yield) {
			return false
		}
	}
	return true
}

// State is a named state. Names are unique in a definition, those of branches and processors too.
type State struct {
	Name     string
	Type     Type
	Comment  string
	Location string // JSON pointer to it in the definition

	Next string // where End is not true; none for Choice, Succeed and Fail
	End  bool   // also of Succeed and Fail, after which nothing comes

	Resource       string     // Task
	Branches       []*Machine // Parallel, at least one
	Processor      *Machine   // Map
	MaxConcurrency int        // Map: how many items at once where there is no MaxConcurrencyPath; 0 is as many as there are

	flow // paths and templates, compiled
}

// Type is what kind of state it is.
type Type string

const (
	Pass     Type = "Pass"
	Task     Type = "Task"
	Choice   Type = "Choice"
	Wait     Type = "Wait"
	Succeed  Type = "Succeed"
	Fail     Type = "Fail"
	Parallel Type = "Parallel"
	Map      Type = "Map"
)

// Failure is an error of the language: a name that Retry and Catch look for, and a text. Both may be empty.
type Failure struct{ Error, Cause string }

// The language's own names of errors.
const (
	ErrorAll              = "States.ALL" // in ErrorEquals only
	ErrorTimeout          = "States.Timeout"
	ErrorHeartbeatTimeout = "States.HeartbeatTimeout"
	ErrorTaskFailed       = "States.TaskFailed"
	ErrorPermissions      = "States.Permissions"
	ErrorRuntime          = "States.Runtime"           // never retried or caught by States.ALL
	ErrorDataLimit        = "States.DataLimitExceeded" // the same
	ErrorResultPath       = "States.ResultPathMatchFailure"
	ErrorParameterPath    = "States.ParameterPathFailure" // documented; what is reported is States.Runtime
	ErrorIntrinsic        = "States.IntrinsicFailure"
	ErrorNoChoice         = "States.NoChoiceMatched"
	ErrorBranchFailed     = "States.BranchFailed"
)

// Context is the context object, which paths that begin with $$ see. Its values are Data: numbers are json.Number (Number makes one), times are text.
//
//	Execution    {Id, Input, Name, RoleArn, StartTime}
//	State        {Name, EnteredTime, RetryCount}
//	StateMachine {Id, Name}
//	Task         {Token}               in a Task that waits for its token
//	Map          {Item {Index, Value}} in ItemSelector and in a Map's states
type Context map[string]any

// Dialect is what a definition may say besides the language.
type Dialect struct {
	// Resource says why a Task cannot have that Resource, or not with these Parameters (State.Parameters); nil takes anything. It is asked once for
	// each Task whose fields are in order. An error is a problem of the state's Resource; a *workflow.DefinitionError says itself what is wrong, with
	// pointers from the state on, such as /Parameters/agentId.
	Resource func(resource string, s *State) error
}

// TimeFormat is how the context object tells times: with milliseconds, in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Time is a time as Data.
func Time(t time.Time) string { return t.UTC().Format(TimeFormat) }
