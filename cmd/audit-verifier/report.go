package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

// writeReport writes the report for people.
func writeReport(out io.Writer, r verify.Report) error {
	var b strings.Builder
	switch {
	case !r.Complete:
		fmt.Fprintf(&b, "NOT FINISHED  %s\n", r.Bucket)
	case len(r.Findings) > 0:
		fmt.Fprintf(&b, "NOT VERIFIED  %s: %s\n", r.Bucket, count(uint64(len(r.Findings)+r.MoreFindings), "finding"))
	default:
		fmt.Fprintf(&b, "VERIFIED  %s\n", r.Bucket)
	}
	c := r.Counts
	fmt.Fprintf(&b, "\n  %s of %s, %s, %s, %s, %s; %s\n", count(c.Events, "event"), count(c.Tenants, "tenant"), count(c.Anchors, "anchor"),
		count(c.Beacons, "beacon"), count(c.Logs, "event log"), count(c.Locks, "lock"), r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
	if a := r.LastAnchor; a != nil {
		fmt.Fprintf(&b, "  newest anchor: %s of %s, SHA-256 %s\n", a.CadenceID, a.RecordedAt.UTC().Format(time.RFC3339), a.SHA256)
	}
	if c.Pending > 0 || c.Outbox > 0 {
		fmt.Fprintf(&b, "  not anchored yet: %s in chains, %d in the outbox\n", count(c.Pending, "event"), c.Outbox)
	}
	if first := r.FirstEvent(); first != nil {
		fmt.Fprintf(&b, "\nFirst bad event\n  %s  tenant %s, position %d\n  %s: %s\n", first.EventID, or(first.TenantID, "unknown"), first.Position, first.Class, first.Detail)
	}
	if len(r.Findings) > 0 {
		b.WriteString("\nFindings\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s%s\n      %s\n", f.Class, where(f), f.Detail)
	}
	if r.MoreFindings > 0 {
		fmt.Fprintf(&b, "  and %d more\n", r.MoreFindings)
	}
	section(&b, "Notices", r.Notices)
	section(&b, "Not checked", r.NotChecked)
	_, err := io.WriteString(out, b.String())
	return err
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// where is what a finding is about.
func where(f verify.Finding) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
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
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}

func count(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// progress is one line that is written over again, on a terminal only.
type progress struct {
	out   io.Writer
	shown bool
}

func newProgress(out io.Writer) *progress {
	if file, ok := out.(*os.File); ok && isTerminal(file) {
		return &progress{out: out}
	}
	return &progress{}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) show() func(verify.Progress) {
	if p.out == nil {
		return nil
	}
	return func(v verify.Progress) {
		p.shown = true
		fmt.Fprintf(p.out, "\r\x1b[K%s", progressLine(v))
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
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
