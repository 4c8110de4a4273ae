package routine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// StepStatus is how far a step is.
type StepStatus string

const (
	StepRunning   StepStatus = "running"
	StepSucceeded StepStatus = "succeeded"
	StepCaught    StepStatus = "caught" // it failed, and the run went on where its Catch says
	StepFailed    StepStatus = "failed" // its last attempt; another may come
	StepCut       StepStatus = "cut"    // the run's end, or another branch's failure, came before its own
)

// Step is one state that a run has entered, as the API shows it.
type Step struct {
	Number     int         `json:"number"` // in the run: larger than that of every state entered before
	State      string      `json:"state"`
	Type       string      `json:"type"` // as the language has it
	Status     StepStatus  `json:"status"`
	Input      *string     `json:"input"`  // JSON
	Output     *string     `json:"output"` // JSON, of one that was left
	Error      *string     `json:"error"`  // of the last attempt that failed: the code
	Cause      *string     `json:"cause"`  // the same, for people
	Attempts   int         `json:"attempts"`
	StartedAt  ident.Time  `json:"startedAt"`
	FinishedAt *ident.Time `json:"finishedAt"` // when it was left, or its last attempt failed
	// Of a verb, what its last attempt is about; nil until that has begun.
	ID         *string   `json:"id"` // for approveStep
	Verb       *Verb     `json:"verb"`
	AgentID    *string   `json:"agentId"`
	ThreadID   *string   `json:"threadId"`   // public, of a turn
	TurnID     *string   `json:"turnId"`     // of run_turn
	ChildRunID *string   `json:"childRunId"` // of start_routine
	Approval   *Approval `json:"approval"`   // of wait_for_approval
}

// StepCursor is the sort key of a run's steps.
type StepCursor struct{ Number int }

// Cursor is s's place in the list.
func (s Step) Cursor() StepCursor { return StepCursor{s.Number} }

// How much of a run's history is read and shown at a time.
const (
	chunk   = 1000    // entries of a history that are asked for at once
	MaxPage = 4 << 20 // bytes of inputs and outputs that are shown at once: a function's answer has a limit
)

// Steps are up to limit states that a run entered, after the cursor, in the order in which it did, as they are now. size is how many of them have at
// most that many bytes of inputs and outputs, at least one. A run that the engine does not know any more has none.
func Steps(ctx context.Context, q postgres.Querier, runs workflow.RunReader, r Run, after *StepCursor, limit, bytes int) (steps []Step, size int, err error) {
	if r.ARN == nil {
		return nil, limit, nil
	}
	from := 0
	if after != nil {
		from = after.Number
	}
	p := pageOf{over: r.Status.Over(), at: map[int]int{}, limit: limit}
	for !p.complete() {
		entries, err := runs.History(ctx, *r.ARN, from, chunk)
		if errors.Is(err, workflow.ErrNoRun) {
			return nil, limit, nil
		}
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			p.add(e)
			from = e.Seq
		}
		if len(entries) < chunk {
			break
		}
	}
	p.close()
	records, err := recordsOf(ctx, q, r.ID)
	if err != nil {
		return nil, 0, err
	}
	join(p.steps, records)
	return p.steps, p.fits(bytes), nil
}

// pageOf gathers the states that a history tells of.
type pageOf struct {
	over  bool // the run is
	steps []Step
	at    map[int]int // where in steps the state is that was entered with that entry
	open  int         // of them that have not been left
	limit int
}

// complete reports whether nothing of the page can change any more.
func (p *pageOf) complete() bool { return len(p.steps) >= p.limit && p.open == 0 }

func (p *pageOf) add(e workflow.Step) {
	if e.Kind == workflow.StateEntered {
		if len(p.steps) < p.limit {
			p.at[e.Visit] = len(p.steps)
			p.steps = append(p.steps, Step{Number: e.Visit, State: e.State, Type: e.Type, Status: StepRunning, Input: jsonOf(e.Input), Attempts: 1, StartedAt: timeOf(e)})
			p.open++
		}
		return
	}
	i, ok := p.at[e.Visit]
	if !ok { // of another page
		return
	}
	s := &p.steps[i]
	switch e.Kind {
	case workflow.StateFailed:
		s.Status, s.Error, s.Cause, s.FinishedAt = StepFailed, new(e.Error), new(Spoken(e.Error, e.Cause)), new(timeOf(e))
	case workflow.StateRetried:
		s.Status, s.FinishedAt = StepRunning, nil
		s.Attempts++
	case workflow.StateExited:
		if s.Status == StepFailed {
			s.Status = StepCaught
		} else {
			s.Status, s.Error, s.Cause = StepSucceeded, nil, nil
		}
		s.Output, s.FinishedAt = jsonOf(e.Output), new(timeOf(e))
		p.open--
	}
}

// close says of what was never left how it ended.
func (p *pageOf) close() {
	for i := range p.steps {
		if s := &p.steps[i]; p.over && s.Status == StepRunning {
			s.Status = StepCut
		}
	}
}

// fits is how many of the steps have at most that many bytes.
func (p *pageOf) fits(most int) int {
	bytes := 0
	for i, s := range p.steps {
		for _, data := range []*string{s.Input, s.Output} {
			if data != nil {
				bytes += len(*data)
			}
		}
		if bytes > most && i > 0 {
			return i
		}
	}
	return max(len(p.steps), 1)
}

func timeOf(e workflow.Step) ident.Time { return ident.Time{Time: e.At.UTC()} }

func jsonOf(data json.RawMessage) *string {
	if data == nil {
		return nil
	}
	return new(string(data))
}
