// Package turn is the platform's main job: an agent's answer to the messages that wait in a thread.
//
// Request queues a turn in the transaction of the message that asks for it. A Runner claims it and takes it through four phases,
// one file each: perceive, plan, act, feedback. What makes it safe to die at any line:
//
//   - The database decides who runs a turn: one running turn a thread (a unique index), held by a lease. Every write of an attempt is in
//     a transaction that first proves the lease (hold_turn), so an attempt that lost it can change nothing.
//   - Each model call and tool call is a step row, written before it starts and after it ended. A claimed turn goes on behind its last
//     finished step.
//   - Reply, turn record, thread counters and the request to notify subscribers are one transaction. A turn has one reply (a unique index).
//   - Nothing in memory is needed: the reaper finds turns that nobody works on, and notifications that nobody published.
package turn

import (
	"time"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// The limits of one turn.
const (
	maxModelCalls = 25
	maxToolCalls  = 50
	maxDuration   = 10 * time.Minute
	maxAttempts   = 3              // a turn that died this often is failed
	approvalTime  = 24 * time.Hour // that a person has to approve a call
	maxTokens     = 4096
	historyTokens = 100_000 // of earlier messages given to the model
	historyLength = 400     // of earlier messages at the most
)

// Lease is how long an attempt may be silent before another one takes its turn over.
const Lease = 60 * time.Second

// DispatchGrace is how long a queued turn waits for its dispatch before the reaper sends another one.
const DispatchGrace = 10 * time.Second

// Status is how far a turn is.
type Status string

const (
	Queued      Status = "queued"
	Running     Status = "running"
	Waiting     Status = "waiting" // for a person
	Succeeded   Status = "succeeded"
	Failed      Status = "failed"
	Interrupted Status = "interrupted"
	Cancelled   Status = "cancelled"
)

// Turn is the durable record of one turn as the API shows it.
type Turn struct {
	ID                 string              `json:"id"`
	ThreadID           *string             `json:"threadId"` // public; nil: the target of a webhook's run could not be started
	AgentID            string              `json:"agentId"`
	Status             Status              `json:"status"`
	Phases             []Phase             `json:"phases"`
	Model              *string             `json:"model"`
	InputTokens        int                 `json:"inputTokens"`
	OutputTokens       int                 `json:"outputTokens"`
	CostUSD            *string             `json:"costUsd"` // six fractional digits
	ToolOutcomes       []thread.ToolResult `json:"toolOutcomes"`
	WaitsFor           *WaitsFor           `json:"waitsFor"`
	Approvals          []ToolApproval      `json:"approvals"`
	RetryOf            *string             `json:"retryOf"`
	GuardrailDecisions []guardrail.Record  `json:"guardrailDecisions"`
	EvaluatorScores    []EvaluatorScore    `json:"evaluatorScores"`
	Error              *string             `json:"error"`
	Attempts           int                 `json:"attempts"`
	QueuedAt           ident.Time          `json:"queuedAt"`
	StartedAt          *ident.Time         `json:"startedAt"`
	FinishedAt         *ident.Time         `json:"finishedAt"`
	StepsPrunedAt      *ident.Time         `json:"stepsPrunedAt"`

	number     *int // in the thread, from 1
	threadUUID *string
}

// EvaluatorScore is how an evaluator rated the turn.
type EvaluatorScore struct {
	Evaluator string  `json:"evaluator"`
	Score     float64 `json:"score"`
	Reason    *string `json:"reason"`
}

// PhaseName is one of the four phases.
type PhaseName string

const (
	Perception PhaseName = "perception"
	Planning   PhaseName = "planning"
	Action     PhaseName = "action"
	Feedback   PhaseName = "feedback"
)

// Phase is one phase with its times.
type Phase struct {
	Name       PhaseName   `json:"name"`
	StartedAt  ident.Time  `json:"startedAt"`
	FinishedAt *ident.Time `json:"finishedAt"`
	DurationMs *float64    `json:"durationMs"`
}

// phases records what follows what; a new phase ends the one before.
type phases []Phase

func (p *phases) begin(name PhaseName) {
	p.end()
	*p = append(*p, Phase{Name: name, StartedAt: ident.Now()})
}

func (p *phases) end() {
	if len(*p) == 0 || (*p)[len(*p)-1].FinishedAt != nil {
		return
	}
	last := &(*p)[len(*p)-1]
	now := ident.Now()
	ms := float64(now.Sub(last.StartedAt.Time).Microseconds()) / 1000
	last.FinishedAt, last.DurationMs = &now, &ms
}
