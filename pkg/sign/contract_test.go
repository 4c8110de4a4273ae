package sign_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
)

// adapter is a Signer under the contract.
type adapter struct {
	signer sign.Signer
	again  sign.Signer // another Signer of the same key
	// signed is the digest that a signature of digest is over: digest itself. moto hashes what it is given once more,
	// whatever MessageType says; AWS does not (kms:Sign, MessageType DIGEST).
	signed func(digest [32]byte) [32]byte
}

func itself(digest [32]byte) [32]byte { return digest }

func testContract(t *testing.T, a adapter) {
	public, err := a.signer.Public(t.Context())
	require.NoError(t, err)

	t.Run("P-256", func(t *testing.T) {
		require.Equal(t, elliptic.P256(), public.Curve)
		again, err := a.again.Public(t.Context())
		require.NoError(t, err)
		require.True(t, public.Equal(again), "one key")
	})
	t.Run("signatures verify", func(t *testing.T) {
		for _, text := range []string{"", "a", "{}"} {
			digest := sha256.Sum256([]byte(text))
			sig, err := a.signer.Sign(t.Context(), digest)
			require.NoError(t, err)
			verifies(t, public, a.signed(digest), sig)
			other := sha256.Sum256([]byte(text + "."))
			other = a.signed(other)
			require.False(t, ecdsa.VerifyASN1(public, other[:], sig))
		}
	})
	t.Run("by many at once", func(t *testing.T) {
		const callers = 8
		sigs, errs := make([][]byte, callers), make([]error, callers)
		digest := func(i int) [32]byte { return sha256.Sum256(fmt.Append(nil, i)) }
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { sigs[i], errs[i] = a.again.Sign(t.Context(), digest(i)) })
		}
		wg.Wait()
		for i := range callers {
			require.NoError(t, errs[i])
			verifies(t, public, a.signed(digest(i)), sigs[i])
		}
	})
	t.Run("a cancelled call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := a.signer.Sign(ctx, [32]byte{})
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("the public key as PEM", func(t *testing.T) {
		text, err := sign.PublicPEM(public)
		require.NoError(t, err)
		block, rest := pem.Decode(text)
		require.Empty(t, rest)
		require.Equal(t, "PUBLIC KEY", block.Type)
		back, err := x509.ParsePKIXPublicKey(block.Bytes)
		require.NoError(t, err)
		require.True(t, public.Equal(back))
	})
}

func verifies(t *testing.T, public *ecdsa.PublicKey, digest [32]byte, sig []byte) {
	t.Helper()
	require.True(t, ecdsa.VerifyASN1(public, digest[:], sig))
}
