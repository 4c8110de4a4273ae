package agentcore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// EventName is a server-sent event of an invocation, in the order of their coming.
type EventName string

// A turn's invocation is answered by Accepted, any number of Progress, and one of Done and Released; or by Refused alone.
const (
	EventAccepted EventName = "accepted" // data {turnId}: the runtime holds the turn's lease
	EventRefused  EventName = "refused"  // data {reason}
	EventProgress EventName = "progress" // data: an event of package publish, with __typename
	EventDone     EventName = "done"     // data {status}: the turn has ended
	EventReleased EventName = "released" // data {}: the turn goes on elsewhere or later
)

// Reason is why a runtime does not take a turn.
type Reason string

const (
	NotDue   Reason = "not_due"  // nothing to do: ended, held by another attempt, or behind the thread's running turn
	Busy     Reason = "busy"     // as many turns as it may run
	Stopping Reason = "stopping" // it takes no more
)

// maxEvent bounds one event, in bytes: a progress event holds a whole reply at the most.
const maxEvent = 4 << 20

// Accepted reads an invocation's answer until the turn is accepted; nil when it is, or was not due.
func Accepted(body io.Reader) error { return answer(scan(body)) }

// answer reads an invocation's events until the turn is accepted; nil when it is, or was not due.
func answer(events *bufio.Scanner) error {
	name, data, err := next(events)
	if err != nil {
		return fmt.Errorf("agentcore: the runtime's answer broke off: %w", err)
	}
	switch name {
	case EventAccepted:
		return nil
	case EventRefused:
		var refused struct {
			Reason Reason `json:"reason"`
		}
		if err := json.Unmarshal(data, &refused); err != nil {
			return fmt.Errorf("agentcore: the runtime's refusal cannot be read: %w", err)
		}
		if refused.Reason == NotDue {
			return nil
		}
		return &Refused{refused.Reason}
	}
	return fmt.Errorf("agentcore: the runtime answered with the event %q", name)
}

// next is the next event of a stream; io.EOF behind the last one.
func next(lines *bufio.Scanner) (name EventName, data []byte, err error) {
	for lines.Scan() {
		line := lines.Bytes()
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && name != "":
			return name, data, nil
		case string(field) == "event":
			name = EventName(value)
		case string(field) == "data":
			data = append(data, value...)
		}
	}
	if err := lines.Err(); err != nil {
		return "", nil, err
	}
	return "", nil, io.EOF
}

func scan(body io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	return lines
}

// relay gives the progress of an accepted turn to the function until the turn's end.
func relay(events *bufio.Scanner, to func(event []byte)) error {
	for {
		name, data, err := next(events)
		switch {
		case errors.Is(err, io.EOF), name == EventDone, name == EventReleased:
			return nil
		case err != nil:
			return err
		case name == EventProgress:
			to(data)
		}
	}
}
