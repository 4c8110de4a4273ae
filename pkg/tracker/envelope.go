package tracker

import (
	"time"

	"github.com/agentplatform/agentplatform/pkg/text"
)

// Envelope is a task, as cards show it. A member that is absent is not known; one that is null is known to be empty.
type Envelope struct {
	Provider   string             `json:"provider"`
	TaskID     string             `json:"taskId"`
	Key        text.Patch[string] `json:"key,omitzero"` // that people say: ENG-123
	Title      text.Patch[string] `json:"title,omitzero"`
	URL        text.Patch[string] `json:"url,omitzero"`
	Status     text.Patch[string] `json:"status,omitzero"`     // in the tracker's words
	StatusType text.Patch[Stage]  `json:"statusType,omitzero"` // in the platform's
	Assignee   text.Patch[Person] `json:"assignee,omitzero"`
	Due        text.Patch[string] `json:"due,omitzero"` // YYYY-MM-DD, or with a time (RFC 3339)
	Gone       bool               `json:"gone,omitempty"`
	UpdatedAt  time.Time          `json:"updatedAt,omitzero"` // by the provider's clock
	Source     Source             `json:"source"`
	FetchedAt  time.Time          `json:"fetchedAt,omitzero"` // of a live one: when the provider was asked

	Whole bool `json:"-"` // of an event's: it tells all of the task, also what the task has not
	back  bool // it is not gone any more
}

// Said is when single members of an envelope were said by an event that did not tell the task whole, by the provider's clock.
type Said map[string]time.Time

// Source is where an envelope is from.
type Source string

const (
	SourceLive      Source = "live"      // the provider was asked
	SourceSynthetic Source = "synthetic" // made of what events said
)

// Stage is how far a task is, the same for all trackers.
type Stage string

const (
	Open     Stage = "open"
	Started  Stage = "started"
	Done     Stage = "done"
	Canceled Stage = "canceled"
)

// Complete reports whether the envelope says how the task is, and not only something of it.
func (e Envelope) Complete() bool { return e.Source == SourceLive || e.Whole }

// Over is the older envelope with what e knows in its place.
func (e Envelope) Over(older Envelope) Envelope { return e.Onto(older, time.Time{}, Said{}) }

// Onto is the older envelope with what e knew at that time in its place, but for members that were said later. said is kept with the envelope.
func (e Envelope) Onto(older Envelope, at time.Time, said Said) Envelope {
	whole := e.Complete()
	knows := func(member string, known bool) bool {
		if !known || said[member].After(at) {
			return false
		}
		if delete(said, member); !whole {
			said[member] = at
		}
		return true
	}
	over(&e.Key, older.Key, knows("key", e.Key.Set))
	over(&e.Title, older.Title, knows("title", e.Title.Set))
	over(&e.URL, older.URL, knows("url", e.URL.Set))
	status := knows("status", e.Status.Set)
	over(&e.Status, older.Status, status)
	over(&e.StatusType, older.StatusType, status)
	over(&e.Assignee, older.Assignee, knows("assignee", e.Assignee.Set))
	if now, was := e.Assignee.Value, older.Assignee.Value; now != nil && was != nil && now.Name == "" && now.ID == was.ID {
		e.Assignee = older.Assignee // by name, too
	}
	over(&e.Due, older.Due, knows("due", e.Due.Set))
	if !knows("gone", whole || e.Gone || e.back) {
		e.Gone = older.Gone
	}
	if !whole && !older.UpdatedAt.IsZero() || e.UpdatedAt.IsZero() {
		e.UpdatedAt = older.UpdatedAt
	}
	return e
}

// over has a member as it was, unless the newer envelope knows it.
func over[T any](newer *text.Patch[T], older text.Patch[T], knows bool) {
	if !knows {
		*newer = older
	}
}

// Name is how the task is called in a list: "ENG-123: Rotate the key".
func (e Envelope) Name() string {
	key, title := e.Key.Value, e.Title.Value
	switch {
	case key != nil && title != nil:
		return line(*key + ": " + *title)
	case title != nil:
		return *title
	case key != nil:
		return *key
	}
	return "Task " + e.TaskID
}

// AssigneeID is whose task it is; empty: nobody's, or not known.
func (e Envelope) AssigneeID() string {
	if e.Assignee.Value == nil {
		return ""
	}
	return e.Assignee.Value.ID
}

// known is a value that was said.
func known[T comparable](v T) text.Patch[T] {
	if v == *new(T) {
		return text.Patch[T]{Set: true}
	}
	return text.Patch[T]{Set: true, Value: &v}
}
