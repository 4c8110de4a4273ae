package compliance

import (
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// How payloads are shown.
const (
	maxShown     = 256 << 10 // bytes; a larger payload is shown by its beginning only
	previewBytes = 1 << 10
)

// event is an audit event as the API shows it.
type event struct {
	EventID        string          `json:"eventId"`
	TenantID       string          `json:"tenantId"`
	OccurredAt     ident.Time      `json:"occurredAt"`
	RecordedAt     ident.Time      `json:"recordedAt"`
	Actor          string          `json:"actor"`
	ActorType      audit.ActorType `json:"actorType"`
	Source         audit.Source    `json:"source"`
	EventType      audit.Type      `json:"eventType"`
	EventHash      string          `json:"eventHash"`
	PrevHash       string          `json:"prevHash"`
	ChainPosition  int64           `json:"chainPosition"`
	Anchor         anchorState     `json:"anchor"`
	ResourceType   *string         `json:"resourceType"`
	ResourceID     *string         `json:"resourceId"`
	ThreadUUID     *string         `json:"threadUUID"`
	AgentID        *string         `json:"agentId"`
	RequestID      *string         `json:"requestId"`
	RedactedFields []string        `json:"redactedFields"`
	Payload        *string         `json:"payload"`
	PayloadBytes   int             `json:"payloadBytes"`
	PayloadPreview *string         `json:"payloadPreview"`
	PayloadURL     *string         `json:"payloadUrl"`
}

type anchorState struct {
	Status    string  `json:"status"`
	CadenceID *string `json:"cadenceId"`
}

// show is e as the API shows it; anchored is the newest cadence whose anchor is published.
func show(e *trail.Event, anchored int64) event {
	shown := event{EventID: e.EventID, TenantID: e.TenantID, OccurredAt: e.OccurredAt, RecordedAt: e.RecordedAt, Actor: e.Actor, ActorType: e.ActorType,
		Source: e.Source, EventType: e.Type, EventHash: e.Hash, PrevHash: e.Prev, ChainPosition: e.Position, Anchor: anchorState{Status: "PENDING"},
		ResourceType: given(e.ResourceType), ResourceID: given(e.ResourceID), ThreadUUID: given(e.ThreadID), AgentID: given(e.AgentID),
		RequestID: given(e.RequestID), RedactedFields: e.RedactedFields, PayloadBytes: len(e.Payload)}
	if e.Cadence <= anchored {
		id := anchor.CadenceID(uint64(e.Cadence))
		shown.Anchor = anchorState{"ANCHORED", &id}
	}
	if shown.RedactedFields == nil {
		shown.RedactedFields = []string{}
	}
	text := string(e.Payload)
	if len(text) <= maxShown {
		shown.Payload = &text
	} else {
		cut := preview(text)
		shown.PayloadPreview = &cut
	}
	return shown
}

// preview is the beginning of a text, cut between characters.
func preview(text string) string {
	at := previewBytes
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at]
}

// given is nil for what an event does not have.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
