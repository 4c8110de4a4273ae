package schedule

import (
	"encoding/json"
	"time"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/clock/expression"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// The limits of schedules.
const (
	MaxSchedules  = 100      // of a tenant
	MaxIterations = 100      // of a loop
	NextRuns      = 5        // that a schedule tells
	maxInput      = 64 << 10 // bytes of a routine's input
	maxBudget     = 1_000_000_000
)

// The times that decide what becomes of an occurrence.
const (
	Late     = 5 * time.Minute  // after it, an occurrence has been missed: see Missed
	lateness = 15 * time.Minute // after it, the drift check takes one that nobody ran for lost
	apart    = time.Minute - 1  // two occurrences are not as near: a clock whose seconds are others than the database's means the same one
	firstRun = 5 * time.Second  // from the saving of a rate without a start to its first run: the clock has heard of it by then
)

// Missed is what becomes of an occurrence that nobody ran when it was due.
type Missed string

const (
	MissedSkip    Missed = "skip"     // nothing
	MissedRunOnce Missed = "run_once" // the last of those that were missed is run, late
)

// Loop has an agent go on in the same thread until one of its conditions stops it.
type Loop struct {
	MaxIterations      int              `json:"maxIterations"`      // turns in all, 1 to MaxIterations
	Goal               []evaluator.Spec `json:"goal"`               // reached when each of them lets the last answer pass; none: there is no goal
	Budget             *LoopBudget      `json:"budget"`             // nil: none but the budgets that hold for all
	ContinuationPrompt *string          `json:"continuationPrompt"` // the user message of the turns after the first; nil: DefaultContinuation
}

// LoopBudget stops a loop when what its turns have used together is this or more. At least one of its bounds is set.
type LoopBudget struct {
	Tokens    *int64 `json:"tokens"`    // input and output
	USDMicros *int64 `json:"usdMicros"` // millionths of a US dollar
}

// DefaultContinuation is what an agent is told between the turns of a loop.
const DefaultContinuation = "Continue. If the goal has been reached, say so."

// Schedule is what a tenant has run on time, as the API shows it. One of AgentID and RoutineID is set.
type Schedule struct {
	ID             string       `json:"id"`
	Name           string       `json:"name"`
	AgentID        *string      `json:"agentId"`
	RoutineID      *string      `json:"routineId"`
	Prompt         *string      `json:"prompt"`   // an agent's: the first user message of its thread
	Input          *string      `json:"input"`    // a routine's: a JSON object, as text
	Title          *string      `json:"title"`    // an agent's: of its threads
	Metadata       *string      `json:"metadata"` // an agent's: of its threads, a JSON object, as text
	Expression     string       `json:"expression"`
	TimeZone       string       `json:"timeZone"` // IANA name
	StartAt        *ident.Time  `json:"startAt"`
	EndAt          *ident.Time  `json:"endAt"`
	Enabled        bool         `json:"enabled"`
	Missed         Missed       `json:"missed"`
	Loop           *Loop        `json:"loop"` // of an agent; nil: one turn
	LastOccurrence *ident.Time  `json:"lastOccurrence"`
	NextRuns       []ident.Time `json:"nextRuns"` // in order; none while it is disabled
	Settled        bool         `json:"settled"`  // the clock has what this says
	CreatedBy      string       `json:"createdBy"`
	CreatedAt      ident.Time   `json:"createdAt"`
	UpdatedAt      ident.Time   `json:"updatedAt"`

	since                 time.Time
	revision, putRevision int
	deleted               bool
}

// Cursor is the sort key of the list of schedules.
type Cursor struct{ Name, ID string }

// Cursor is s's place in the list.
func (s Schedule) Cursor() Cursor { return Cursor{s.Name, s.ID} }

// Execution is what auto-thread is started with: Occurrence by the clock, ExecutionID by a person.
type Execution struct {
	TenantID    string `json:"tenantId"`
	ScheduleID  string `json:"scheduleId"`
	Occurrence  string `json:"occurrence,omitempty"`  // RFC 3339
	ExecutionID string `json:"executionId,omitempty"` // of the row that waits for it
}

// RunName is the name, in the engine, of the run for an occurrence: whoever starts it once more gets the same run.
func RunName(scheduleID string, occurrence time.Time) string {
	return scheduleID + "-" + occurrence.UTC().Format("20060102T150405Z")
}

// onClock is what the clock is to hold of a schedule. A rate without a start is counted from since, so that database and clock agree on its occurrences.
func (s Schedule) onClock(tenantID string) clock.Schedule {
	input, _ := json.Marshal(Execution{TenantID: tenantID, ScheduleID: s.ID, Occurrence: clock.ScheduledTime}) // a struct of strings
	c := clock.Schedule{Name: s.ID, Expression: s.Expression, TimeZone: s.TimeZone, Enabled: s.Enabled, Input: input}
	if s.StartAt != nil {
		c.Start = s.StartAt.Time
	}
	if s.EndAt != nil {
		c.End = s.EndAt.Time
	}
	if e, err := expression.Parse(s.Expression); err == nil && e.Rate() > 0 && s.StartAt == nil {
		c.Start = s.since
	}
	return c
}

// times are the schedule's occurrences.
func (s Schedule) times() (expression.Times, error) { return due.Times(s.onClock(""), s.since) }

// due reports whether there is another occurrence after one, and not after that instant.
func (s Schedule) due(after, until time.Time) bool {
	times, err := s.times()
	if err != nil { // a zone that the database of zones no longer has
		return false
	}
	_, found := times.Last(after.Add(apart), until)
	return found
}

// next fills in NextRuns.
func (s *Schedule) next(now time.Time) {
	s.NextRuns = []ident.Time{}
	if !s.Enabled || s.deleted {
		return
	}
	times, err := s.times()
	if err != nil { // a zone that the database of zones no longer has
		return
	}
	for _, t := range times.NextN(now, NextRuns) {
		s.NextRuns = append(s.NextRuns, ident.Time{Time: t.UTC()})
	}
}
