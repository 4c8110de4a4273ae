package verify

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// COPY data comes in pieces of any size.
func TestCopyInPieces(t *testing.T) {
	data := append(slices.Clone(copySignature), 0, 0, 0, 0, 0, 0, 0, 2, 'x', 'y')
	for i := range 3 {
		data = append(data, 0, 3, 0, 0, 0, 1, byte(i), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	}
	data = append(data, 0xff, 0xff)
	for size := 1; size <= len(data); size++ {
		var rows []byte
		c := &binaryCopy{row: func(f [][]byte) error {
			require.Len(t, f, 3)
			require.Nil(t, f[1])
			require.NotNil(t, f[2])
			rows = append(rows, f[0]...)
			return nil
		}}
		for piece := range slices.Chunk(data, size) {
			_, err := c.Write(piece)
			require.NoError(t, err)
		}
		require.Equal(t, []byte{0, 1, 2}, rows)
		require.True(t, c.ended)
	}
	_, err := (&binaryCopy{}).Write(bytes.Repeat([]byte("not COPY"), 4))
	require.ErrorIs(t, err, errCopy)
	require.ErrorIs(t, (&row{}).read(nil), errRow)
}

// Ids that are there twice are found, in memory and in the file, within a run and over runs.
func TestIdsThatAreThereTwice(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	id := func() (u uuid) {
		binary.BigEndian.PutUint64(u[:], random.Uint64())
		binary.BigEndian.PutUint64(u[8:], random.Uint64())
		return u
	}
	set, err := newIDSet()
	require.NoError(t, err)
	defer set.close()
	other := &idSet{block: set.block}
	more := other.run()
	first, second := set.run(), set.run()
	var twice []uuid
	for i := range idsHeld + idsHeld/2 {
		u := id()
		require.NoError(t, first.add(u))
		more.count(u)
		if i%50_000 == 7 {
			twice = append(twice, u)
			require.NoError(t, []*idRun{first, second}[i%2].add(u))
			more.count(u)
		}
	}
	first.done()
	second.done()
	more.done()
	require.Len(t, set.runs, 1)
	require.Len(t, set.held, 2)
	require.Equal(t, set.sum, other.sum)
	var found []uuid
	require.NoError(t, set.duplicates(func(u uuid) { found = append(found, u) }))
	require.ElementsMatch(t, twice, found)

	more = other.run()
	more.count(id())
	more.done()
	require.NotEqual(t, set.sum, other.sum)
}

func TestUUIDs(t *testing.T) {
	text := ident.New()
	u, ok := parseUUID(text)
	require.True(t, ok)
	require.Equal(t, text, u.String())
	upper, ok := parseUUID(strings.ToUpper(text))
	require.True(t, ok)
	require.Equal(t, u, upper)
	for _, bad := range []string{"", text[1:], text + "0", "x" + text[1:], strings.Replace(text, "-", "0", 1), text[:35] + "g", "-" + text[1:]} {
		_, ok := parseUUID(bad)
		require.False(t, ok, bad)
	}
}

// key signs as pkg/sign does.
type key struct{ *ecdsa.PrivateKey }

func (k key) Sign(_ context.Context, digest [32]byte) ([]byte, error) {
	return ecdsa.SignASN1(rand.Reader, k.PrivateKey, digest[:])
}
func (k key) Public(context.Context) (*ecdsa.PublicKey, error) { return &k.PublicKey, nil }

func TestExports(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	mine, err := anchor.LogVerifier("export.test", &private.PublicKey)
	require.NoError(t, err)
	keys := []anchor.Verifier{mine}
	sealed := func(format, file string, rows uint64) []byte {
		m, err := anchor.SealManifest(t.Context(), anchor.Manifest{Bytes: uint64(len(file)), CreatedAt: ident.Time{Time: time.Unix(0, 0)}, Filter: canonical.Raw("{}"), Format: format,
			JobID: ident.New(), Key: "x", Rows: rows, SHA256: sha256.Sum256([]byte(file))}, key{private})
		require.NoError(t, err)
		return m
	}
	csv := "event_id,payload_json\r\n1,\"{\"\"a\"\":\"\"line\r\nend\"\"}\"\r\n2,{}\r\n"
	for name, c := range map[string]struct {
		file, manifest string
		keys           []anchor.Verifier
		findings       int
	}{
		"as it was":         {csv, string(sealed("CSV", csv, 2)), keys, 0},
		"ndjson":            {"{}\n{}\n", string(sealed("NDJSON", "{}\n{}\n", 2)), keys, 0},
		"nothing exported":  {"", string(sealed("NDJSON", "", 0)), keys, 0},
		"a byte":            {strings.Replace(csv, "a", "b", 1), string(sealed("CSV", csv, 2)), keys, 1},
		"a row less":        {csv[:len(csv)-6], string(sealed("CSV", csv, 2)), keys, 3},
		"an end less":       {csv[:len(csv)-1], string(sealed("CSV", csv, 2)), keys, 3},
		"rows miscounted":   {csv, string(sealed("CSV", csv, 3)), keys, 1},
		"manifest edited":   {csv, strings.Replace(string(sealed("CSV", csv, 2)), `"rows":2`, `"rows":3`, 1), keys, 2},
		"no manifest":       {csv, "{}", keys, 1},
		"nobody is trusted": {csv, string(sealed("CSV", csv, 2)), nil, 1},
	} {
		r, findings, err := CheckExport(strings.NewReader(c.file), []byte(c.manifest), c.keys)
		require.NoError(t, err, name)
		require.Len(t, findings, c.findings, "%s: %v", name, findings)
		for _, f := range findings {
			require.Equal(t, ExportMismatch, f.Class)
		}
		if c.findings == 0 {
			require.Equal(t, r.Manifest.Rows, r.Rows, name)
		}
	}
}

// Notices of one kind are listed up to a limit, and counted from then on.
func TestNoticesAreBounded(t *testing.T) {
	c := &collector{limit: 10}
	for i := range 100 {
		c.notice("notice %d", i)
	}
	c.notice("another")
	c.unchecked("one")
	c.unchecked("one")
	var r Report
	c.fill(&r)
	require.Len(t, r.Notices, 21)
	require.Equal(t, "notice 19 (and 80 more like this)", r.Notices[19])
	require.Equal(t, []string{"one"}, r.NotChecked)
	require.True(t, c.clean())
}

// Every class is in one section of the report.
func TestClassesHaveAPlace(t *testing.T) {
	require.Equal(t, len(groups), group("no class"))
	seen := map[Class]bool{}
	for _, g := range groups {
		for _, class := range g {
			require.False(t, seen[class], class)
			seen[class] = true
		}
	}
}
