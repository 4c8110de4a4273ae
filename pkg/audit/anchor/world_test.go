package anchor_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/stretchr/testify/require"
)

const origin, witnessName = "log.example/audit", "witness.example/w1"

// key signs by RFC 6979, so that everything here is the same at every run. It is a test's: its secret is public.
type key struct{ private *ecdsa.PrivateKey }

func testKey(t testing.TB, seed string) key {
	t.Helper()
	scalar := sha256.Sum256([]byte("test key " + seed))
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	require.NoError(t, err)
	return key{private}
}

func (k key) Sign(_ context.Context, digest [32]byte) ([]byte, error) {
	return k.private.Sign(nil, digest[:], crypto.SHA256)
}

func (k key) Public(context.Context) (*ecdsa.PublicKey, error) { return &k.private.PublicKey, nil }

func (k key) verifier(t testing.TB, origin string) anchor.Verifier {
	t.Helper()
	v, err := anchor.LogVerifier(origin, &k.private.PublicKey)
	require.NoError(t, err)
	return v
}

func witnessKey(t testing.TB) (ed25519.PrivateKey, anchor.Verifier) {
	t.Helper()
	seed := sha256.Sum256([]byte("test witness"))
	private := ed25519.NewKeyFromSeed(seed[:])
	v, err := anchor.WitnessVerifier(witnessName, private.Public().(ed25519.PublicKey))
	require.NoError(t, err)
	return private, v
}

// cosign is a witness's line, as c2sp.org/tlog-cosignature has it.
func cosign(note string, private ed25519.PrivateKey, v anchor.Verifier, at uint64) string {
	body := note[:strings.LastIndex(note, "\n\n")+1]
	sig := ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, body))
	id := strings.Split(v.String(), "+")[1]
	raw, _ := hex.DecodeString(id)
	return line(v.Name(), append(binary.BigEndian.AppendUint64(raw, at), sig...))
}

// world is three tenants over four cadences: what the golden files are made of.
type world struct {
	t       testing.TB
	key     key
	chains  []*chain // ascending by tenant
	log     merkle.Range
	anchors []sealed
}

type chain struct {
	tenant string
	events []event
}

type event struct {
	Canonical string `json:"canonical"`
	Prev      string `json:"prev_hash"`
	Hash      string `json:"event_hash"`
}

type sealed struct {
	object  []byte
	before  merkle.Range // the log without it
	lengths []uint64     // of the chains, 0 for none
	anchor.Anchor
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) ident.Time {
	return ident.Time{Time: start.Add(time.Duration(minutes)*time.Minute + 123456*time.Microsecond)}
}

func quarter(n int) ident.Time {
	return ident.Time{Time: start.Add(time.Duration(n) * 15 * time.Minute)}
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, key: testKey(t, "log")}
	for i := range 3 {
		w.chains = append(w.chains, &chain{tenant: fmt.Sprintf("0190a1b2-c3d4-7e5f-8000-00000000000%d", 9-3*(2-i))})
	}
	w.record(1, 1)
	w.seal(nil, 1)
	w.record(0, 2)
	w.record(1, 4)
	w.seal(&anchor.Window{From: quarter(1), To: quarter(4)}, 5)
	w.seal(nil, 6) // nothing new
	w.record(2, 3)
	w.record(1, 2)
	w.seal(nil, 7)
	return w
}

// record adds n events to a chain. Their payloads hold what a second implementation easily gets wrong.
func (w *world) record(tenant, n int) {
	c := w.chains[tenant]
	for range n {
		i := len(c.events)
		minute := 16*i + tenant
		id := fmt.Sprintf("0190a1b2-c3d4-7e5f-9000-%04d%08d", tenant, i)
		envelope := map[string]any{"event_id": id, "tenant_id": c.tenant, "occurred_at": at(minute).String(), "recorded_at": at(minute).String(),
			"actor": "0190a1b2-c3d4-7e5f-a000-000000000001", "actor_type": "user", "source": "graphql", "schema_version": 1}
		switch i % 3 {
		case 0:
			envelope["event_type"] = "agent.created"
			envelope["resource_type"], envelope["resource_id"] = "agent", "0190a1b2-c3d4-7e5f-b000-000000000001"
			envelope["payload"] = map[string]any{"agentId": "0190a1b2-c3d4-7e5f-b000-000000000001", "name": "Ünïcode €\u20ac \"quoted\" \\ / <b>&amp;</b>\u2028", "templateId": "t-1"}
		case 1:
			envelope["event_type"] = "data.export_initiated"
			envelope["redacted_fields"] = []string{"apiKey", "note"}
			envelope["payload"] = map[string]any{"exportJobId": "0190a1b2-c3d4-7e5f-c000-000000000001", "format": "CSV", "requestedBy": "0190a1b2-c3d4-7e5f-a000-000000000001",
				"filter": map[string]any{"\U0001f600": 1, "\ufb01": -1, "a": []any{}, "A": map[string]any{}, "": nil, "n": canonical.MaxInteger, "flag": true}}
		default:
			envelope["event_type"] = "auth.signout"
			envelope["payload"] = map[string]any{"userId": "0190a1b2-c3d4-7e5f-a000-000000000001", "sessionId": "s-1"}
		}
		text, err := canonical.Append(nil, envelope)
		require.NoError(w.t, err)
		prev := anchor.Genesis
		if i > 0 {
			prev = c.events[i-1].Hash
		}
		hash := anchor.EventHash(text, prev)
		c.events = append(c.events, event{string(text), prev, hex.EncodeToString(hash[:])})
	}
}

func (c *chain) leaves(length uint64) (leaves []merkle.Hash) {
	for _, e := range c.events[:length] {
		leaves = append(leaves, anchor.EventLeaf(unhex(e.Hash)))
	}
	return leaves
}

func (w *world) tenants() (tenants []anchor.Tenant, lengths []uint64) {
	for _, c := range w.chains {
		n := uint64(len(c.events))
		lengths = append(lengths, n)
		if n > 0 {
			tenants = append(tenants, anchor.Tenant{TenantID: c.tenant, Length: n, EventHash: unhex(c.events[n-1].Hash), TreeRoot: merkle.Root(c.leaves(n))})
		}
	}
	return tenants, lengths
}

// seal closes a cadence whose window ends at a quarter of an hour.
func (w *world) seal(backfill *anchor.Window, end int) {
	tenants, lengths := w.tenants()
	previous := anchor.Genesis
	if n := len(w.anchors); n > 0 {
		previous = anchor.SHA256(w.anchors[n-1].object)
	}
	h := anchor.Header{Backfill: backfill, Cadence: 900, Number: w.log.Size() + 1, Previous: previous, RecordedAt: at(15 * end),
		Window: anchor.Window{From: quarter(end - 1), To: quarter(end)}}
	object, err := anchor.Seal(h, tenants, w.log, w.sign)
	require.NoError(w.t, err)
	a, err := anchor.Parse(object)
	require.NoError(w.t, err)
	w.anchors = append(w.anchors, sealed{object, w.log.Clone(), lengths, a})
	w.log.Append(anchor.LogLeaf(a.HeaderSHA256))
}

// sign signs for the log; from the third anchor on a witness does too.
func (w *world) sign(size uint64, root merkle.Hash) (string, error) {
	note, err := anchor.SignCheckpoint(w.t.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, w.key)
	if size >= 3 {
		private, v := witnessKey(w.t)
		note += cosign(note, private, v, uint64(start.Unix())+size)
	}
	return note, err
}

// prove is the proof of a tenant's event, from 1, by an anchor, from 1.
func (w *world) prove(tenant int, position uint64, number int) anchor.Proof {
	a, c := w.anchors[number-1], w.chains[tenant]
	index := uint64(0)
	for _, n := range a.lengths[:tenant] {
		if n > 0 {
			index++
		}
	}
	e, length := c.events[position-1], a.lengths[tenant]
	_, _, leaves, err := anchor.Roots(a.Tenants)
	require.NoError(w.t, err)
	return anchor.Proof{Event: []byte(e.Canonical), Prev: e.Prev, Position: position, Length: length, Index: index, Head: unhex(c.events[length-1].Hash),
		EventPath: merkle.Inclusion(c.leaves(length), position-1), TenantPath: merkle.Inclusion(leaves, index), LogPath: anchor.LogPath(a.before),
		Header: a.Header, Checkpoint: a.Checkpoint}
}

func unhex(s string) (h merkle.Hash) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		panic("not a hash: " + s)
	}
	return merkle.Hash(b)
}

// line is a signature line of a note.
func line(name string, idAndSignature []byte) string {
	return "— " + name + " " + base64.StdEncoding.EncodeToString(idAndSignature) + "\n"
}
