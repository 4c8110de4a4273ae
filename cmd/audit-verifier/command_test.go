package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/verify/verifytest"
	"github.com/agentplatform/agentplatform/pkg/audit/witness/witnesstest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ran is what a command did.
type ran struct {
	code     int
	out, err string
}

func runs(t *testing.T, args ...string) ran {
	t.Helper()
	var out, diagnostics bytes.Buffer
	code := run(t.Context(), args, &out, &diagnostics)
	return ran{code, out.String(), diagnostics.String()}
}

// nowhere is an environment without anything.
func nowhere(t *testing.T) {
	t.Helper()
	for _, name := range []string{"ANCHOR_BUCKET", "ANCHOR_PUBLIC_KEY", "ANCHOR_ORIGIN", "DATABASE_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// inWorld is the environment of who verifies the world. The log is of yesterday: elapsed are the flags that let it be.
func inWorld(t *testing.T, w *verifytest.World) (elapsed []string) {
	t.Helper()
	nowhere(t)
	t.Setenv("ANCHOR_BUCKET", verifytest.Name)
	t.Setenv("ANCHOR_PUBLIC_KEY", w.Keys()[0].String())
	t.Setenv("DATABASE_URL", w.DB.ReaderURL)
	t.Setenv("AWS_ENDPOINT_URL_S3", w.Server.Endpoint())
	t.Setenv("AWS_ACCESS_KEY_ID", "reader")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "reader-secret")
	return []string{"--max-lateness", "2d", "--max-beacon-lag", "2d", "--clock-tolerance", "2d"}
}

// What is not understood, or contradicts itself, is refused before anything is done.
func TestRefusals(t *testing.T) {
	nowhere(t)
	t.Setenv("ANCHOR_BUCKET", "b")
	t.Setenv("DATABASE_URL", "postgres://x@127.0.0.1:1/x")
	t.Setenv("AWS_REGION", "us-east-1")
	w, err := witnesstest.New("witness.test/one")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	for args, want := range map[string]string{
		"verifi":                                       "unknown command",
		"verify now":                                   "unknown command",
		"verify --sine 2026-01-01":                     "unknown flag",
		"verify --since yesterday":                     "not a time such as",
		"verify --until 2026-13-01":                    "not a time such as",
		"verify --retention-floor 365x":                "--retention-floor",
		"verify --retention-floor 0d":                  "no lock at all",
		"verify --max-lateness -1h":                    "less than nothing",
		"verify --max-unwitnessed -1":                  "--max-unwitnessed",
		"verify --bucket=":                             "which bucket?",
		"verify --since 2026-02-01 --until 2026-01-01": "until is not after since",
		"verify --tenant acme":                         "is not a tenant id",
		"verify --incremental --since 2026-01-01":      "cannot be limited",
		"verify --state x --check-retention":           "cannot be limited",
		"verify --public-key /none":                    "no such file",
		"verify --public-key " + w.Key().String():      "is a witness's key",
		"verify --witness-key a+b+c":                   "key a+b+c",
		"verify --receipts /none":                      "receipts: ",
		"verify --emission-key /none":                  "emission key: ",
		"verify --emission-key " + file:                "is empty",
		"prove":                                        "accepts 1 arg",
		"check":                                        "accepts 1 arg",
		"check " + file:                                "give --public-key",
		"check /none":                                  "no such file",
		"export " + file:                               "the manifest: ",
		"export " + file + " --manifest " + file:       "give --public-key",
	} {
		r := runs(t, strings.Fields(args)...)
		require.Equal(t, unfinished, r.code, "%s: %+v", args, r)
		require.Contains(t, r.err, want, args)
		require.Empty(t, r.out, args)
		require.True(t, strings.HasPrefix(r.err, "audit-verifier: ") && strings.Count(r.err, "\n") == 1, "%s: %q", args, r.err)
	}
	t.Setenv("AWS_REGION", "")
	require.Contains(t, runs(t, "verify").err, "set AWS_REGION")
	t.Setenv("DATABASE_URL", "")
	for _, command := range []string{"verify", "verify --check-chain --check-retention", "prove " + ident.New()} {
		r := runs(t, strings.Fields(command)...)
		require.Equal(t, unfinished, r.code)
		require.Contains(t, r.err, "where is the database?")
	}

	for _, line := range []string{"{", `{"event_id":"x"}`, `{"receipt":"x"}`} {
		require.NoError(t, os.WriteFile(file, []byte(`{"event_id":"x","receipt":"y"}`+"\n"+line), 0o600))
		_, err := readReceipts(file)
		require.ErrorContains(t, err, "receipt 2")
	}
}

func TestVerify(t *testing.T) {
	w := verifytest.Populated(t)
	elapsed := inWorld(t, w)
	does := func(args ...string) ran { return runs(t, append(append([]string{"verify"}, elapsed...), args...)...) }

	r := does()
	require.Equal(t, verified, r.code, r)
	require.Regexp(t, `(?s)^VERIFIED  audit\n\n  27 events of 3 tenants, 4 anchors, \d+ beacons, 12 event logs, \d+ locks; .*newest anchor: cadence-000000000004 of .*Not checked\n  witnesses: `, r.out)
	require.Empty(t, r.err, "no progress where no terminal is")

	t.Run("json", func(t *testing.T) {
		r := does("--json")
		require.Equal(t, verified, r.code)
		var report struct {
			Bucket     string           `json:"bucket"`
			Complete   bool             `json:"complete"`
			Counts     map[string]int   `json:"counts"`
			LastAnchor map[string]any   `json:"last_anchor"`
			Findings   []map[string]any `json:"findings"`
			Notices    []string         `json:"notices"`
			NotChecked []string         `json:"not_checked"`
			StartedAt  time.Time        `json:"started_at"`
			FinishedAt time.Time        `json:"finished_at"`
		}
		in := json.NewDecoder(strings.NewReader(r.out))
		in.DisallowUnknownFields()
		require.NoError(t, in.Decode(&report))
		require.Equal(t, "audit", report.Bucket)
		require.True(t, report.Complete)
		require.Equal(t, 27, report.Counts["events"])
		require.EqualValues(t, 4, report.LastAnchor["number"])
		require.NotNil(t, report.Findings)
		require.Empty(t, report.Findings)
		require.NotEmpty(t, report.NotChecked)
		require.False(t, report.FinishedAt.Before(report.StartedAt))
	})
	t.Run("since and until", func(t *testing.T) {
		r := does("--since", w.Now().Add(time.Hour).Format(time.RFC3339), "--until", "2999-01-01")
		require.Equal(t, verified, r.code, r)
		require.Contains(t, r.out, "texts of events before ")
		require.Contains(t, r.out, "anchors and events after 2999-01-01T00:00:00.000000Z")
	})
	t.Run("locks, without a database", func(t *testing.T) {
		t.Setenv("DATABASE_URL", "")
		r := does("--check-retention")
		require.Equal(t, verified, r.code, r)
		require.Equal(t, found, does("--check-retention", "--retention-floor", "9000d").code)
	})
	t.Run("receipts and MACs", func(t *testing.T) {
		receipts, key := filepath.Join(t.TempDir(), "receipts"), filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(key, append(verifytest.Emission(), '\n'), 0o600))
		var lines []byte
		for _, k := range w.Kept {
			lines = fmt.Appendf(lines, `{"event_id":%q,"receipt":%q}`+"\n", k.EventID, k.Receipt)
		}
		require.NoError(t, os.WriteFile(receipts, lines, 0o600))
		require.Equal(t, verified, does("--receipts", receipts, "--emission-key", key).code)
		require.NoError(t, os.WriteFile(key, []byte("another"), 0o600))
		r := does("--receipts", receipts, "--emission-key", key)
		require.Equal(t, found, r.code)
		require.Contains(t, r.out, "receipt-mismatch")
	})
	t.Run("incremental", func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "sub", "state.json")
		require.Equal(t, verified, does("--incremental", "--state", state).code)
		require.FileExists(t, state)
		r := does("--incremental", "--state", state)
		require.Equal(t, verified, r.code)
		require.Contains(t, r.out, "\n  3 events of 3 tenants")

		require.Equal(t, verified, does("--incremental").code)
		r = does("--incremental")
		require.Contains(t, r.out, "\n  3 events of 3 tenants", "it is remembered by the bucket")
	})
	t.Run("witness", func(t *testing.T) {
		witness, err := witnesstest.New("witness.test/one")
		require.NoError(t, err)
		r := does("--witness-key", witness.Key().String())
		require.Equal(t, found, r.code)
		require.Contains(t, r.out, "unwitnessed")
		require.Equal(t, verified, does("--witness-key", witness.Key().String(), "--max-unwitnessed", "4").code)
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Setenv("DATABASE_URL", "postgres://x:hidden@127.0.0.1:1/x")
		r := does()
		require.Equal(t, unfinished, r.code)
		require.True(t, strings.HasPrefix(r.out, "NOT FINISHED  audit\n"), r.out)
		require.Contains(t, r.err, "audit-verifier: the database: ")
		require.NotContains(t, r.err+r.out, "hidden")
		r = does("--json")
		require.Equal(t, unfinished, r.code)
		require.Contains(t, r.out, `"complete": false`)
	})
	t.Run("stopped", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		var out, diagnostics bytes.Buffer
		require.Equal(t, unfinished, run(ctx, []string{"verify"}, &out, &diagnostics))
		require.Equal(t, "audit-verifier: stopped before it was finished\n", diagnostics.String())
	})
	t.Run("something is found, and wants to hide it", func(t *testing.T) {
		_, err := w.DB.Superuser(t).Exec(t.Context(), `set session_replication_role = replica; update audit_outbox set state = 'quarantined', reason = e'\x1b[2J\x1b[HVERIFIED' where event_id = '`+w.Kept[26].EventID+`'`)
		require.NoError(t, err)
		r := does()
		require.Equal(t, found, r.code)
		require.True(t, strings.HasPrefix(r.out, "NOT VERIFIED  audit: 2 findings\n"), r.out)
		require.Contains(t, r.out, "\nFirst bad event\n  "+w.Kept[26].EventID)
		require.Contains(t, r.out, `\x1b[2J\x1b[HVERIFIED"`)
		require.NotContains(t, r.out, "\x1b")
		r = does("--json")
		require.Equal(t, found, r.code)
		require.Contains(t, r.out, `\u001b[2J\u001b[HVERIFIED`)
	})
}

func TestAllowEmpty(t *testing.T) {
	inWorld(t, verifytest.Empty(t, 1))
	r := runs(t, "verify")
	require.Equal(t, found, r.code)
	require.Contains(t, r.out, "nothing-to-verify")
	require.Equal(t, verified, runs(t, "verify", "--allow-empty").code)
}

func TestProveAndCheck(t *testing.T) {
	w := verifytest.Empty(t, 1)
	w.Record(2)
	w.Anchor()
	w.Record(1)
	inWorld(t, w)
	event, file := w.Kept[0].EventID, filepath.Join(t.TempDir(), "event.proof.json")
	r := runs(t, "prove", event, "-o", file)
	require.Equal(t, ran{}, r)
	proof := text(t, file)
	require.Equal(t, ran{out: proof}, runs(t, "prove", event))
	for id, want := range map[string]string{ident.New(): "not found", w.Kept[2].EventID: "anchor", "x": "must be a UUID"} {
		r := runs(t, "prove", id)
		require.Equal(t, unfinished, r.code)
		require.Contains(t, r.err, want)
	}

	// Offline.
	key := w.Keys()[0].String()
	nowhere(t)
	r = runs(t, "check", file, "--public-key", key)
	require.Equal(t, verified, r.code, r)
	require.True(t, strings.HasPrefix(r.out, "PROVEN  event "+event+"\n"), r.out)
	require.Contains(t, r.out, "signed by "+verifytest.Origin)
	r = runs(t, "check", file, "--public-key", key, "--json")
	require.Equal(t, verified, r.code)
	var checked map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.out), &checked))
	require.Equal(t, true, checked["proven"])
	require.Equal(t, event, checked["event_id"])
	require.IsType(t, map[string]any{}, checked["event"])

	witness, err := witnesstest.New("witness.test/one")
	require.NoError(t, err)
	r = runs(t, "check", file, "--public-key", key, "--witness-key", witness.Key().String())
	require.Equal(t, found, r.code)
	require.Contains(t, r.out, "NOT PROVEN  ")
	require.Contains(t, r.out, "the witness witness.test/one has not cosigned")

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(proof, "Ada", "Eve", 1)), 0o600))
	r = runs(t, "check", file, "--public-key", key)
	require.Equal(t, found, r.code)
	require.True(t, strings.HasPrefix(r.out, "NOT PROVEN  "), r.out)
	r = runs(t, "check", file, "--public-key", key, "--json")
	require.Equal(t, found, r.code)
	require.NoError(t, json.Unmarshal([]byte(r.out), &checked))
	require.Equal(t, false, checked["proven"])
	require.NotEmpty(t, checked["reason"])
}

func TestCheckAnExport(t *testing.T) {
	nowhere(t)
	w := verifytest.Empty(t, 0)
	key, file := w.Keys()[0].String(), filepath.Join(t.TempDir(), "export.ndjson")
	const rows = "{}\n{}\n"
	m, err := anchor.SealManifest(t.Context(), anchor.Manifest{Bytes: uint64(len(rows)), CreatedAt: ident.Now(), Filter: canonical.Raw("{}"), Format: "NDJSON", JobID: ident.New(), Key: "x", Rows: 2,
		SHA256: sha256.Sum256([]byte(rows))}, w.Signer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(rows), 0o600))
	require.NoError(t, os.WriteFile(anchor.ManifestKey(file), m, 0o600))

	r := runs(t, "export", file, "--public-key", key)
	require.Equal(t, verified, r.code, r)
	require.True(t, strings.HasPrefix(r.out, "VERIFIED  2 rows, 6 bytes, SHA-256 "), r.out)
	require.Contains(t, r.out, ", filter {}\n")
	r = runs(t, "export", file, "--public-key", key, "--json")
	require.Equal(t, verified, r.code)
	require.Contains(t, r.out, `"findings": []`)

	require.NoError(t, os.WriteFile(file, []byte("{}\n{ }\n"), 0o600))
	r = runs(t, "export", file, "--public-key", key)
	require.Equal(t, found, r.code)
	require.True(t, strings.HasPrefix(r.out, "NOT VERIFIED  2 rows, 7 bytes"), r.out)
	require.Contains(t, r.out, "\n  export-mismatch: the file has 7 bytes, the manifest says 6\n")
	require.Equal(t, found, runs(t, "export", file, "--public-key", key, "--json").code)
	require.NoError(t, os.Remove(file))
	require.Equal(t, unfinished, runs(t, "export", file, "--public-key", key).code)
}

// Whatever the bucket is called, what is remembered of it lies in one folder.
func TestStateFile(t *testing.T) {
	nowhere(t)
	seen := map[string]bool{}
	for _, bucket := range []string{"acme-audit", "../../.ssh/x", "..", "/etc/passwd", "arn:aws:s3:eu-west-1:1:accesspoint/x", "a/b", "a%2Fb"} {
		v := &verifying{place: place{bucket: bucket}}
		path, err := v.stateFile()
		require.NoError(t, err)
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		require.Equal(t, filepath.Join(cache, "agentplatform", "audit-verifier"), filepath.Dir(path), bucket)
		require.True(t, fs.ValidPath(filepath.Base(path)))
		require.False(t, seen[path], bucket)
		seen[path] = true
	}
	v := &verifying{state: "mine"}
	path, err := v.stateFile()
	require.NoError(t, err)
	require.Equal(t, "mine", path)
}

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3":             {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{commit}},
		"devel 0123456789ab": {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{commit}},
		"devel":              {},
	} {
		require.Equal(t, want, version(info, true))
	}
	require.Equal(t, "unknown", version(nil, false))
	require.Contains(t, text(t, "../../Makefile"), "go build -buildvcs=auto -trimpath -o dist/audit-verifier", "or --version knows no commit")
	require.True(t, strings.HasPrefix(runs(t, "--version").out, "audit-verifier "))
	require.Contains(t, runs(t).out, "Usage:")
}
