// Package sign is the port to the platform's signing key: ECDSA on P-256 over SHA-256 digests. In the cloud the key is
// in KMS and never leaves it (pkg/cloud/kms); on one machine it is a file.
//
// What holds:
//   - A Signer signs with one key for its whole life, and Public is that key.
//   - Signatures are ASN.1 DER (RFC 3279 §2.2.3). They are not deterministic: two of one digest differ, both are right.
//   - A key of another kind (curve, use) is refused at its first use, never signed with.
//
// Errors are a deployment's fault and carry no fault.Error: callers of the API see an InternalError.
package sign

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// Signer signs digests. It is safe for concurrent use.
type Signer interface {
	// Sign returns the signature of digest as ASN.1 DER.
	Sign(ctx context.Context, digest [32]byte) ([]byte, error)
	// Public is the key that signatures verify with.
	Public(ctx context.Context) (*ecdsa.PublicKey, error)
}

// PublicPEM is the public key as auditors are given it: PEM of its SubjectPublicKeyInfo.
func PublicPEM(key *ecdsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// P256 is key as what this package signs with, or an error that says what it is instead.
func P256(key any) (*ecdsa.PublicKey, error) {
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a %T, not an ECDSA key", key)
	}
	if public.Curve != elliptic.P256() {
		return nil, fmt.Errorf("an ECDSA key on %s, not on P-256", public.Curve.Params().Name)
	}
	return public, nil
}
