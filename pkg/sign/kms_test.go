package sign_test

import (
	"crypto/sha256"
	"encoding/base64"
	"path/filepath"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/cloud/kms"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/test/moto"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/require"
)

func TestContractFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	signer, err := sign.File(path)
	require.NoError(t, err)
	again, err := sign.File(path)
	require.NoError(t, err)
	testContract(t, adapter{signer, again, itself})
}

// TestContractKMS runs over moto, and looks at what is asked of it: the one thing that moto plays wrongly.
func TestContractKMS(t *testing.T) {
	asked := moto.Record(t, moto.Start(t))
	client := awskms.New(awskms.Options{Region: "us-east-1", BaseEndpoint: &asked.URL, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
	id := newKey(t, client, types.KeySpecEccNistP256, types.KeyUsageTypeSignVerify)
	hashedAgain := func(digest [32]byte) [32]byte { return sha256.Sum256(digest[:]) }
	testContract(t, adapter{&kms.Signer{Client: client, KeyID: id}, &kms.Signer{Client: client, KeyID: id}, hashedAgain})

	signed := asked.Of("TrentService.Sign")
	require.NotEmpty(t, signed)
	for _, body := range signed {
		require.Equal(t, "DIGEST", body["MessageType"])
		require.Equal(t, "ECDSA_SHA_256", body["SigningAlgorithm"])
		require.Equal(t, id, body["KeyId"])
		digest, err := base64.StdEncoding.DecodeString(body["Message"].(string))
		require.NoError(t, err)
		require.Len(t, digest, 32)
	}
	require.LessOrEqual(t, len(asked.Of("TrentService.GetPublicKey")), 2, "each asks for its key once")

	for _, other := range []struct {
		spec types.KeySpec
		use  types.KeyUsageType
	}{{types.KeySpecEccNistP384, types.KeyUsageTypeSignVerify}, {types.KeySpecRsa2048, types.KeyUsageTypeSignVerify}, {types.KeySpecRsa2048, types.KeyUsageTypeEncryptDecrypt}} {
		k := &kms.Signer{Client: client, KeyID: newKey(t, client, other.spec, other.use)}
		_, err := k.Public(t.Context())
		require.Error(t, err, other)
		_, err = k.Sign(t.Context(), [32]byte{})
		require.Error(t, err, other)
	}
	_, err := (&kms.Signer{Client: client, KeyID: "12345678-1234-1234-1234-123456789012"}).Sign(t.Context(), [32]byte{})
	require.ErrorContains(t, err, "12345678-1234-1234-1234-123456789012")
	require.Len(t, asked.Of("TrentService.Sign"), len(signed), "no key of another kind was signed with")
}

func newKey(t *testing.T, client *awskms.Client, spec types.KeySpec, use types.KeyUsageType) string {
	t.Helper()
	out, err := client.CreateKey(t.Context(), &awskms.CreateKeyInput{KeySpec: spec, KeyUsage: use})
	require.NoError(t, err)
	return *out.KeyMetadata.KeyId
}
