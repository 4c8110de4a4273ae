package verify

import (
	"slices"
	"time"
)

// Report is what a run found.
type Report struct {
	Bucket     string    `json:"bucket"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	// Complete is false when the run ended early; Error says why.
	Complete bool   `json:"complete"`
	Error    string `json:"error,omitempty"`
	Counts   Counts `json:"counts"`
	// LastAnchor is the newest anchor that was checked; nil when there is none.
	LastAnchor *LastAnchor `json:"last_anchor,omitempty"`
	Findings   []Finding   `json:"findings"` // in order: objects, anchors, then chains by tenant and position, then the rest; never null
	// MoreFindings is how many were found beyond those listed.
	MoreFindings int      `json:"more_findings,omitempty"`
	Notices      []string `json:"notices"`     // what an auditor should know and is no finding
	NotChecked   []string `json:"not_checked"` // what this run could not or was told not to check
}

// Counts are how much was checked.
type Counts struct {
	Anchors  uint64 `json:"anchors"`
	Beacons  uint64 `json:"beacons"`
	Logs     uint64 `json:"event_logs"`
	Locks    uint64 `json:"locks"`
	Tenants  uint64 `json:"tenants"`
	Events   uint64 `json:"events"`
	Pending  uint64 `json:"pending_events"` // of Events: not yet covered by an anchor
	Outbox   uint64 `json:"outbox_pending"` // recorded, not yet in a chain
	Receipts uint64 `json:"receipts"`
}

// LastAnchor identifies an anchor.
type LastAnchor struct {
	Number     uint64    `json:"number"`
	CadenceID  string    `json:"cadence_id"`
	SHA256     string    `json:"sha256"` // of the object
	RecordedAt time.Time `json:"recorded_at"`
	WindowTo   time.Time `json:"window_to"`
	Checkpoint string    `json:"checkpoint"`
}

// Finding is one thing that is not as it must be.
type Finding struct {
	Class    Class  `json:"class"`
	TenantID string `json:"tenant_id,omitempty"`
	EventID  string `json:"event_id,omitempty"` // as the write-once log has it where the row was changed
	Position uint64 `json:"position,omitempty"` // in the tenant's chain
	Cadence  uint64 `json:"cadence,omitempty"`  // number of the anchor
	Key      string `json:"key,omitempty"`      // of the object
	Detail   string `json:"detail"`
}

// OK reports whether everything was checked that was asked for, and nothing found.
func (r Report) OK() bool { return r.Complete && len(r.Findings) == 0 }

// FirstEvent is the first finding that names an event, nil if none does.
func (r Report) FirstEvent() *Finding {
	for i := range r.Findings {
		if r.Findings[i].EventID != "" {
			return &r.Findings[i]
		}
	}
	return nil
}

// Has reports whether a finding of this class is listed.
func (r Report) Has(class Class) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Class == class })
}
