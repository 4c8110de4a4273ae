package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Line says what has happened, on one line and for people. now is the task as it is known; what the event says itself goes before.
func (e Event) Line(now Envelope) string {
	task := e.Envelope.Over(now)
	who, what := e.Actor.Name, "the task"
	if who == "" {
		who = "Somebody"
	}
	if name := task.Key.Value; name != nil {
		what = *name
	} else if name := task.Title.Value; name != nil {
		what = "“" + *name + "”"
	}
	switch e.Kind {
	case Assignment:
		return who + assigned(task.Assignee.Value, task.Assignee.Set, e.Actor.ID, what)
	case Status:
		if task.Status.Value == nil {
			return who + " changed the status of " + what
		}
		return who + " moved " + what + " to " + *task.Status.Value
	case DueDate:
		switch {
		case !task.Due.Set:
			return who + " changed the due date of " + what
		case task.Due.Value == nil:
			return who + " removed the due date of " + what
		}
		return who + " set the due date of " + what + " to " + *task.Due.Value
	case Comment:
		if e.Detail == "" {
			return who + " commented on " + what
		}
		return line(who + " commented on " + what + ": " + e.Detail)
	}
	if e.Detail == "" {
		return who + " changed " + what
	}
	return who + " " + e.Detail + " " + what
}

func assigned(to *Person, known bool, actor, what string) string {
	switch {
	case !known:
		return " changed the assignee of " + what
	case to == nil:
		return " unassigned " + what
	case to.ID == actor:
		return " took " + what
	case to.Name == "":
		return " assigned " + what
	}
	return " assigned " + what + " to " + to.Name
}

// numbered gives the events of a body their ids: a body that comes again is the same to the byte.
func numbered(body []byte, events []Event) []Event {
	sum := sha256.Sum256(body)
	for i := range events {
		events[i].ID = hex.EncodeToString(sum[:]) + "." + strconv.Itoa(i)
	}
	return events
}
