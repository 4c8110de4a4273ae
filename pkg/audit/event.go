package audit

import (
	"net/http"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Limits of an event.
const (
	MaxText    = 200     // bytes of actor, resource_type, resource_id and request_id
	MaxString  = 4 << 10 // bytes of a string in a payload; what is longer is cut
	MaxPayload = 1 << 20 // bytes of a payload, after redaction
)

// Event is what a caller says happened.
type Event struct {
	EventID    string     // UUIDv7; empty: a new one
	TenantID   string     // required
	OccurredAt ident.Time // zero: now
	Actor      string     // who did it: a user's or agent's id, or the name of a part of the platform. Required
	ActorType  ActorType  // required
	Source     Source     // required
	Type       Type       // a recorded one

	ResourceType, ResourceID string // what it was done to; empty: absent, here and below
	ThreadID                 string // the thread's UUID
	AgentID                  string
	RequestID                string         // as in the log
	Payload                  map[string]any // before redaction
}

// Envelope is the event as it will be recorded: checked and redacted, without recorded_at. What the caller got wrong is a fault.
func (e Event) Envelope() (Envelope, error) {
	env := Envelope{EventID: e.EventID, TenantID: e.TenantID, OccurredAt: e.OccurredAt, Actor: clean(e.Actor, MaxString), ActorType: e.ActorType,
		Source: e.Source, Type: e.Type, ResourceType: clean(e.ResourceType, MaxString), ResourceID: clean(e.ResourceID, MaxString), ThreadID: e.ThreadID,
		AgentID: e.AgentID, RequestID: clean(e.RequestID, MaxString), SchemaVersion: SchemaVersion}
	if env.EventID == "" {
		env.EventID = ident.New()
	}
	if env.OccurredAt.IsZero() {
		env.OccurredAt = ident.Now()
	}
	env.OccurredAt = ident.Time{Time: env.OccurredAt.UTC().Truncate(time.Microsecond)}
	if err := e.check(); err != nil {
		return Envelope{}, err
	}
	if err := env.check(); err != nil {
		return Envelope{}, fault.Invalid("%v", err)
	}
	kept, removed, err := redact(rules[e.Type], e.Payload)
	if err != nil {
		return Envelope{}, err
	}
	if env.Payload, err = canonical.Append(nil, kept); err != nil {
		return Envelope{}, err // redact leaves nothing that could be refused
	}
	if len(env.Payload) > MaxPayload {
		return Envelope{}, fault.Invalid("the payload is larger than %d bytes", MaxPayload).WithStatus(http.StatusRequestEntityTooLarge)
	}
	env.RedactedFields = removed
	return env, nil
}

// check refuses what an envelope could not show: types that nobody may use, and text that is not text.
func (e Event) check() error {
	switch {
	case e.Type.Reserved():
		return fault.Invalid("event_type %s is reserved", e.Type)
	case !e.Type.Recorded():
		return fault.Invalid("event_type is not one that is recorded")
	}
	for _, f := range [...]struct{ name, value string }{
		{"actor", e.Actor}, {"resource_type", e.ResourceType}, {"resource_id", e.ResourceID}, {"request_id", e.RequestID},
	} {
		if err := checkText(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}
