// Package webhook starts agents and routines for whatever can POST: webhooks, and the calls that become runs.
//
// What holds:
//   - A token is stored as its SHA-256 and compared in constant time. Which of id and token is wrong, nobody can tell.
//   - A call is accepted when its thread, its message and its run are committed, together. A run is a turn (package turn) with the body that
//     came with the call, so it survives whatever a turn survives.
//   - A call of a routine's webhook is accepted when the routine's run (package routine) and the record of the call, which have one id, are committed,
//     together. The run is given the body, and the record ends with the run.
//   - Among calls with the same Idempotency-Key one makes a run; the others are answered with it.
//   - The body of a call reaches the model as a block that is marked as data, and nothing of it the system prompt. Its message, and what a
//     prompt takes from it, are the user message.
package webhook

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Target is what a call starts.
type Target string

const (
	Agent   Target = "agent"
	Routine Target = "routine"
	Task    Target = "task"
)

// UnmarshalText takes a name. A member that is left out, or null, is the default; an empty one is a mistake.
func (t *Target) UnmarshalText(name []byte) error {
	if *t = Target(name); *t == "" {
		return errTarget
	}
	return nil
}

var errTarget = fault.Invalid("target_type must be agent, routine or task")

// The bounds of a webhook's rate limit, in calls a minute.
const (
	DefaultRateLimit     = 10
	DefaultTaskRateLimit = 600 // a tracker sends each change of each task
	MaxRateLimit         = 100_000
)

const (
	maxPrompt = 64 << 10
	maxConfig = 16 << 10
)

// Webhook is a webhook as the API shows it.
type Webhook struct {
	ID       string `json:"id"`
	TenantID string `json:"tenant_id"`
	Token    string `json:"token"` // whole in the answer that creates it, else masked
	Settings
	LastInvokedAt   *ident.Time `json:"last_invoked_at"`
	InvocationCount int64       `json:"invocation_count"`   // its runs so far; of a task tracker's, what it has sent
	HasSecret       bool        `json:"has_signing_secret"` // of a task tracker's: what is not signed with it is refused
	CreatedAt       ident.Time  `json:"created_at"`
	UpdatedAt       ident.Time  `json:"updated_at"`

	Version int `json:"-"` // of the settings
	secret  int // the version of its secret; 0 or less: it has none
}

// Settings are what its owner says of a webhook.
type Settings struct {
	Name        string         `json:"name"`
	Description *string        `json:"description"`
	TargetType  Target         `json:"target_type"` // default agent
	AgentID     *string        `json:"agent_id"`
	RoutineID   *string        `json:"routine_id"`
	Prompt      *string        `json:"prompt"`     // the user message, with {{payload.path}} placeholders; null: the body's message
	Config      map[string]any `json:"config"`     // the owner's own; of a task tracker's, provider says which
	Enabled     *bool          `json:"enabled"`    // default true
	RateLimit   *int           `json:"rate_limit"` // calls a minute; default 10, of a task tracker's 600
}

// complete fills in the defaults and checks everything but what only the database knows.
func (s *Settings) complete() error {
	if s.TargetType == "" {
		s.TargetType = Agent
	}
	if s.Config == nil {
		s.Config = map[string]any{}
	}
	if s.Enabled == nil {
		s.Enabled = new(true)
	}
	if s.RateLimit == nil {
		s.RateLimit = new(DefaultRateLimit)
		if s.TargetType == Task {
			*s.RateLimit = DefaultTaskRateLimit
		}
	}
	if err := text.Check("name", s.Name, 1, 200); err != nil {
		return err
	}
	if err := text.CheckOptional("description", s.Description, 4000); err != nil {
		return err
	}
	if err := s.checkTarget(); err != nil {
		return err
	}
	if s.Prompt != nil {
		if err := text.Check("prompt", *s.Prompt, 1, maxPrompt); err != nil {
			return err
		}
		if err := checkPrompt(*s.Prompt); err != nil {
			return err
		}
	}
	if *s.RateLimit < 1 || *s.RateLimit > MaxRateLimit {
		return fault.Invalid("rate_limit must be from 1 to %d calls a minute", MaxRateLimit)
	}
	config, err := json.Marshal(s.Config)
	if depth, _ := nesting(config); err != nil || len(config) > maxConfig || depth > maxDepth {
		return fault.Invalid("config must be a JSON object of at most %d bytes, nested at most %d levels deep", maxConfig, maxDepth)
	}
	return nil
}

func (s *Settings) checkTarget() error {
	switch s.TargetType {
	case Agent:
		return s.name("agent", &s.AgentID, s.RoutineID, "routine")
	case Routine:
		if s.Prompt != nil {
			return fault.Invalid("prompt is for target_type agent")
		}
		return s.name("routine", &s.RoutineID, s.AgentID, "agent")
	case Task:
		return s.checkTask()
	default:
		return errTarget
	}
}

// name checks that the target is named, and no other.
func (s *Settings) name(kind string, id **string, other *string, otherKind string) error {
	switch {
	case *id == nil:
		return fault.Invalid("%s_id is required for target_type %s", kind, kind)
	case !ident.Valid(**id):
		return unknown(kind)
	case other != nil:
		return fault.Invalid("%s_id is for target_type %s", otherKind, otherKind)
	}
	*id = new(strings.ToLower(**id)) // as the database spells it
	return nil
}

func unknown(kind string) error { return fault.Invalid("%s_id names no %s of the tenant", kind, kind) }

// target is the id of what a call starts.
func (s *Settings) target() string {
	switch {
	case s.TargetType == Routine:
		return *s.RoutineID
	case s.AgentID == nil:
		return string(Task)
	}
	return *s.AgentID
}

// same reports whether two settings say the same.
func (s Settings) same(other Settings) bool {
	a, errA := json.Marshal(s) // members in order, config's names sorted
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
