// Package kms is AWS KMS behind package sign: Signer signs with a key that never leaves it, and Sign puts it behind the needs sign and sign:public.
package kms

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// Sign is the adapter for the needs sign and sign:public.
func Sign(a *cloud.Account, p *handler.Ports) {
	p.Sign = sync.OnceValue(func() sign.Signer {
		return &Signer{Client: kms.NewFromConfig(a.AWS()), KeyID: cloud.Required("ANCHOR_SIGNING_KEY_ID", a.SigningKeyID)}
	})
}

// Signer is a sign.Signer of a key in AWS KMS: key spec ECC_NIST_P256, usage SIGN_VERIFY. Use a pointer to it.
//
// Only digests travel (MessageType DIGEST): KMS never sees what is signed.
type Signer struct {
	Client *kms.Client // who calls; its role needs kms:Sign and kms:GetPublicKey on the key. Required
	KeyID  string      // key id or ARN, not an alias: an alias may come to mean another key. Required

	mu     sync.Mutex
	public *ecdsa.PublicKey // once it was got; a key of KMS never changes
}

// Sign asks KMS. The key must be of the right kind, which Public finds out once.
func (s *Signer) Sign(ctx context.Context, digest [32]byte) ([]byte, error) {
	if _, err := s.Public(ctx); err != nil {
		return nil, err
	}
	out, err := s.Client.Sign(ctx, &kms.SignInput{KeyId: &s.KeyID, Message: digest[:],
		MessageType: types.MessageTypeDigest, SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
	if err != nil {
		return nil, fmt.Errorf("sign: KMS key %s: %w", s.KeyID, err)
	}
	return out.Signature, nil
}

// Public asks KMS once.
func (s *Signer) Public(ctx context.Context) (*ecdsa.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.public != nil {
		return s.public, nil
	}
	out, err := s.Client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &s.KeyID})
	if err == nil && out.KeyUsage != types.KeyUsageTypeSignVerify {
		err = errors.New("not a key to sign with: " + string(out.KeyUsage))
	}
	var parsed any
	if err == nil {
		parsed, err = x509.ParsePKIXPublicKey(out.PublicKey)
	}
	var public *ecdsa.PublicKey
	if err == nil {
		public, err = sign.P256(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("sign: KMS key %s: %w", s.KeyID, err)
	}
	s.public = public
	return public, nil
}
