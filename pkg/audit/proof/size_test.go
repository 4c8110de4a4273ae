package proof

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// key signs as pkg/sign does.
type key struct{ *ecdsa.PrivateKey }

func (k key) Sign(_ context.Context, digest [32]byte) ([]byte, error) {
	return ecdsa.SignASN1(rand.Reader, k.PrivateKey, digest[:])
}
func (k key) Public(context.Context) (*ecdsa.PublicKey, error) { return &k.PublicKey, nil }

// At a million events of a thousand tenants a proof stays below 2 KiB beside its event, whichever anchor of a year at four an hour covers it first, once Near are
// there to choose from; with a cosignature and a long name of the log.
func TestAProofIsSmall(t *testing.T) {
	const tenants, length, anchors = 1000, 1000, 366 * 96
	worst := uint64(1)
	near := make([]uint64, 0, Near)
	for first := uint64(1); first <= anchors; first += 7 {
		near = near[:0]
		for n := first; n < first+Near; n++ {
			near = append(near, n)
		}
		if n := shortest(near); bits.OnesCount64(n-1) > bits.OnesCount64(worst-1) {
			worst = n
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	note, err := anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: "audit.agentplatform.example.com/production", Size: worst}, key{private})
	require.NoError(t, err)
	note += "— witness.example.com/prod " + strings.Repeat("A", 100) + "\n"
	at := func(minutes int) ident.Time {
		return ident.Time{Time: time.Unix(1_800_000_000, 0).UTC().Add(time.Duration(minutes) * time.Minute)}
	}
	event := `{"event":"` + strings.Repeat("x", 500) + `"}`
	file, err := anchor.Proof{Event: []byte(event), Prev: strings.Repeat("a", 64), Position: length / 2, Length: length, Index: 341, EventPath: make([]merkle.Hash, 10), TenantPath: make([]merkle.Hash, 10),
		LogPath: make([]merkle.Hash, bits.OnesCount64(worst-1)), Checkpoint: note,
		Header: anchor.Header{Cadence: 900, Number: worst, Events: tenants * length, Previous: strings.Repeat("b", 64), RecordedAt: at(1), TenantCount: tenants, Window: anchor.Window{From: at(-15), To: at(0)}}}.Build()
	require.NoError(t, err)
	t.Logf("%d bytes beside the event; %d hashes lead anchor %d to the log's root", len(file)-len(event), bits.OnesCount64(worst-1), worst)
	require.LessOrEqual(t, len(file)-len(event), 2048)
}
