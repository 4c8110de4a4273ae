package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

// writeReport writes the report for people.
func writeReport(out io.Writer, r verify.Report) error {
	var b bytes.Buffer // which takes everything
	switch {
	case !r.Complete:
		_ = say(&b, "NOT FINISHED  %s\n", r.Bucket)
	case len(r.Findings) > 0:
		_ = say(&b, "NOT VERIFIED  %s: %s\n", r.Bucket, count(uint64(len(r.Findings)+r.MoreFindings), "finding"))
	default:
		_ = say(&b, "VERIFIED  %s\n", r.Bucket)
	}
	c := r.Counts
	_ = say(&b, "\n  %s of %s, %s, %s, %s, %s; %s\n", count(c.Events, "event"), count(c.Tenants, "tenant"), count(c.Anchors, "anchor"),
		count(c.Beacons, "beacon"), count(c.Logs, "event log"), count(c.Locks, "lock"), r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
	if a := r.LastAnchor; a != nil {
		_ = say(&b, "  newest anchor: %s of %s, SHA-256 %s\n", a.CadenceID, a.RecordedAt.UTC().Format(time.RFC3339), a.SHA256)
	}
	if c.Pending > 0 || c.Outbox > 0 {
		_ = say(&b, "  not anchored yet: %s in chains, %d in the outbox\n", count(c.Pending, "event"), c.Outbox)
	}
	if first := r.FirstEvent(); first != nil {
		_ = say(&b, "\nFirst bad event\n  %s  tenant %s, position %d\n  %s: %s\n", first.EventID, cmp.Or(first.TenantID, "unknown"), first.Position, first.Class, first.Detail)
	}
	if len(r.Findings) > 0 {
		_ = say(&b, "\nFindings\n")
	}
	for _, f := range r.Findings {
		_ = say(&b, "  %s", f.Class)
		where(&b, f)
		_ = say(&b, "\n      %s\n", f.Detail)
	}
	if r.MoreFindings > 0 {
		_ = say(&b, "  and %d more\n", r.MoreFindings)
	}
	section(&b, "Notices", r.Notices)
	section(&b, "Not checked", r.NotChecked)
	_, err := b.WriteTo(out)
	return err
}

func section(b *bytes.Buffer, title string, lines []string) {
	if len(lines) > 0 {
		_ = say(b, "\n%s\n", title)
	}
	for _, line := range lines {
		_ = say(b, "  %s\n", line)
	}
}

// where writes what a finding is about.
func where(b *bytes.Buffer, f verify.Finding) {
	before := "  "
	add := func(format string, arg any) {
		_ = say(b, before+format, arg)
		before = ", "
	}
	if f.Key != "" {
		add("%s", f.Key)
	}
	if f.EventID != "" {
		add("event %s", f.EventID)
	}
	if f.TenantID != "" {
		add("tenant %s", f.TenantID)
	}
	if f.Position > 0 {
		add("position %d", f.Position)
	}
	if f.Cadence > 0 && f.Key == "" {
		add("cadence %d", f.Cadence)
	}
}

func count(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// progress is one line that is written over again, on a terminal only.
type progress struct {
	out   io.Writer
	shown bool
}

// newProgress shows something only if out is a terminal.
func newProgress(out io.Writer, terminal bool) *progress {
	if !terminal {
		return &progress{}
	}
	return &progress{out: out}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) show() func(verify.Progress) {
	if p.out == nil {
		return nil
	}
	return func(v verify.Progress) {
		p.shown = true
		_ = say(p.out, "\r\x1b[K%s", progressLine(v)) // who cannot see it misses nothing
	}
}

func progressLine(v verify.Progress) string {
	line := fmt.Sprintf("%s: %s", v.Step, count(v.Anchors, "anchor"))
	if v.Events > 0 || v.TotalEvents > 0 {
		line += fmt.Sprintf(", %s", count(v.Events, "event"))
	}
	if v.TotalEvents > 0 {
		line += fmt.Sprintf(" of about %d", max(v.TotalEvents, v.Events))
	}
	if v.Logs > 0 || v.Beacons > 0 {
		line += fmt.Sprintf(", %s, %s", count(v.Logs, "event log"), count(v.Beacons, "beacon"))
	}
	return line
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		_ = say(p.out, "\r\x1b[K")
	}
}
