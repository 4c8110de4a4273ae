package secret_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/test/moto"
)

// TestContractSSM runs over moto, and looks at what is asked of it: moto encrypts nothing, takes values of any size and with {{…}}, lets a parameter
// become of another type, takes any number of calls at once, and deletes without asking whose it is.
func TestContractSSM(t *testing.T) {
	asked := moto.Record(t, moto.Start(t))
	any := credentials.NewStaticCredentialsProvider("any", "any", "")
	client := awsssm.New(awsssm.Options{Region: "eu-central-1", BaseEndpoint: &asked.URL, Credentials: any})
	made, err := awskms.New(awskms.Options{Region: "eu-central-1", BaseEndpoint: &asked.URL, Credentials: any}).CreateKey(t.Context(), &awskms.CreateKeyInput{})
	require.NoError(t, err)
	key, prefix := *made.KeyMetadata.Arn, "/agentplatform-test/oauth"
	store := ssm.Store{Client: client, KeyID: key, Prefix: prefix, Limit: time.Minute}

	planted := 0
	plant := func(t *testing.T, id secret.ID, value string) {
		planted++
		_, err := client.PutParameter(t.Context(), &awsssm.PutParameterInput{Name: aws.String(prefix + "/" + id.String()), Type: types.ParameterTypeString, Value: &value})
		require.NoError(t, err)
	}
	testContract(t, place{store, ssm.Store{Client: client, KeyID: key, Prefix: prefix, Limit: time.Minute}, plant})

	id := of(t, ident.New(), "a")
	require.NoError(t, store.Put(t.Context(), id, "value"))
	_, err = ssm.Store{Client: client, KeyID: key, Prefix: "/agentplatform-test/tools"}.Get(t.Context(), id)
	require.ErrorIs(t, err, secret.ErrMissing, "another category is another place")
	raw, err := client.GetParameter(t.Context(), &awsssm.GetParameterInput{Name: aws.String(prefix + "/" + id.String())})
	require.NoError(t, err)
	require.Equal(t, types.ParameterTypeSecureString, raw.Parameter.Type)

	tiers := map[string]int{}
	for _, body := range asked.Of("AmazonSSM.PutParameter") {
		if body["Type"] == "String" {
			planted--
			continue
		}
		value, tier := body["Value"].(string), body["Tier"].(string)
		require.Equal(t, "SecureString", body["Type"])
		require.Equal(t, key, body["KeyId"])
		require.Equal(t, true, body["Overwrite"])
		require.True(t, strings.HasPrefix(body["Name"].(string), prefix+"/"))
		require.NotContains(t, value, "{{")
		require.LessOrEqual(t, len(value), 8192)
		require.Equal(t, len(value) > 4096, tier == "Advanced")
		tiers[tier]++
	}
	require.Zero(t, planted, "all else is of the store")
	require.Len(t, tiers, 2)
	require.NotZero(t, tiers["Intelligent-Tiering"])
	gets := asked.Of("AmazonSSM.GetParameter")
	require.Nil(t, gets[len(gets)-1]["WithDecryption"], "the test's own")
	for _, body := range gets[:len(gets)-1] {
		require.Equal(t, true, body["WithDecryption"])
	}
}
