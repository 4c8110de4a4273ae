package verify

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// collector gathers what is found. It is safe for concurrent use, and keeps the first limit findings in the order of the report.
type collector struct {
	mu         sync.Mutex
	limit      int
	findings   []Finding
	more       int
	notices    []notice
	notChecked []string
}

// notice is a remark, and how often one like it was made.
type notice struct {
	format, text string
	times        int
}

func (c *collector) add(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings, f)
	if len(c.findings) >= 2*c.limit {
		c.trim()
	}
}

// trim keeps those that come first, whatever order they were found in.
func (c *collector) trim() {
	slices.SortStableFunc(c.findings, inOrder)
	c.findings = slices.Compact(c.findings)
	if len(c.findings) > c.limit {
		c.more += len(c.findings) - c.limit
		c.findings = c.findings[:c.limit]
	}
}

// notice says what is no finding. Of those with the same format the first few are listed, the rest counted.
func (c *collector) notice(format string, args ...any) {
	const listed = 20
	c.mu.Lock()
	defer c.mu.Unlock()
	last, same := -1, 0
	for i := range c.notices {
		if c.notices[i].format == format {
			last, same = i, same+1
		}
	}
	if same < listed {
		c.notices = append(c.notices, notice{format, fmt.Sprintf(format, args...), 1})
	} else {
		c.notices[last].times++
	}
}

func (c *collector) unchecked(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notChecked, text) {
		c.notChecked = append(c.notChecked, text)
	}
}

func (c *collector) clean() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.findings) == 0
}

func (c *collector) fill(r *Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trim()
	r.Findings, r.MoreFindings = append([]Finding{}, c.findings...), c.more
	r.Notices, r.NotChecked = []string{}, append([]string{}, c.notChecked...)
	for _, n := range c.notices {
		if n.times > 1 {
			n.text += fmt.Sprintf(" (and %d more like this)", n.times-1)
		}
		r.Notices = append(r.Notices, n.text)
	}
}

// groups are the sections of a report.
var groups = [][]Class{
	{HistoryRewritten},
	{NothingToVerify, ObjectReplaced, ObjectHidden, ObjectUnexpected, ObjectChanged, LockMode, Retention, Clock},
	{AnchorMissing, AnchorLate, AnchorInvalid, AnchorChain, AnchorWindow, AnchorSignature, AnchorLog, AnchorShrunk, AnchorDatabase, Unwitnessed},
	{TenantMissing, ChainTruncated, EventChanged, HashMismatch, LinkBroken, PositionGap, Fork, TextNotCanonical, EnvelopeInvalid, ColumnMismatch, ForeignTenant,
		DuplicateEvent, CadenceOrder, RecordedOrder, OccurredAt, HeadMismatch, TreeMismatch, HiddenRow, BeaconMismatch, BeaconTruncated, BeaconLate, EventLost, NotEmitted,
		MACMismatch, ReceiptMissing, ReceiptMismatch, HeadDatabase},
}

func group(c Class) int {
	if i := slices.IndexFunc(groups, func(g []Class) bool { return slices.Contains(g, c) }); i >= 0 {
		return i
	}
	return len(groups)
}

func rank(c Class) int { return slices.Index(groups[min(group(c), len(groups)-1)], c) }

// inOrder is the order of a report: section; in it by key of the object, tenant, position; of one position, what the write-once log has there comes first.
func inOrder(a, b Finding) int {
	last := func(position uint64) uint64 { return position - 1 } // a finding of a whole chain comes behind those of its events
	return cmp.Or(cmp.Compare(group(a.Class), group(b.Class)), cmp.Compare(a.Key, b.Key), cmp.Compare(a.TenantID, b.TenantID),
		cmp.Compare(last(a.Position), last(b.Position)), cmp.Compare(rank(a.Class), rank(b.Class)), cmp.Compare(a.Cadence, b.Cadence), cmp.Compare(a.Detail, b.Detail))
}

// dropped counts a finding that is not listed.
func (c *collector) dropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more++
}
