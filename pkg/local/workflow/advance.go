package workflow

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// phase is what a branch is at.
type phase string

const (
	entering phase = "enter"    // its state is to be entered
	waiting  phase = "wait"     // for the time of a Wait
	pausing  phase = "pause"    // for the time of a retry
	calling  phase = "call"     // the task's function is called
	holding  phase = "token"    // the function was called; its token is to be answered
	parted   phase = "children" // branches of it run
	over     phase = "over"     // it has come to its end: its input is its output
	failed   phase = "failed"   // nothing has caught its failure
)

// How far one transition goes.
const (
	through = 64      // states
	carried = 1 << 20 // bytes of their inputs and outputs
)

// value is JSON, as text and decoded.
type value struct {
	text string
	data any
}

// textOf is a value that was kept.
func textOf(kept string) (value, error) {
	data, err := asl.Decode(json.RawMessage(kept))
	return value{kept, data}, err
}

// made is a value as it is to be kept: small enough.
func made(data any) (value, *asl.Failure) {
	v := value{string(asl.Encode(data)), data}
	if len(v.text) > workflow.MaxData {
		return v, tooLarge()
	}
	return v, nil
}

func tooLarge() *asl.Failure {
	return &asl.Failure{Error: asl.ErrorDataLimit, Cause: "the data are larger than 262144 bytes"}
}

// place is where a branch is: all that is kept of it.
type place struct {
	phase          phase
	state          string
	input          value // the state's raw input; of a branch that is over, its output
	visit          int   // the step that entered the state; below zero: of this transition's, -1 is the first
	entered        time.Time
	retries        []int
	attempt        int
	deadline, beat time.Time // zero: none
	pulse          time.Duration
	wake           time.Time // zero: when something comes
	item           *item     // the innermost Map's that it is in

	total, made, ended int // branches of it
	size               int64
	failure            asl.Failure // of a branch that failed
}

// item is what the context says of one.
type item struct {
	Index int
	Value any
}

// step is workflow.Step before it has its number.
type step struct {
	kind  workflow.Kind
	state *asl.State
	visit int
	data  string
	asl.Failure
}

// child is a branch that begins.
type child struct {
	start string
	input value
	item  *item
}

// call is a function's to be called.
type call struct {
	function string
	payload  json.RawMessage
	token    bool // it gets one, and its answer counts
	wrapped  bool // its answer is one of Lambda's Invoke
}

// event is what has come to a branch; nil: time.
type event struct {
	result  *value
	failure *asl.Failure
	outputs []any // of all its branches
}

// scene is what stays the same in a run.
type scene struct {
	*program
	context func() (asl.Context, error) // Execution and StateMachine
	token   func(attempt int) string
	call    func(resource string, input any) (*call, *asl.Failure)
	random  func() float64
}

// move is one transition: from a place to the next at which something outside is needed, or time.
type move struct {
	*scene
	place
	now      time.Time
	steps    []step
	bytes    int     // of their data
	children []child // that begin with it
	fresh    bool    // it has just parted into them
	call     *call   // that is to be made, when it is written
}

// advance goes on from a place. It has no effects; what they would be is in the move.
func (s *scene) advance(p place, e event, now time.Time) *move {
	if s.random == nil {
		s.random = rand.Float64
	}
	m := &move{scene: s, place: p, now: now}
	m.wake = time.Time{}
	m.begin(e)
	for n := 1; m.phase == entering && n < through && m.bytes < carried; n++ {
		m.enter()
	}
	return m
}

func (m *move) begin(e event) {
	switch {
	case m.phase == entering:
		m.enter()
	case e.failure != nil:
		m.fails(*e.failure)
	case m.phase == waiting:
		m.waited()
	case m.phase == pausing:
		m.tell(step{kind: workflow.StateRetried})
		m.try()
	case m.phase == parted:
		m.gather(e.outputs)
	case e.result != nil:
		m.exit(e.result.data)
	default: // a call that is made again
		m.again()
	}
}

// at is the branch's state.
func (m *move) at() *asl.State { return m.states[m.state] }

func (m *move) tell(s step) {
	s.state = m.at()
	if s.visit = m.visit; s.kind == workflow.StateEntered {
		s.visit = -len(m.steps) - 1
		m.visit = s.visit
	}
	m.steps = append(m.steps, s)
	m.bytes += len(s.data)
}

func (m *move) enter() {
	if m.state == "" {
		m.state = m.start
	}
	m.entered, m.retries = m.now, nil
	m.tell(step{kind: workflow.StateEntered, data: m.input.text})
	m.try()
}

// try makes an attempt at the state.
func (m *move) try() {
	s := m.at()
	if s.Type == asl.Task {
		m.attempt++
	}
	c, input, f := m.read()
	if f != nil {
		m.fails(*f)
		return
	}
	switch s.Type {
	case asl.Pass:
		m.exit(s.Result(input))
	case asl.Succeed:
		m.exit(input)
	case asl.Fail:
		m.ends(s.Fails(input, c))
	case asl.Choice:
		next, f := s.Choose(input, c)
		if f != nil {
			m.fails(*f)
			return
		}
		m.leave(next, input)
	case asl.Wait:
		until, f := s.Until(input, c, m.entered)
		switch {
		case f != nil:
			m.fails(*f)
		case until.After(m.now):
			m.phase, m.wake = waiting, until
		default:
			m.exit(input)
		}
	case asl.Task:
		m.task(s, input, c)
	case asl.Parallel:
		m.split(len(s.Branches))
		m.part(s, input, c)
	case asl.Map:
		items, f := s.Items(input, c)
		if f != nil {
			m.fails(*f)
			return
		}
		m.split(len(items))
		if len(items) == 0 {
			m.exit([]any{})
			return
		}
		m.part(s, input, c)
	}
}

// read is the context and the state's input, by InputPath and Parameters.
func (m *move) read() (asl.Context, any, *asl.Failure) {
	c, err := m.object()
	if err != nil {
		return nil, nil, &asl.Failure{Error: asl.ErrorRuntime, Cause: "the run's input cannot be read"}
	}
	input, f := m.at().Input(m.input.data, c)
	return c, input, f
}

// object is the context object.
func (m *move) object() (asl.Context, error) {
	c, err := m.context()
	if err != nil || c == nil {
		return nil, err
	}
	tries := 0
	for _, n := range m.retries {
		tries += n
	}
	s := m.at()
	c["State"] = map[string]any{"Name": s.Name, "EnteredTime": asl.Time(m.entered), "RetryCount": asl.Number(tries)}
	if s.Type == asl.Task && waitsForToken(s.Resource) {
		c["Task"] = map[string]any{"Token": m.token(m.attempt)}
	}
	if m.item != nil {
		c = asl.ItemContext(c, m.item.Index, m.item.Value)
	}
	return c, nil
}

// waited ends a Wait.
func (m *move) waited() {
	_, input, f := m.read()
	if f != nil {
		m.fails(*f)
		return
	}
	m.exit(input)
}

// exit leaves the state with its result.
func (m *move) exit(result any) { m.leave(m.at().Next, result) }

func (m *move) leave(next string, result any) {
	c, err := m.object()
	f := &asl.Failure{Error: asl.ErrorRuntime, Cause: "the run's input cannot be read"}
	var v value
	if err == nil {
		var output any
		if output, f = m.at().Output(m.input.data, result, c); f == nil {
			v, f = made(output)
		}
	}
	if f != nil {
		m.fails(*f)
		return
	}
	m.left(next, v)
}

func (m *move) left(next string, v value) {
	m.children, m.call = nil, nil
	m.tell(step{kind: workflow.StateExited, data: v.text})
	m.input, m.deadline, m.beat, m.pulse = v, time.Time{}, time.Time{}, 0
	if next == "" {
		m.phase = over
		return
	}
	m.phase, m.state = entering, next
}

// fails is for the state to retry or catch, or for what the branch is part of.
func (m *move) fails(f asl.Failure) {
	f.Error, f.Cause = reason(f.Error, f.Cause)
	m.children, m.call = nil, nil
	s := m.at()
	if which, after, again := s.Retry(f, m.retries, m.random); again {
		m.tell(step{kind: workflow.StateFailed, Failure: f})
		m.retries = append(append([]int(nil), m.retries...), make([]int, max(0, which+1-len(m.retries)))...)
		m.retries[which]++
		m.phase, m.wake = pausing, m.now.Add(after)
		return
	}
	c, _ := m.object()
	next, output, caught, bad := s.Catch(f, m.input.data, c)
	if !caught && bad == nil {
		m.ends(f)
		return
	}
	m.tell(step{kind: workflow.StateFailed, Failure: f})
	var v value
	if bad == nil {
		v, bad = made(output)
	}
	if bad != nil {
		m.phase = failed
		m.failure.Error, m.failure.Cause = reason(bad.Error, bad.Cause)
		return
	}
	m.left(next, v)
}

// ends is the branch's end by a failure.
func (m *move) ends(f asl.Failure) {
	f.Error, f.Cause = reason(f.Error, f.Cause)
	m.tell(step{kind: workflow.StateFailed, Failure: f})
	m.phase, m.failure = failed, f
}
