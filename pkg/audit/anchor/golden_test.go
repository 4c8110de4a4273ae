package anchor_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
)

// The golden files are for other implementations: what is right and what must be refused, each with the reason.
//
//	go test ./pkg/audit/anchor -run TestGolden -update
//
// makes them again. They change only with the format.
var update = flag.Bool("update", false, "write the golden files in testdata")

type vectors[T any] struct {
	About  string `json:"about"`
	Keys   *keys  `json:"keys,omitempty"`
	Good   []T    `json:"good"`
	Broken []T    `json:"broken"`
}

type keys struct {
	Origin    string `json:"origin"`
	PublicKey string `json:"public_key"`   // PEM
	Verifier  string `json:"verifier_key"` // the same
	Witness   string `json:"witness_verifier_key"`
}

// golden holds v to its file.
func golden[T any](t *testing.T, name string, v vectors[T]) {
	t.Helper()
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	require.NoError(t, enc.Encode(v))
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, text.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "%s: the format has changed, or its generator", name)
	require.NotEmpty(t, v.Good)
	require.NotEmpty(t, v.Broken)
}

// read is what a golden file says.
func read[T any](t *testing.T, name string) (v vectors[T]) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

func goldenKeys(t *testing.T, w *world) *keys {
	t.Helper()
	pem, err := sign.PublicPEM(&w.key.private.PublicKey)
	require.NoError(t, err)
	_, witness := witnessKey(t)
	return &keys{origin, string(pem), w.key.verifier(t, origin).String(), witness.String()}
}

// TestGoldenChain: hash = SHA-256(canonical ‖ prev_hash), and what is hashed is canonical.
func TestGoldenChain(t *testing.T) {
	type chained struct {
		Why string `json:"why,omitempty"`
		event
	}
	v := vectors[chained]{About: "event_hash = SHA-256(canonical ‖ prev_hash), prev_hash as 64 lower-case hexadecimal characters or GENESIS; canonical is RFC 8785, integers only. Broken: not canonical, or another hash"}
	w := newWorld(t)
	for _, c := range w.chains {
		for _, e := range c.events {
			v.Good = append(v.Good, chained{"", e})
			require.Equal(t, audit.Hash([]byte(e.Canonical), e.Prev), e.Hash)
			_, err := audit.ParseEnvelope([]byte(e.Canonical))
			require.NoError(t, err)
		}
	}
	first, second := w.chains[1].events[0], w.chains[1].events[1]
	broken := func(why string, e event, change func(*event)) {
		change(&e)
		v.Broken = append(v.Broken, chained{why, e})
	}
	replace := func(from, to string) func(*event) {
		return func(e *event) { e.Canonical = swap(t, e.Canonical, from, to) }
	}
	rehash := func(change func(*event)) func(*event) {
		return func(e *event) {
			change(e)
			h := anchor.EventHash([]byte(e.Canonical), e.Prev)
			e.Hash = hex.EncodeToString(h[:])
		}
	}
	broken("the payload was changed", first, replace("t-1", "t-2"))
	broken("one bit was flipped", first, func(e *event) { e.Canonical = swap(t, e.Canonical, "agent.created", "agent.crea|ed") })
	broken("prev_hash is another event's", second, func(e *event) { e.Prev = e.Hash })
	broken("prev_hash is made GENESIS", second, func(e *event) { e.Prev = anchor.Genesis })
	broken("prev_hash is hashed in upper case", second, func(e *event) { e.Prev = strings.ToUpper(e.Prev) })
	broken("prev_hash was hashed as 32 bytes", second, func(e *event) {
		raw := unhex(e.Prev)
		h := anchor.EventHash([]byte(e.Canonical), string(raw[:]))
		e.Hash = hex.EncodeToString(h[:])
	})
	broken("not canonical: white space", first, rehash(replace(`,"actor_type"`, `, "actor_type"`)))
	broken("not canonical: names in another order", first, rehash(func(e *event) {
		e.Canonical = swap(t, swap(t, e.Canonical, `"agentId":"0190a1b2-c3d4-7e5f-b000-000000000001",`, ""), `,"templateId"`, `,"agentId":"0190a1b2-c3d4-7e5f-b000-000000000001","templateId"`)
	}))
	broken("not canonical: names by UTF-8 instead of UTF-16", second, rehash(func(e *event) {
		e.Canonical = swap(t, swap(t, e.Canonical, "\"\U0001f600\":1,", ""), "\"\ufb01\":-1", "\"\ufb01\":-1,\"\U0001f600\":1")
	}))
	broken("not canonical: an escape that need not be", first, rehash(replace("agent.created", `agent\u002ecreated`)))
	broken("not canonical: HTML escapes of encoding/json", first, rehash(replace("<b>", `\u003cb\u003e`)))
	broken("not canonical: an integer with a fraction", first, rehash(replace(`"schema_version":1`, `"schema_version":1.0`)))
	broken("not canonical: an integer beyond 2^53-1", second, rehash(replace("9007199254740991", "9007199254740993")))
	broken("not canonical: a name twice", first, rehash(replace(`"source":"graphql"`, `"source":"graphql","source":"graphql"`)))
	broken("not canonical: a lone surrogate", first, rehash(replace("t-1", `\ud800`)))
	golden(t, "chain.json", v)
	for _, e := range v.Broken {
		require.True(t, canonical.Check([]byte(e.Canonical)) != nil || audit.Hash([]byte(e.Canonical), e.Prev) != e.Hash, e.Why)
		require.Equal(t, strings.HasPrefix(e.Why, "not canonical"), canonical.Check([]byte(e.Canonical)) != nil, e.Why)
	}
}

// TestGoldenLeaf: what is hashed into each of the four trees.
func TestGoldenLeaf(t *testing.T) {
	type leaf struct {
		Why       string `json:"why,omitempty"`
		Tree      string `json:"tree"`
		TenantID  string `json:"tenant_id,omitempty"`
		Length    uint64 `json:"length,omitempty"`
		EventHash string `json:"event_hash,omitempty"`
		TreeRoot  string `json:"tree_root,omitempty"`
		Header    string `json:"header,omitempty"`
		Leaf      string `json:"leaf"`
	}
	compute := func(l leaf) string {
		tenant := anchor.Tenant{TenantID: l.TenantID, Length: l.Length}
		if l.EventHash != "" {
			tenant.EventHash = unhex(l.EventHash)
		}
		if l.TreeRoot != "" {
			tenant.TreeRoot = unhex(l.TreeRoot)
		}
		var h merkle.Hash
		var err error
		switch l.Tree {
		case "merkle_root":
			h, err = tenant.HeadLeaf()
		case "proof_root":
			h, err = tenant.ProofLeaf()
		case "tree_root":
			h = anchor.EventLeaf(tenant.EventHash)
		case "log":
			h = anchor.LogLeaf(unhex(anchor.SHA256([]byte(l.Header))))
		}
		require.NoError(t, err)
		return hex.EncodeToString(h[:])
	}
	w := newWorld(t)
	v := vectors[leaf]{About: "Leaves: SHA-256(0x00 ‖ …) of 16 bytes tenant id, length as 8 bytes big-endian, 32 bytes hashes; of the log SHA-256(0x00 ‖ SHA-256(header)). Broken: another leaf"}
	for _, x := range w.anchors[3].Tenants {
		e, r := fmt.Sprintf("%x", x.EventHash), fmt.Sprintf("%x", x.TreeRoot)
		v.Good = append(v.Good, leaf{Tree: "merkle_root", TenantID: x.TenantID, EventHash: e},
			leaf{Tree: "proof_root", TenantID: x.TenantID, Length: x.Length, EventHash: e, TreeRoot: r}, leaf{Tree: "tree_root", EventHash: e})
	}
	for _, a := range w.anchors {
		v.Good = append(v.Good, leaf{Tree: "log", Header: string(a.Header.Append(nil))})
	}
	for i := range v.Good {
		v.Good[i].Leaf = compute(v.Good[i])
	}
	head, proof, log := v.Good[0], v.Good[1], v.Good[len(v.Good)-1]
	id, _ := hex.DecodeString(strings.ReplaceAll(head.TenantID, "-", ""))
	eventHash, treeRoot := unhex(head.EventHash), unhex(proof.TreeRoot)
	broken := func(why string, l leaf, data ...[]byte) {
		h := merkle.LeafHash(data...)
		l.Why, l.Leaf = why, hex.EncodeToString(h[:])
		v.Broken = append(v.Broken, l)
	}
	broken("the tenant id as text", head, []byte(head.TenantID), eventHash[:])
	broken("the hash as text", head, id, []byte(head.EventHash))
	broken("the hash before the tenant id", head, eventHash[:], id)
	broken("the length little-endian", proof, id, binary.LittleEndian.AppendUint64(nil, proof.Length), eventHash[:], treeRoot[:])
	broken("without the length", proof, id, eventHash[:], treeRoot[:])
	broken("the header itself instead of its hash", log, []byte(log.Header))
	node := merkle.NodeHash(eventHash, treeRoot)
	v.Broken = append(v.Broken, leaf{Why: "a node (0x01) instead of a leaf (0x00)", Tree: "tree_root", EventHash: head.EventHash, Leaf: hex.EncodeToString(node[:])})
	golden(t, "leaf.json", v)
	for _, l := range v.Broken {
		require.NotEqual(t, compute(l), l.Leaf, l.Why)
	}
}

// TestGoldenRoot: RFC 6962 trees over leaf hashes.
func TestGoldenRoot(t *testing.T) {
	type tree struct {
		Why    string   `json:"why,omitempty"`
		Leaves []string `json:"leaves"`
		Root   string   `json:"root"`
	}
	v := vectors[tree]{About: "Root of RFC 6962 §2.1 over leaf hashes; of none SHA-256 of nothing. Broken: another root"}
	all := newWorld(t).chains[1].leaves(7)
	text := func(why string, leaves []merkle.Hash, root merkle.Hash) tree {
		x := tree{Why: why, Leaves: []string{}, Root: hex.EncodeToString(root[:])}
		for _, l := range leaves {
			x.Leaves = append(x.Leaves, hex.EncodeToString(l[:]))
		}
		return x
	}
	for n := range len(all) + 1 {
		v.Good = append(v.Good, text("", all[:n], merkle.Root(all[:n])))
	}
	for _, n := range []int{3, 5, 7} {
		doubled := append(append([]merkle.Hash{}, all[:n]...), all[n-1])
		v.Broken = append(v.Broken, text("the last leaf doubled", all[:n], merkle.Root(doubled)))
	}
	v.Broken = append(v.Broken, text("another order", []merkle.Hash{all[1], all[0]}, merkle.Root(all[:2])),
		text("split in the middle", all[:6], merkle.NodeHash(merkle.Root(all[:3]), merkle.Root(all[3:6]))),
		text("zeros for an empty tree", nil, merkle.Hash{}),
		text("the only leaf hashed once more", all[:1], merkle.NodeHash(all[0], all[0])))
	golden(t, "root.json", v)
	for _, x := range append(v.Good, v.Broken...) {
		var leaves []merkle.Hash
		for _, l := range x.Leaves {
			leaves = append(leaves, unhex(l))
		}
		require.Equal(t, x.Why == "", merkle.Root(leaves) == unhex(x.Root), x.Why)
	}
}

// swap replaces the first occurrence, and fails when there is none.
func swap(t testing.TB, s, from, to string) string {
	t.Helper()
	require.Contains(t, s, from)
	return strings.Replace(s, from, to, 1)
}
