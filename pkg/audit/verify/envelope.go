package verify

import (
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
)

// envelope holds the text to the canonical form and to an envelope, and the columns to the text.
func (w *walk) envelope() {
	r := &w.row
	e, err := audit.ParseEnvelope(r.text)
	if err != nil {
		if form := canonical.Check(r.text); form != nil {
			w.bad(TextNotCanonical, "the stored text is not its canonical form: %v", form)
		} else {
			w.bad(EnvelopeInvalid, "%v", err)
		}
		return
	}
	if e.RecordedAt.IsZero() {
		w.bad(EnvelopeInvalid, "recorded_at is missing")
		return
	}
	if e.TenantID != w.link.name {
		w.bad(ForeignTenant, "the text is of tenant %s", e.TenantID)
	}
	if id, _ := parseUUID(e.EventID); id != r.event {
		w.bad(ColumnMismatch, "event_id is %s, the text says %s", r.event, e.EventID)
	}
	if microsOf(e.OccurredAt.Time) != r.occurred {
		w.bad(ColumnMismatch, "occurred_at is %s, the text says %s", r.occurred, e.OccurredAt)
	}
	if microsOf(e.RecordedAt.Time) != r.recorded {
		w.bad(ColumnMismatch, "recorded_at is %s, the text says %s", r.recorded, e.RecordedAt)
	}
	if e.Actor != string(r.actor) {
		w.bad(ColumnMismatch, "actor is %q, the text says %q", r.actor, e.Actor)
	}
	if string(e.Type) != string(r.kind) {
		w.bad(ColumnMismatch, "event_type is %q, the text says %q", r.kind, e.Type)
	}
}

// times holds the event's times to each other, to the events around it and to its cadence.
func (w *walk) times() {
	l, r := &w.link, &w.row
	if r.recorded < l.recorded {
		w.bad(RecordedOrder, "recorded at %s, before an event before it (%s)", r.recorded, l.recorded)
	}
	if r.recorded > w.latest {
		w.bad(RecordedOrder, "recorded at %s, which is in the future", r.recorded)
	}
	if r.occurred > r.recorded.add(w.cfg.MaxEventAhead) || r.occurred < r.recorded.add(-w.cfg.MaxEventAge) {
		w.doubt()
	}
	n := uint64(max(r.cadence, 0))
	own, before := w.h.at(n), w.h.at(n-1)
	switch {
	case r.cadence < 1 || n < l.cadence:
		w.bad(CadenceOrder, "is of cadence %d, an event before it of %d", r.cadence, l.cadence)
	case n > w.open:
		w.bad(CadenceOrder, "is of cadence %d, but only %d are open or closed", r.cadence, w.open)
	case own != nil && own.usable && r.recorded > own.recorded:
		w.bad(CadenceOrder, "recorded at %s, after %s was closed (%s)", r.recorded, anchor.CadenceID(n), own.recorded)
	case before != nil && before.usable && r.recorded < before.recorded:
		w.bad(CadenceOrder, "recorded at %s, before %s was closed (%s)", r.recorded, anchor.CadenceID(n-1), before.recorded)
	}
}
