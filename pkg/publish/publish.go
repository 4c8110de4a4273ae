// Package publish hands events to the subscribers of threads and agents: the port and the events.
//
// Invariants:
//   - An event carries tenantId and its subject's id (threadId or agentId) as top-level members, because subscriptions are filtered by
//     them: an event without them is refused, never broadcast.
//   - An event is the JSON object of its SDL type, with __typename, in the SDL's spelling: the subscription's selection reads it as it is.
//   - Publish hands over in order and stops at the first event that could not be handed over, so what arrived is a prefix.
//   - The events of a thread have the thread's numbers (pkg/notify stores and numbers them before they are published), so that a client knows
//     what it missed, and what it has already. AgentActivity is of many threads and has none.
//   - Publishing is not storing: NewMessage and ThreadUpdate are published again after a crash, so they may arrive more than once; the others
//     arrive at most once (a chunk twice would garble the text of a client that does not look at numbers).
//
// The adapters are pkg/cloud/appsync and the hub of pkg/local/realtime; both take the same events.
package publish

import (
	"context"
	"encoding/json"
	"fmt"
)

// Publisher hands events to whoever is subscribed. It is safe for concurrent use.
type Publisher interface {
	// Publish hands the events over in order. The error names the first that was not; those before it were, those after it were not.
	Publish(ctx context.Context, events ...Event) error
}

// Topic is the mutation that a kind of event is published by; the SDL's @aws_subscribe binds subscription fields to it.
type Topic string

const (
	ThreadEvents    Topic = "publishThreadEvent"   // feeds onThreadEvent; the subject is the thread's public id
	AgentActivities Topic = "publishAgentActivity" // feeds onAgentActivity; the subject is the agent's id
)

// Address is where an event goes: the subscribers of one topic who asked for this subject of this tenant.
type Address struct {
	Topic    Topic
	TenantID string
	Subject  string
}

// Check refuses an address that would not narrow the event to one subject of one tenant.
func (a Address) Check() error {
	if a.Topic == "" || a.TenantID == "" || a.Subject == "" {
		return fmt.Errorf("publish: incomplete address %+v", a)
	}
	return nil
}

// Event is one of the events of this package.
type Event interface {
	// Address is who may receive it.
	Address() Address
	// Repeatable says whether a receiver copes with getting it twice, so that an unclear failure may be tried again.
	Repeatable() bool
	// MarshalJSON is the object of the SDL type, with __typename.
	json.Marshaler
}

// ThreadEvent is an event of one thread (SDL: ThreadEvent).
type ThreadEvent interface {
	Event
	// Number is its place among the thread's events, from 1; 0: not stored yet.
	Number() int
	// Numbered is the event with that number.
	Numbered(n int) ThreadEvent
}
