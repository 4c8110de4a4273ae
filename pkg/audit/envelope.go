package audit

import (
	"errors"
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// SchemaVersion is the one version of the envelope.
const SchemaVersion = 1

// Envelope is an event as it is recorded. Its canonical text is what Append writes and ParseEnvelope reads.
type Envelope struct {
	EventID        string     // UUIDv7, lower case
	TenantID       string     // UUID, lower case
	OccurredAt     ident.Time // the caller's word
	RecordedAt     ident.Time // set by the ledger's writer; zero while pending, and then absent from the text
	Actor          string
	ActorType      ActorType
	Source         Source
	Type           Type
	ResourceType   string // empty: absent, here and below
	ResourceID     string
	ThreadID       string // UUID
	AgentID        string // UUID
	RequestID      string
	Payload        []byte   // canonical text of an object
	RedactedFields []string // names of the payload fields that were removed, sorted; empty: absent
	SchemaVersion  int      // 1
}

// Append appends the canonical text to dst. Payload is copied as it is.
func (e *Envelope) Append(dst []byte) ([]byte, error) {
	w := writer{out: dst}
	w.text(`{"actor":`, e.Actor)
	w.text(`,"actor_type":`, string(e.ActorType))
	w.optional(`,"agent_id":`, e.AgentID)
	w.text(`,"event_id":`, e.EventID)
	w.text(`,"event_type":`, string(e.Type))
	w.time(`,"occurred_at":`, e.OccurredAt)
	w.out = append(append(w.out, `,"payload":`...), e.Payload...)
	if !e.RecordedAt.IsZero() {
		w.time(`,"recorded_at":`, e.RecordedAt)
	}
	for i, name := range e.RedactedFields {
		if i == 0 {
			w.text(`,"redacted_fields":[`, name)
		} else {
			w.text(`,`, name)
		}
	}
	if len(e.RedactedFields) > 0 {
		w.out = append(w.out, ']')
	}
	w.optional(`,"request_id":`, e.RequestID)
	w.optional(`,"resource_id":`, e.ResourceID)
	w.optional(`,"resource_type":`, e.ResourceType)
	w.out = append(w.out, `,"schema_version":1`...)
	w.text(`,"source":`, string(e.Source))
	w.text(`,"tenant_id":`, e.TenantID)
	w.optional(`,"thread_id":`, e.ThreadID)
	return append(w.out, '}'), w.err
}

// writer writes members and keeps the first error.
type writer struct {
	out []byte
	err error
}

func (w *writer) text(before, value string) {
	out, err := canonical.AppendString(append(w.out, before...), value)
	w.out = out
	if err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) optional(before, value string) {
	if value != "" {
		w.text(before, value)
	}
}

func (w *writer) time(before string, t ident.Time) {
	text, err := t.MarshalJSON()
	w.out = append(append(w.out, before...), text...)
	if err != nil && w.err == nil {
		w.err = err
	}
}

// check holds the members to their forms; those of the text are beyond what a column or another member says.
func (e *Envelope) check() error {
	switch {
	case !uuid7(e.EventID):
		return errors.New("event_id must be a lower-case UUIDv7")
	case !uuid(e.TenantID):
		return errors.New("tenant_id must be a lower-case UUID")
	case e.ThreadID != "" && !uuid(e.ThreadID):
		return errors.New("thread_id must be a lower-case UUID")
	case e.AgentID != "" && !uuid(e.AgentID):
		return errors.New("agent_id must be a lower-case UUID")
	case !e.ActorType.Valid():
		return errors.New("actor_type must be user, system or agent")
	case !e.Source.Valid():
		return errors.New("source must be graphql, rest, runtime, scheduler or system")
	case !e.Type.Recorded():
		return errors.New("event_type is not one that is recorded")
	case e.Actor == "":
		return errors.New("actor is missing")
	case e.OccurredAt.Year() < 1 || e.OccurredAt.Year() > 9999:
		return errors.New("occurred_at must lie in the years 1 to 9999")
	}
	for _, f := range [...]struct{ name, value string }{
		{"actor", e.Actor}, {"resource_type", e.ResourceType}, {"resource_id", e.ResourceID}, {"request_id", e.RequestID},
	} {
		if len(f.value) > MaxText {
			return fmt.Errorf("%s is longer than %d bytes", f.name, MaxText)
		}
	}
	return nil
}

// uuid takes the canonical spelling only: an id that can be written in two ways could be used twice.
func uuid(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if c-'0' > 9 && c-'a' > 5 {
				return false
			}
		}
	}
	return true
}

func uuid7(s string) bool {
	return uuid(s) && s[14] == '7' && (s[19] == '8' || s[19] == '9' || s[19] == 'a' || s[19] == 'b')
}
