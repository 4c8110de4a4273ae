package verify_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

func TestAWorldThatNobodyTouchedIsClean(t *testing.T) {
	w := populated(t)
	r := w.verify(func(c *verify.Config) { c.Receipts, c.EmissionKey = w.Kept, emission })
	requireClean(t, r)
	require.EqualValues(t, 4, r.Counts.Anchors)
	require.EqualValues(t, 27, r.Counts.Events)
	require.EqualValues(t, 3, r.Counts.Pending)
	require.EqualValues(t, 3, r.Counts.Tenants)
	require.EqualValues(t, 12, r.Counts.Logs)
	require.EqualValues(t, 27, r.Counts.Receipts)
	t.Log(r.Counts, r.Notices, r.NotChecked)
}

func someWitness(t testing.TB) []anchor.Verifier {
	t.Helper()
	public, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	key, err := anchor.WitnessVerifier("witness.test/one", public)
	require.NoError(t, err)
	return []anchor.Verifier{key}
}
