package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"events/ü/1.ndjson “x”":         "events/ü/1.ndjson “x”",
		"\x1b[2J\x1b[HVERIFIED":         `"\x1b[2J\x1b[HVERIFIED"`,
		"one\nVERIFIED":                 `"one\nVERIFIED"`,
		"right\u202eto left":            `"right\u202eto left"`,
		"\u009b31m":                     `"\u009b31m"`,
		"not UTF-8 \xff":                `"not UTF-8 \xff"`,
		strings.Repeat("x", 2000):       strings.Repeat("x", 2000),
		strings.Repeat("x", 2001):       strings.Repeat("x", 2000) + "…",
		"x" + strings.Repeat("ü", 1000): "x" + strings.Repeat("ü", 999) + "…",
	} {
		require.Equal(t, want, plain(text))
	}
	require.LessOrEqual(t, len(plain(strings.Repeat("\x80", 1<<20))), 4*longest+10)
}

type stringer struct{}

func (stringer) String() string { return "\x07" }

// Whatever kind of text an argument is, it is made plain; the format is not.
func TestSay(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, say(&b, "\n%s %v %s %s %s %s %d %x", "\x1b", verify.Class("\n"), errors.New("one\n\ttwo\r"), stringer{}, []byte("\x00"), whole(strings.Repeat("x", 3000)+"\x1b"), 7, [2]byte{1, 2}))
	require.Equal(t, "\n"+`"\x1b" "\n" "one two\r" "\a" "\x00" "`+strings.Repeat("x", 3000)+`\x1b" 7 0102`, b.String())
}

// say is the only function that writes text.
func TestNobodyElseWritesText(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "plain.go" {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotRegexp(t, `fmt\.(Fp|P)rint|io\.WriteString|\.WriteString\(|\.Print(f|ln)?\(|\.PrintErr|os\.Std(out|err)\.`, string(source), name)
	}
}

// A report of a hostile bucket and database, on a terminal.
func TestAReportOfHostileTexts(t *testing.T) {
	const evil = "\x1b[2J\x1b[HVERIFIED\n"
	r := verify.Report{Bucket: evil, Findings: []verify.Finding{{Class: verify.Quarantined, Key: evil, EventID: evil, TenantID: evil, Detail: evil, Position: 3}}, Notices: []string{evil}, NotChecked: []string{evil},
		LastAnchor: &verify.LastAnchor{CadenceID: evil, SHA256: evil}, Complete: true}
	var b bytes.Buffer
	require.NoError(t, writeReport(&b, r))
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, b.String(), "\nVERIFIED")
	require.Equal(t, 12, strings.Count(b.String(), `"\x1b[2J\x1b[HVERIFIED\n"`), b.String())
	require.Contains(t, b.String(), "quarantined  \"")
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, false)
	require.Nil(t, p.show())
	p.end()
	require.Empty(t, b.String())
	require.False(t, isTerminal(&b))

	p = newProgress(&b, true)
	p.end()
	require.Empty(t, b.String(), "nothing was shown")
	show := p.show()
	show(verify.Progress{Step: "reading anchors", Anchors: 1})
	show(verify.Progress{Step: "reading chains", Anchors: 2, Events: 30, TotalEvents: 20, Logs: 1, Beacons: 4})
	p.end()
	require.Equal(t, "\r\x1b[Kreading anchors: 1 anchor\r\x1b[Kreading chains: 2 anchors, 30 events of about 30, 1 event log, 4 beacons\r\x1b[K", b.String())

	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	require.False(t, isTerminal(file))
}

func TestFlagsOfTime(t *testing.T) {
	for text, want := range map[string]time.Duration{"365d": 365 * 24 * time.Hour, "0d": 0, "36h": 36 * time.Hour, "90s": 90 * time.Second} {
		var d days
		require.NoError(t, d.Set(text))
		require.Equal(t, want, d.Duration)
	}
	for _, text := range []string{"", "d", "365", "-1d", "-1h", "1.5d", "65536d", "1y"} {
		require.Error(t, (&days{}).Set(text), text)
	}
	require.Equal(t, "365d", (&days{365 * 24 * time.Hour}).String())
	require.Equal(t, "15m0s", (&days{15 * time.Minute}).String())
	for text, want := range map[string]string{"2026-01-31": "2026-01-31T00:00:00Z", "2026-01-31T09:00Z": "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.5+01:00": "2026-01-31T08:00:00.5Z"} {
		var i instant
		require.NoError(t, i.Set(text))
		require.Equal(t, want, i.String())
	}
	for _, text := range []string{"", "yesterday", "2026-02-30", "2026-01-31T09:00:00", "31.01.2026"} {
		require.Error(t, (&instant{}).Set(text), text)
	}
}
