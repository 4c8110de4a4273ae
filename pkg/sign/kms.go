package sign

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

// KMS is the Signer of a key in AWS KMS: key spec ECC_NIST_P256, usage SIGN_VERIFY. Use a pointer to it.
//
// Only digests travel (MessageType DIGEST): KMS never sees what is signed.
type KMS struct {
	Client *kms.Client // who calls; its role needs kms:Sign and kms:GetPublicKey on the key. Required
	KeyID  string      // key id or ARN, not an alias: an alias may come to mean another key. Required

	mu     sync.Mutex
	public *ecdsa.PublicKey // once it was got; a key of KMS never changes
}

// Sign asks KMS. The key must be of the right kind, which Public finds out once.
func (k *KMS) Sign(ctx context.Context, digest [32]byte) ([]byte, error) {
	if _, err := k.Public(ctx); err != nil {
		return nil, err
	}
	out, err := k.Client.Sign(ctx, &kms.SignInput{KeyId: &k.KeyID, Message: digest[:],
		MessageType: types.MessageTypeDigest, SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
	if err != nil {
		return nil, fmt.Errorf("sign: KMS key %s: %w", k.KeyID, err)
	}
	return out.Signature, nil
}

// Public asks KMS once.
func (k *KMS) Public(ctx context.Context) (*ecdsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.public != nil {
		return k.public, nil
	}
	out, err := k.Client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &k.KeyID})
	if err == nil && out.KeyUsage != types.KeyUsageTypeSignVerify {
		err = errors.New("not a key to sign with: " + string(out.KeyUsage))
	}
	var parsed any
	if err == nil {
		parsed, err = x509.ParsePKIXPublicKey(out.PublicKey)
	}
	var public *ecdsa.PublicKey
	if err == nil {
		public, err = p256(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("sign: KMS key %s: %w", k.KeyID, err)
	}
	k.public = public
	return public, nil
}
