// Package task puts what has happened to tasks of task trackers (package tracker) into the platform's threads, and tells people's devices.
//
// What holds:
//
//   - A delivery is taken in when its event is committed, with its place in the log: from then on it is put into its thread, whatever dies. A tracker is answered
//     before that is done.
//   - A delivery is taken in once, by the provider's id of it and by its body, among many at once too. What a delivery tells is put into its thread once, by the
//     event's own identity: a delivery that tells again what another one told adds what is new.
//   - A task has one thread. Its envelope is the task as the provider says, asked as a user who has to do with the event; where that cannot be done, it is what
//     the events said. It never goes back: what is older than the envelope changes nothing but the list of messages, and no member of it goes back for an event
//     that says only some.
//   - Nobody is asked for what a stranger may have made up: an event that is not verified, a task of another account than the connection's.
//   - An event of a delivery that fails stands in no other's way. One that fails for good is in the log as an error, and its body is kept as long as the log, if it is not too large for that.
//   - A push is claimed before it is sent: at most once an event and device, whoever dies.
//   - What a tracker says is data. It starts no turn, and is in a system message of the thread, which a turn gives the model as such.
package task

import (
	"context"
	"log/slog"

	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// Function processes events; Order is what it is invoked with. Whoever takes an event in invokes it after the commit; its sweep finds what was lost.
const Function = "process-task-event"

// Order names an event; the zero Order asks for a sweep.
type Order struct {
	TenantID string `json:"tenantId"`
	EventID  string `json:"eventId"`
}

// told is an event in its thread, as people's devices are told of it.
type told struct {
	id       string // the same however often it is processed
	event    tracker.Event
	task     tracker.Envelope // as it is, by all that is known
	threadID string           // public
	late     bool             // task is known as of later than the event
}

// recipient is who is told: whose task it is, by the event before anything else, but for what is known since. Of an assignment that somebody else has
// followed nobody is told.
func (t told) recipient() string {
	said, now := t.event.Envelope, t.task.AssigneeID()
	switch {
	case !t.late:
		return said.Over(t.task).AssigneeID()
	case t.event.Kind == tracker.Assignment && said.Assignee.Set && said.AssigneeID() != now:
		return ""
	}
	return now
}

func warn(ctx context.Context, what string, o Order, err error) {
	slog.WarnContext(ctx, what, "tenant_id", o.TenantID, "event_id", o.EventID, "error", err)
}
