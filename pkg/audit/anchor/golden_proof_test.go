package anchor_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
)

// proofFile is a proof file; the reason is what both checkers say.
type proofFile struct {
	Why    string        `json:"why,omitempty"`
	File   string        `json:"file"`             // as text, or
	Base64 string        `json:"base64,omitempty"` // its bytes, if they are no text
	Reason anchor.Reason `json:"reason,omitempty"` // form, event, head, proof_root, log_root, signature
}

func newProofFile(why, file string, reason anchor.Reason) proofFile {
	if utf8.ValidString(file) {
		return proofFile{Why: why, File: file, Reason: reason}
	}
	return proofFile{Why: why, Base64: base64.StdEncoding.EncodeToString([]byte(file)), Reason: reason}
}

func (f proofFile) bytes(t testing.TB) []byte {
	t.Helper()
	if f.Base64 != "" {
		return decode(t, f.Base64)
	}
	return []byte(f.File)
}

func TestGoldenProof(t *testing.T) {
	w := newWorld(t)
	v := vectors[proofFile]{About: "Proof files; file is the text of each, or base64 its bytes. Broken: refused for the reason given, by the public key alone", Keys: goldenKeys(t, w)}
	good := func(why string, file []byte) {
		v.Good = append(v.Good, newProofFile(why, string(file), ""))
	}
	build := func(p anchor.Proof) []byte {
		file, err := p.Build()
		require.NoError(t, err)
		return file
	}
	good("one event, one tenant, one anchor", build(w.prove(1, 1, 1)))
	for number, a := range w.anchors[1:] {
		for tenant, length := range a.lengths {
			for position := uint64(1); position <= length; position++ {
				good("", build(w.prove(tenant, position, number+2)))
			}
		}
	}
	base := w.prove(1, 4, 4)
	text := string(build(base))
	good("with a line end after it", []byte(text+"\n"))
	v.Broken = brokenProofs(t, w, base, text)
	golden(t, "proof.json", v)

	keys := []anchor.Verifier{w.key.verifier(t, origin)}
	checker := anchor.NewChecker(keys)
	for _, g := range v.Good {
		file := g.bytes(t)
		r, err := checker.Check(file)
		require.NoError(t, err, g.Why)
		require.Equal(t, []anchor.Signed{{Name: origin}}, r.Signed)
		require.Equal(t, hex.EncodeToString(r.EventHash[:]), w.chains[tenantOf(w, r)].events[r.Position-1].Hash)
		again, err := r.Build()
		require.NoError(t, err)
		require.Equal(t, strings.TrimSuffix(string(file), "\n"), string(again))
	}
	for _, b := range v.Broken {
		_, err := checker.Check(b.bytes(t))
		var refused *anchor.ProofError
		require.ErrorAs(t, err, &refused, b.Why)
		require.Equal(t, b.Reason, refused.Reason, "%s: %v", b.Why, err)
	}
}

// brokenProofs are made of one good proof: by other parts, or by other bytes.
func brokenProofs(t *testing.T, w *world, base anchor.Proof, text string) (broken []proofFile) {
	add := func(reason anchor.Reason, why, file string) {
		require.NotEqual(t, text, file, why)
		broken = append(broken, newProofFile(why, file, reason))
	}
	part := func(reason anchor.Reason, why string, change func(*anchor.Proof)) {
		p := base
		p.EventPath, p.TenantPath, p.LogPath = slices.Clone(p.EventPath), slices.Clone(p.TenantPath), slices.Clone(p.LogPath)
		change(&p)
		file, err := p.Build()
		require.NoError(t, err, why)
		add(reason, why, string(file))
	}
	bytes := func(reason anchor.Reason, why string, change ...string) {
		file := text
		for i := 0; i < len(change); i += 2 {
			file = swap(t, file, change[i], change[i+1])
		}
		add(reason, why, file)
	}
	other := w.prove(2, 2, 4)

	part(anchor.BadProofRoot, "the payload changed", func(p *anchor.Proof) { p.Event = []byte(swap(t, string(p.Event), "t-1", "t-2")) })
	part(anchor.BadProofRoot, "another event of the chain", func(p *anchor.Proof) { p.Event = []byte(w.chains[1].events[2].Canonical) })
	part(anchor.BadProofRoot, "another prev_hash", func(p *anchor.Proof) { p.Prev = w.chains[1].events[3].Hash })
	part(anchor.BadProofRoot, "another position", func(p *anchor.Proof) { p.Position = 3 })
	part(anchor.BadProofRoot, "a shorter chain", func(p *anchor.Proof) { p.Length = 6 })
	part(anchor.BadProofRoot, "another head", func(p *anchor.Proof) { p.Head[0] ^= 1 })
	part(anchor.BadProofRoot, "another tenant's place", func(p *anchor.Proof) { p.Index = 0 })
	part(anchor.BadProofRoot, "another tenant's path", func(p *anchor.Proof) { p.Index, p.TenantPath = 0, w.prove(0, 1, 4).TenantPath })
	part(anchor.BadProofRoot, "another tenant's id in the event", func(p *anchor.Proof) {
		p.Event = []byte(swap(t, string(p.Event), w.chains[1].tenant, w.chains[2].tenant))
	})
	part(anchor.BadProofRoot, "a bit of the event's path", func(p *anchor.Proof) { p.EventPath[1][31] ^= 1 })
	part(anchor.BadProofRoot, "the event's path in another order", func(p *anchor.Proof) { p.EventPath[0], p.EventPath[1] = p.EventPath[1], p.EventPath[0] })
	part(anchor.BadProofRoot, "a bit of the tenant's path", func(p *anchor.Proof) { p.TenantPath[0][0] ^= 128 })
	part(anchor.BadProofRoot, "another proof_root", func(p *anchor.Proof) { p.Header.ProofRoot[5] ^= 1 })
	part(anchor.BadLogRoot, "another count of tenants", func(p *anchor.Proof) { p.Header.TenantCount = 4 })
	part(anchor.BadHead, "the last event changed", func(p *anchor.Proof) {
		*p = w.prove(1, 7, 4)
		p.Event = []byte(swap(t, string(p.Event), "t-1", "t-2"))
	})
	part(anchor.BadLogRoot, "another count of events", func(p *anchor.Proof) { p.Header.Events++ })
	part(anchor.BadLogRoot, "another time", func(p *anchor.Proof) { p.Header.RecordedAt = at(1) })
	part(anchor.BadLogRoot, "another window", func(p *anchor.Proof) { p.Header.Window.From = at(1) })
	part(anchor.BadLogRoot, "a backfill", func(p *anchor.Proof) { p.Header.Backfill = &anchor.Window{From: quarter(1), To: p.Header.Window.From} })
	part(anchor.BadLogRoot, "another cadence", func(p *anchor.Proof) { p.Header.Cadence = 901 })
	part(anchor.BadLogRoot, "another merkle_root", func(p *anchor.Proof) { p.Header.MerkleRoot[0] ^= 1 })
	part(anchor.BadLogRoot, "another tenants_sha256", func(p *anchor.Proof) { p.Header.TenantsSHA256[0] ^= 1 })
	part(anchor.BadLogRoot, "another anchor before", func(p *anchor.Proof) { p.Header.Previous = anchor.SHA256(nil) })
	part(anchor.BadLogRoot, "a bit of the anchor's path", func(p *anchor.Proof) { p.LogPath[0][0] ^= 1 })
	part(anchor.BadLogRoot, "the header of another anchor", func(p *anchor.Proof) {
		*p = w.prove(1, 4, 3) // nothing moved between the second and the third
		p.Header.Previous = w.anchors[1].Header.Previous
	})
	part(anchor.BadLogRoot, "another root in the checkpoint", func(p *anchor.Proof) {
		c, err := anchor.ParseCheckpoint(p.Checkpoint)
		require.NoError(t, err)
		root := base64.StdEncoding.EncodeToString(c.Root[:])
		c.Root[0] ^= 1
		p.Checkpoint = swap(t, p.Checkpoint, root, base64.StdEncoding.EncodeToString(c.Root[:]))
	})
	signatures(t, w, base, part)

	forms := func(why string, change ...string) { bytes(anchor.BadForm, why, change...) }
	add(anchor.BadForm, "nothing", "")
	add(anchor.BadForm, "null", "null")
	add(anchor.BadForm, "not JSON", text[:len(text)-1])
	add(anchor.BadForm, "a byte order mark", "\ufeff"+text)
	add(anchor.BadForm, "two line ends", text+"\n\n")
	add(anchor.BadForm, "a line end of Windows", text+"\r\n")
	forms("invalid UTF-8", "agent.created", "agent.crea\xffed")
	forms("a space", `,"index":`, `, "index":`)
	forms("another member", `{"checkpoint"`, `{"check":1,"checkpoint"`)
	forms("a member missing", `,"index":1`, ``)
	forms("a member twice", `,"index":1`, `,"index":1,"index":1`)
	forms("members in another order", `,"index":1`, ``, `,"paths"`, `,"index":1,"paths"`)
	forms("another version", "agentplatform/1", "agentplatform/2")
	forms("a header of another version", `},"index"`, `,"x":1},"index"`)
	forms("the event as text", `"event":{`, `"event":"{`, `},"hashes"`, `}","hashes"`)
	forms("the event as a list", `"event":{`, `"event":[{`, `},"hashes"`, `}],"hashes"`)
	forms("the event with names in another order", `"actor_type":"user",`, ``, `,"event_type"`, `,"actor_type":"user","event_type"`)
	forms("the event with an escape that need not be", "agent.created", `agent\u002ecreated`)
	forms("the event with a lone surrogate", "t-1", `\ud800`)
	forms("the event with a fraction", `"schema_version":1`, `"schema_version":1.0`)
	forms("the event with an exponent", `"schema_version":1`, `"schema_version":1e0`)
	forms("the event with a large integer", `"schema_version":1`, `"schema_version":9007199254740992`)
	forms("the event with minus zero", `"schema_version":1`, `"schema_version":-0`)
	forms("the event too deep", `"t-1"`, strings.Repeat("[", 63)+strings.Repeat("]", 63))
	forms("position 0", `"position":4`, `"position":0`)
	forms("a position beyond the chain", `"position":4`, `"position":8`)
	forms("a position that is text", `"position":4`, `"position":"4"`)
	forms("a negative index", `"index":1`, `"index":-1`)
	forms("an index beyond the tenants", `"index":1`, `"index":3`)
	forms("a time without six digits", base.Header.RecordedAt.String(), "2026-03-01T12:15:00Z")
	forms("a window without an end", `,"to":"`+base.Header.Window.To.String()+`"`, "")
	forms("base64 with other last bits", member(text, "hashes"), spoil(t, member(text, "hashes")))
	forms("base64url", member(text, "hashes"), "-"+member(text, "hashes")[1:])
	forms("a hash too few", member(text, "hashes"), cut(t, member(text, "hashes"), -32))
	forms("a hash too many", member(text, "hashes"), cut(t, member(text, "hashes"), 32))
	forms("half a hash", member(text, "paths"), cut(t, member(text, "paths"), -16))
	forms("a path too short", member(text, "paths"), cut(t, member(text, "paths"), -32))
	forms("a path too long", member(text, "paths"), cut(t, member(text, "paths"), 32))
	forms("no paths", member(text, "paths"), "")
	forms("a checkpoint with an extension line", `\n\n— `, `\nmore\n\n— `)
	forms("a checkpoint whose size has a zero before it", `\n4\n`, `\n04\n`)
	forms("a checkpoint of size 0", `\n4\n`, `\n0\n`)
	forms("a checkpoint without signatures", text[strings.Index(text, "— "):strings.Index(text, `","event"`)], "")
	forms("a checkpoint without an origin", origin+`\n`, `\n`)
	forms("a signature that is not base64", "— "+origin+" ", "— "+origin+" !")
	forms("a signature line with another dash", "— ", "- ")
	bytes(anchor.BadEvent, "the event without a tenant", `,"tenant_id":"`+w.chains[1].tenant+`"`, ``)
	bytes(anchor.BadEvent, "the event of a tenant in upper case", `"tenant_id":"0190a`, `"tenant_id":"0190A`)
	bytes(anchor.BadEvent, "the event's tenant a number", `"tenant_id":"`+w.chains[1].tenant+`"`, `"tenant_id":1`)
	bytes(anchor.BadEvent, "the event without a type", `"event_type":"agent.created",`, ``)
	add(anchor.BadForm, "two proofs", text+text)
	part(anchor.BadProofRoot, "another tenant's proof under this event", func(p *anchor.Proof) {
		event := p.Event
		*p = other
		p.Event = event
	})
	return broken
}

// signatures are the proofs whose arithmetic is right.
func signatures(t *testing.T, w *world, base anchor.Proof, part func(anchor.Reason, string, func(*anchor.Proof))) {
	log, err := anchor.ParseCheckpoint(base.Checkpoint)
	require.NoError(t, err)
	lines := strings.SplitAfter(base.Checkpoint, "\n")
	ours, witnesses := lines[4], lines[5]
	stranger, err := anchor.SignCheckpoint(t.Context(), log, testKey(t, "other"))
	require.NoError(t, err)
	part(anchor.BadSignature, "signed by another key under the log's name", func(p *anchor.Proof) { p.Checkpoint = stranger })
	part(anchor.BadSignature, "signed by a witness only", func(p *anchor.Proof) { p.Checkpoint = swap(t, p.Checkpoint, ours, "") })
	part(anchor.BadSignature, "a bit of the signature", func(p *anchor.Proof) {
		raw := decode(t, strings.TrimSpace(strings.TrimPrefix(ours, "— "+origin+" ")))
		raw[len(raw)-1] ^= 1
		p.Checkpoint = swap(t, p.Checkpoint, ours, line(origin, raw))
	})
	part(anchor.BadSignature, "another key id", func(p *anchor.Proof) {
		raw := decode(t, strings.TrimSpace(strings.TrimPrefix(ours, "— "+origin+" ")))
		raw[0] ^= 1
		p.Checkpoint = swap(t, p.Checkpoint, ours, line(origin, raw))
	})
	part(anchor.BadSignature, "the log renamed", func(p *anchor.Proof) { p.Checkpoint = strings.ReplaceAll(p.Checkpoint, origin, "log.example/other") })
	part(anchor.BadSignature, "the log renamed in its signature", func(p *anchor.Proof) { p.Checkpoint = swap(t, p.Checkpoint, "— "+origin, "— log.example/other") })
	part(anchor.BadSignature, "a wrong signature of the key beside the right one", func(p *anchor.Proof) {
		raw := decode(t, strings.TrimSpace(strings.TrimPrefix(ours, "— "+origin+" ")))
		raw[40] ^= 1
		p.Checkpoint = swap(t, p.Checkpoint, witnesses, line(origin, raw))
	})
	part(anchor.BadSignature, "an anchor of a forger, right in itself", func(p *anchor.Proof) {
		tenants := []anchor.Tenant{{TenantID: w.chains[1].tenant, Length: 1, EventHash: anchor.EventHash(p.Event, anchor.Genesis)}}
		tenants[0].TreeRoot = anchor.EventLeaf(tenants[0].EventHash)
		object, err := anchor.Seal(anchor.Header{Cadence: 900, Number: 1, Previous: anchor.Genesis, RecordedAt: at(15), Window: anchor.Window{From: quarter(0), To: quarter(1)}}, tenants,
			merkle.Range{}, func(size uint64, root merkle.Hash) (string, error) {
				return anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, testKey(t, "forger"))
			})
		require.NoError(t, err)
		a, err := anchor.Parse(object)
		require.NoError(t, err)
		*p = anchor.Proof{Event: p.Event, Prev: anchor.Genesis, Position: 1, Length: 1, Head: tenants[0].EventHash, Header: a.Header, Checkpoint: a.Checkpoint}
	})
}

// TestSecondChecker runs the checker in docs/ over all golden proofs: it says what Check says.
func TestSecondChecker(t *testing.T) {
	node, err := exec.LookPath("node")
	require.NoError(t, err, "this test needs Node 20 or newer on the PATH")
	script, err := filepath.Abs("../../../docs/check-proof.mjs")
	require.NoError(t, err)
	source, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Less(t, strings.Count(string(source), "\n"), 150)

	w := newWorld(t)
	base := w.prove(1, 4, 4)
	text, err := base.Build()
	require.NoError(t, err)
	dir := t.TempDir()
	pem, err := sign.PublicPEM(&w.key.private.PublicKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem, 0o600))
	run := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), node, append([]string{script}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	write := func(name string, file []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), file, 0o600))
		return name
	}

	ok := write("ok", text)
	out, code := run(ok, "--public-key", "key.pem", "--origin", origin)
	require.Zero(t, code, out)
	require.Contains(t, out, w.chains[1].events[3].Hash)
	require.Contains(t, out, "number 4 of 7")
	out, code = run(ok, "--public-key", "key.pem", "--origin", "log.example/other")
	require.Equal(t, 1, code)
	require.Contains(t, out, "refused signature:")
	for _, args := range [][]string{{}, {ok}, {ok, "--public-key", "missing.pem"}, {"missing", "--public-key", "key.pem"}, {ok, "--public-key", ok}, {ok, "--public-key", "key.pem", "--other"}} {
		_, code := run(args...)
		require.Equal(t, 2, code, args)
	}

	v := read[proofFile](t, "proof.json")
	files, all := []string{"--public-key", "key.pem"}, slices.Concat(v.Good, v.Broken)
	for i, f := range all {
		files = append(files, write(strconv.Itoa(i), f.bytes(t)))
	}
	out, code = run(files...)
	require.Equal(t, 1, code)
	for i, f := range all {
		want := strconv.Itoa(i) + ": verified\n"
		if f.Reason != "" {
			want = strconv.Itoa(i) + ": refused " + string(f.Reason) + ": "
		}
		require.Contains(t, "\n"+out, "\n"+want, f.Why)
	}
	require.Equal(t, len(v.Good), strings.Count(out, ": verified\n"))
	_, code = run(append(files[:2:2], files[2:2+len(v.Good)]...)...)
	require.Zero(t, code)
}

func decode(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	return b
}

// member is the text of a member that is plain text.
func member(file, name string) string {
	_, rest, _ := strings.Cut(file, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// cut is base64 of n bytes more, or less.
func cut(t *testing.T, s string, n int) string {
	t.Helper()
	b := decode(t, s)
	if n > 0 {
		return base64.StdEncoding.EncodeToString(append(b, b[:n]...))
	}
	return base64.StdEncoding.EncodeToString(b[:len(b)+n])
}

// spoil is base64 of the same bytes whose unused bits are not zero.
func spoil(t *testing.T, s string) string {
	t.Helper()
	b := decode(t, s)
	b = b[:len(b)-len(b)%3-2] // two characters of padding
	text := base64.StdEncoding.EncodeToString(b)
	require.True(t, strings.HasSuffix(text, "=="))
	i := len(text) - 3
	return text[:i] + string(text[i]+1) + "=="
}

func tenantOf(w *world, r anchor.Checked) int {
	return slices.IndexFunc(w.chains, func(c *chain) bool { return c.tenant == r.TenantID })
}
