package anchor_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/stretchr/testify/require"
)

// object is an anchor, beacon or manifest as stored.
type object struct {
	Why    string `json:"why,omitempty"`
	Object string `json:"object"`
	SHA256 string `json:"sha256,omitempty"` // as the next object names it
	Reason string `json:"reason,omitempty"` // part of what this implementation says
}

func TestGoldenAnchor(t *testing.T) {
	w := newWorld(t)
	v := vectors[object]{About: "Anchor objects, the second with a backfill, the third of an idle cadence, the last two cosigned by a witness. The log is these in order. Broken: refused by Parse", Keys: goldenKeys(t, w)}
	for _, a := range w.anchors {
		v.Good = append(v.Good, object{Object: string(a.object), SHA256: anchor.SHA256(a.object)})
	}
	base := string(w.anchors[1].object)
	broken := func(why, reason string, change ...string) {
		text := base
		for i := 0; i < len(change); i += 2 {
			text = swap(t, text, change[i], change[i+1])
		}
		v.Broken = append(v.Broken, object{Why: why, Object: text, Reason: reason})
	}
	h, tenants := w.anchors[1].Header, w.anchors[1].Tenants
	hash := func(b [32]byte) string { return fmt.Sprintf("%x", b) }
	other := strings.Repeat("ab", 32)
	// resum gives the header the sum of a list that was changed.
	resum := func(change ...string) []string {
		list := base[strings.Index(base, `,"tenants":`)+len(`,"tenants":`) : strings.Index(base, `,"checkpoint":`)]
		for i := 0; i < len(change); i += 2 {
			list = swap(t, list, change[i], change[i+1])
		}
		return append(change, hash(h.TenantsSHA256), anchor.SHA256([]byte(list)))
	}
	note := base[strings.Index(base, `,"checkpoint":`) : len(base)-1]
	broken("a line end", "more than expected", "\\n\"}", "\\n\"}\n")
	broken("another member", `not }`, "\\n\"}", "\\n\",\"x\":1}")
	broken("members in another order", `not ,"tenants":`, note, "", `,"tenants":`, note+`,"tenants":`)
	broken("another version", "not ,\"schema_version\":1", `"schema_version":1`, `"schema_version":2`)
	broken("a space", `not ,"cadence_id":`, `,"cadence_id"`, `, "cadence_id"`)
	broken("five digits of a second", "not a time", h.Window.To.String(), strings.TrimSuffix(h.Window.To.String(), "0Z")+"Z")
	broken("eleven digits of a cadence", "not a cadence id", "cadence-000000000002", "cadence-00000000002")
	broken("a hash in upper case", "not a hash", hash(h.MerkleRoot), strings.ToUpper(hash(h.MerkleRoot)))
	broken("a tenant id in upper case", "not a tenant id", `"tenant_id":"0190a`, `"tenant_id":"0190A`)
	broken("a number with a zero before it", "not a whole number", `"tenant_count":2`, `"tenant_count":02`)
	broken("GENESIS in the second anchor", "previous_anchor_sha256", h.Previous, anchor.Genesis)
	broken("an empty window", "the window is empty", `"window":{"from":"`+h.Window.From.String(), `"window":{"from":"`+h.Window.To.String())
	broken("a backfill that leaves a gap", "the backfill does not end", `"to":"`+h.Backfill.To.String(), `"to":"`+at(1).String())
	broken("a length changed", "tenants_sha256 is not", `"length":2`, `"length":3`)
	broken("a head changed", "merkle_root is not", resum(hash(tenants[0].EventHash), other)...)
	broken("a side tree changed", "proof_root is not", resum(hash(tenants[0].TreeRoot), other)...)
	broken("a length changed, and the sum", "proof_root is not", resum(`"length":2`, `"length":3`)...)
	broken("a tenant left out", "merkle_root is not", resum(tenantText(tenants[0])+",", "")...)
	broken("a tenant twice", "is out of order", resum(tenantText(tenants[0]), tenantText(tenants[0])+","+tenantText(tenants[0]))...)
	broken("tenants in another order", "is out of order", resum(tenantText(tenants[0])+","+tenantText(tenants[1]), tenantText(tenants[1])+","+tenantText(tenants[0]))...)
	broken("another count of tenants", "tenant_count is not", `"tenant_count":2`, `"tenant_count":3`)
	broken("another count of events", "events is not", `"events":7`, `"events":8`)
	broken("an empty chain", "no chain has length 0", `"length":2`, `"length":0`)
	broken("the checkpoint of the anchor before", "of another cadence", note, checkpointMember(t, w.anchors[0].Checkpoint))
	broken("a checkpoint without a signature", "note", note, checkpointMember(t, upTo(w.anchors[0].Checkpoint, "—")))
	broken("a checkpoint with an extension line", "not the text of a checkpoint", `\n\n`, `\nmore\n\n`)
	broken("a checkpoint escaped otherwise", "not a canonical string", "— ", `\u2014 `)
	golden(t, "anchor.json", v)
	for _, b := range v.Broken {
		_, err := anchor.Parse([]byte(b.Object))
		require.ErrorContains(t, err, b.Reason, b.Why)
	}
}

// upTo is what stands before the first end.
func upTo(s, end string) string {
	before, _, _ := strings.Cut(s, end)
	return before
}

func tenantText(x anchor.Tenant) string {
	return fmt.Sprintf(`{"event_hash":"%x","length":%d,"tenant_id":"%s","tree_root":"%x"}`, x.EventHash, x.Length, x.TenantID, x.TreeRoot)
}

func checkpointMember(t *testing.T, note string) string {
	t.Helper()
	return `,"checkpoint":"` + strings.ReplaceAll(note, "\n", `\n`) + `"`
}

func TestGoldenBeacon(t *testing.T) {
	w := newWorld(t)
	keys := []anchor.Verifier{w.key.verifier(t, origin)}
	heads := func(from int) (heads []anchor.Head) {
		for _, x := range w.anchors[3].Tenants[from:] {
			heads = append(heads, anchor.Head{TenantID: x.TenantID, Length: x.Length, EventHash: x.EventHash})
		}
		return heads
	}
	v := vectors[object]{About: "Head beacons. Broken: refused by OpenBeacon with the key of this log", Keys: goldenKeys(t, w)}
	previous := anchor.Genesis
	for i := range 3 {
		b, err := anchor.SealBeacon(t.Context(), anchor.Beacon{Number: uint64(i + 1), Cadence: 4, Previous: previous, RecordedAt: at(90 + i), Tenants: heads(i)}, w.key)
		require.NoError(t, err)
		previous = anchor.SHA256(b)
		v.Good = append(v.Good, object{Object: string(b), SHA256: previous})
		back, err := anchor.OpenBeacon(b, keys)
		require.NoError(t, err)
		require.Equal(t, heads(i), back.Tenants)
		require.Equal(t, uint64(4), back.Cadence)
	}
	signature := func(k key, s string) string {
		text := s[len(`{"beacon":`):strings.Index(s, `,"signature"`)]
		b := sealText(t, k, text)
		return `{"beacon":` + text + `,"signature":"` + b + `"}`
	}
	base := v.Good[1].Object
	broken := func(why, reason, text string) {
		v.Broken = append(v.Broken, object{Why: why, Object: text, Reason: reason})
	}
	const unsigned = "no valid signature"
	broken("a length changed", unsigned, swap(t, base, `"length":7`, `"length":6`))
	broken("another number", unsigned, swap(t, base, `"number":2`, `"number":3`))
	broken("another cadence", unsigned, swap(t, base, "cadence-000000000004", "cadence-000000000005"))
	broken("signed by another key", unsigned, signature(testKey(t, "other"), base))
	broken("the signature of the beacon before", unsigned, upTo(base, `,"signature"`)+strings.TrimPrefix(v.Good[0].Object, upTo(v.Good[0].Object, `,"signature"`)))
	broken("no heads", "no head has moved", signature(w.key, upTo(base, "[")+"[]}"+strings.TrimPrefix(base, upTo(base, `,"signature"`))))
	broken("GENESIS in the second beacon", "previous_sha256", signature(w.key, swap(t, base, v.Good[0].SHA256, anchor.Genesis)))
	broken("not canonical", "not ,\"number\":", signature(w.key, swap(t, base, `"number":`, `"number" :`)))
	broken("not base64", "not base64", base[:len(base)-4]+"!\"}")
	broken("a line end", "more than expected", base+"\n")
	golden(t, "beacon.json", v)
	for _, b := range v.Broken {
		_, err := anchor.OpenBeacon([]byte(b.Object), keys)
		require.ErrorContains(t, err, b.Reason, b.Why)
	}
}

func TestGoldenManifest(t *testing.T) {
	w := newWorld(t)
	keys := []anchor.Verifier{w.key.verifier(t, origin)}
	x := w.anchors[0].Tenants[0]
	m := anchor.Manifest{Bytes: 1234, CreatedAt: at(90), Filter: []byte(`{"eventType":"agent.created","tenantId":"\"}"}`), Format: "CSV", JobID: "0190a1b2-c3d4-7e5f-c000-000000000001",
		Key: "exports/ü \"1\".csv", Rows: 17, SHA256: unhex(anchor.SHA256([]byte("file"))), Heads: []anchor.Head{{TenantID: x.TenantID, Length: x.Length, EventHash: x.EventHash}}}
	v := vectors[object]{About: "Manifests of exports. Broken: refused by OpenManifest with the key of this log", Keys: goldenKeys(t, w)}
	none := m
	none.Heads, none.Format, none.Filter = nil, "NDJSON", []byte(`{}`)
	for _, m := range []anchor.Manifest{m, none} {
		text, err := anchor.SealManifest(t.Context(), m, w.key)
		require.NoError(t, err)
		v.Good = append(v.Good, object{Object: string(text)})
		back, err := anchor.OpenManifest(text, keys)
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
	base := v.Good[0].Object
	broken := func(why, reason, text string) {
		v.Broken = append(v.Broken, object{Why: why, Object: text, Reason: reason})
	}
	broken("rows changed", "no valid signature", swap(t, base, `"rows":17`, `"rows":16`))
	broken("the file's hash changed", "no valid signature", swap(t, base, fmt.Sprintf("%x", m.SHA256), strings.Repeat("ab", 32)))
	broken("the filter not canonical", "not canonical", swap(t, base, `{"eventType"`, `{ "eventType"`))
	broken("another format", "neither CSV nor NDJSON", swap(t, base, `"CSV"`, `"XLS"`))
	broken("a beacon", `not {"manifest":`, swap(t, base, `{"manifest"`, `{"beacon"`))
	golden(t, "manifest.json", v)
	for _, b := range v.Broken {
		_, err := anchor.OpenManifest([]byte(b.Object), keys)
		require.ErrorContains(t, err, b.Reason, b.Why)
	}
	for _, bad := range []func(*anchor.Manifest){
		func(m *anchor.Manifest) { m.Filter = []byte(`[]`) }, func(m *anchor.Manifest) { m.Filter = nil }, func(m *anchor.Manifest) { m.Format = "XLS" },
		func(m *anchor.Manifest) { m.JobID = "1" }, func(m *anchor.Manifest) { m.Key = "\xff" }, func(m *anchor.Manifest) { m.Rows = 1 << 53 },
	} {
		m := m
		bad(&m)
		_, err := anchor.SealManifest(t.Context(), m, w.key)
		require.Error(t, err)
	}
}

// sealText is the signature of text as an object has it.
func sealText(t *testing.T, k key, text string) string {
	t.Helper()
	sig, err := k.Sign(t.Context(), unhex(anchor.SHA256([]byte(text))))
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(sig)
}

// TestSealedAnchorsAreALog: every anchor's checkpoint is the log's with it, and Seal leaves the log to its owner.
func TestSealedAnchorsAreALog(t *testing.T) {
	w := newWorld(t)
	_, witness := witnessKey(t)
	keys := []anchor.Verifier{w.key.verifier(t, origin), witness}
	previous := anchor.Genesis
	for i, a := range w.anchors {
		c, signed, err := anchor.OpenCheckpoint(a.Checkpoint, keys)
		require.NoError(t, err)
		log := a.before.Clone()
		log.Append(anchor.LogLeaf(a.HeaderSHA256))
		require.Equal(t, anchor.Checkpoint{Origin: origin, Size: uint64(i + 1), Root: log.Root()}, c)
		require.Equal(t, i >= 2, len(signed) == 2 && signed[1].Witness)
		require.EqualValues(t, i, a.before.Size())
		require.Equal(t, previous, a.Header.Previous)
		require.True(t, bytes.Contains(a.object, a.Header.Append(nil)))
		previous = anchor.SHA256(a.object)
	}
}

func TestSealRefuses(t *testing.T) {
	w := newWorld(t)
	tenants, _ := w.tenants()
	h := anchor.Header{Cadence: 30, Number: 5, Previous: anchor.SHA256(w.anchors[3].object), RecordedAt: at(200), Window: anchor.Window{From: quarter(7), To: quarter(8)}}
	_, err := anchor.Seal(h, tenants, w.log, w.sign)
	require.NoError(t, err)
	_, err = anchor.Seal(h, tenants, w.anchors[3].before, w.sign)
	require.ErrorContains(t, err, "does not follow")
	_, err = anchor.Seal(h, []anchor.Tenant{tenants[1], tenants[0]}, w.log, w.sign)
	require.ErrorContains(t, err, "out of order")
	_, err = anchor.Seal(h, tenants, w.log, func(uint64, [32]byte) (string, error) { return w.anchors[3].Checkpoint, nil })
	require.ErrorContains(t, err, "not of this log")
	_, err = anchor.Seal(h, tenants, w.log, func(uint64, [32]byte) (string, error) { return "", t.Context().Err() })
	require.Error(t, err)
	h.RecordedAt.Time = h.RecordedAt.Add(1)
	_, err = anchor.Seal(h, tenants, w.log, w.sign)
	require.ErrorContains(t, err, "a time that has no text")

	// A deployment without tenants still anchors.
	first := anchor.Header{Cadence: 30, Number: 1, Previous: anchor.Genesis, RecordedAt: at(0), Window: anchor.Window{From: quarter(0), To: quarter(1)}}
	object, err := anchor.Seal(first, nil, w.anchors[0].before, w.sign)
	require.NoError(t, err)
	a, err := anchor.Parse(object)
	require.NoError(t, err)
	require.Equal(t, unhex(anchor.SHA256(nil)), a.Header.MerkleRoot)
	require.Equal(t, a.Header.MerkleRoot, a.Header.ProofRoot)
}
