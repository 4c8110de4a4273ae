// Package thread holds conversation threads and their messages.
//
// A thread's row is the lock of everything that is numbered in it: message positions and turn numbers are taken from its counters in the
// transaction that writes them, so both run from 1 without gaps, whoever writes and wherever it dies.
package thread

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Status is where a thread is.
type Status string

const (
	Open    Status = "open"
	Closed  Status = "closed"
	Failed  Status = "failed"
	Waiting Status = "waiting" // the agent asked a person
)

// moves is the state table; the same status is no move.
var moves = map[Status][]Status{
	Open:    {Waiting, Closed, Failed},
	Waiting: {Open, Closed, Failed},
	Closed:  {Open},
	Failed:  {Open},
}

// Check refuses a status that cannot follow s.
func (s Status) Check(next Status) error {
	if s == next || slices.Contains(moves[s], next) {
		return nil
	}
	return fault.Invalid("a thread in status %s cannot become %s; allowed: %v", s, next, moves[s])
}

// Channel is where a thread comes from; it is also the prefix of its id.
type Channel string

const (
	Chat   Channel = "CHAT"   // a conversation with a user
	Auto   Channel = "AUTO"   // started by another system or on time
	Email  Channel = "EMAIL"  // started by an e-mail
	Slack  Channel = "SLACK"  // started in Slack
	GitHub Channel = "GITHUB" // started on GitHub
	Task   Channel = "TASK"   // a task of a task tracker
)

// Thread is a thread as the API shows it.
type Thread struct {
	ID         string     `json:"id"` // public: <PREFIX>-<n>
	UUID       string     `json:"threadUUID"`
	Prefix     string     `json:"prefix"`
	Channel    Channel    `json:"channel"`
	Status     Status     `json:"status"`
	Title      *string    `json:"title"`
	AgentID    string     `json:"agentId"`
	SpaceID    string     `json:"spaceId"`
	Metadata   *string    `json:"metadata"` // a JSON object, as text
	TokenCount int64      `json:"tokenCount"`
	CreatedAt  ident.Time `json:"createdAt"`
	UpdatedAt  ident.Time `json:"updatedAt"`
}

// Ref names a thread, as the fields below it need it.
type Ref struct {
	ID   string `json:"id"`
	UUID string `json:"threadUUID"`
}

// New is what a caller says about a new thread.
type New struct {
	Channel  Channel `json:"channel"`
	Title    *string `json:"title"`
	AgentID  string  `json:"agentId"`
	Metadata *string `json:"metadata"`
}

// Fields are what a caller changes on a thread.
type Fields struct {
	Status   text.Patch[Status] `json:"status,omitzero"`
	Title    text.Patch[string] `json:"title,omitzero"`
	Metadata text.Patch[string] `json:"metadata,omitzero"`
}

// apply changes t by the given fields and checks the result.
func (f Fields) apply(t *Thread) error {
	if f.Status.Set {
		if f.Status.Value == nil {
			return fault.Invalid("status must not be null")
		}
		if err := t.Status.Check(*f.Status.Value); err != nil {
			return err
		}
		t.Status = *f.Status.Value
	}
	f.Title.Apply(&t.Title)
	f.Metadata.Apply(&t.Metadata)
	return Check(t.Title, t.Metadata)
}

const maxMetadata = 64 << 10

// Check refuses a title or metadata that no thread may have.
func Check(title, metadata *string) error {
	if err := text.CheckOptional("title", title, 500); err != nil {
		return err
	}
	if metadata == nil {
		return nil
	}
	if err := text.Check("metadata", *metadata, 1, maxMetadata); err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(*metadata), &object) != nil || object == nil {
		return fault.Invalid("metadata must be a JSON object")
	}
	return text.CheckJSON("metadata", *metadata)
}

// EstimateTokens is the platform's approximate token count of a text: a token for every four characters, rounded up.
func EstimateTokens(body string) int { return (utf8.RuneCountInString(body) + 3) / 4 }
