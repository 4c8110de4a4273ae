package verify

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// ExportReport is what a file of events is, beside what its manifest says.
type ExportReport struct {
	Manifest anchor.Manifest `json:"-"`
	Rows     uint64          `json:"rows"` // events in the file
	Bytes    uint64          `json:"bytes"`
	SHA256   string          `json:"sha256"`
}

// CheckExport holds an exported file to its manifest, and the manifest to the log's keys: signature, length, hash, number of rows. Nothing else is needed. Whatever
// does not fit is a finding; the error is of reading the file.
func CheckExport(file io.Reader, manifest []byte, keys []anchor.Verifier) (ExportReport, []Finding, error) {
	var r ExportReport
	var findings []Finding
	fail := func(format string, args ...any) {
		findings = append(findings, Finding{Class: ExportMismatch, Detail: fmt.Sprintf(format, args...)})
	}
	m, err := anchor.OpenManifest(manifest, keys)
	if errors.Is(err, anchor.ErrSignature) {
		fail("the manifest is not signed by a given key of the log")
	} else if err != nil {
		fail("the manifest is none: %v", err)
		return r, findings, nil
	}
	hash := sha256.New()
	count := &lineCount{quotes: m.Format == "CSV"}
	length, err := io.Copy(io.MultiWriter(hash, count), file)
	if err != nil {
		return r, findings, err
	}
	sum := merkle.Hash(hash.Sum(nil))
	r = ExportReport{Manifest: m, Rows: count.lines, Bytes: uint64(length), SHA256: fmt.Sprintf("%x", sum)}
	if m.Format == "CSV" && r.Rows > 0 {
		r.Rows-- // the names of the columns
	}
	if r.Bytes != m.Bytes {
		fail("the file has %d bytes, the manifest says %d", r.Bytes, m.Bytes)
	}
	if sum != m.SHA256 {
		fail("the file has the SHA-256 %x, the manifest says %x", sum, m.SHA256)
	}
	if r.Rows != m.Rows || count.open {
		fail("the file has %d whole rows, the manifest says %d", r.Rows, m.Rows)
	}
	return r, findings, nil
}

// lineCount counts the lines that are written to it; in CSV, a line end inside of quotes is none.
type lineCount struct {
	quotes, inside bool
	lines          uint64
	open           bool // the last line has no end
}

func (c *lineCount) Write(p []byte) (int, error) {
	if !c.quotes {
		c.lines += uint64(bytes.Count(p, []byte("\n")))
		c.open = len(p) > 0 && p[len(p)-1] != '\n'
		return len(p), nil
	}
	for _, b := range p {
		c.open = b != '\n' || c.inside
		switch {
		case b == '"':
			c.inside = !c.inside
		case !c.open:
			c.lines++
		}
	}
	return len(p), nil
}
