package awsapi_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// The store of the cloud works over the platform's own Parameter Store as over AWS's.
func TestParameterStore(t *testing.T) {
	w := start(t)
	client := awsssm.New(awsssm.Options{Region: "us-east-1", BaseEndpoint: &w.url, Credentials: w.key, RetryMaxAttempts: 1})
	store := ssm.Store{Client: client, KeyID: "tools-key", Prefix: "/local/tools"}
	id, err := secret.Of(ident.New(), "servers", ident.New())
	require.NoError(t, err)
	_, err = store.Get(t.Context(), id)
	require.ErrorIs(t, err, secret.ErrMissing)
	for _, value := range []string{"first", `{"a":{"b":"{{c}}"}}`} {
		require.NoError(t, store.Put(t.Context(), id, value))
		got, err := store.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, value, got)
	}
	require.NoError(t, store.Delete(t.Context(), id))
	require.NoError(t, store.Delete(t.Context(), id))
	_, err = store.Get(t.Context(), id)
	require.ErrorIs(t, err, secret.ErrMissing)

	other := ssm.Store{Client: client, KeyID: "connections-key", Prefix: "/local/connections"}
	require.NoError(t, other.Put(t.Context(), id, "a connection's"))
	_, err = store.Get(t.Context(), id)
	require.ErrorIs(t, err, secret.ErrMissing, "each category has a store of its own")
	got, err := other.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "a connection's", got)
	other.KeyID = "tools-key"
	require.ErrorContains(t, other.Put(t.Context(), id, "x"), "ValidationException", "and a key")

	elsewhere := store
	elsewhere.Prefix = "/local/others"
	require.ErrorIs(t, elsewhere.Put(t.Context(), id, "x"), secret.ErrDenied)
	another := store
	another.KeyID = "other-key"
	require.ErrorContains(t, another.Put(t.Context(), id, "x"), "ValidationException")
	_, err = client.PutParameter(t.Context(), &awsssm.PutParameterInput{Name: aws.String("/local/tools/" + id.String()), Value: aws.String("x"), Type: types.ParameterTypeString})
	require.ErrorContains(t, err, "ValidationException")
	_, err = client.GetParametersByPath(t.Context(), &awsssm.GetParametersByPathInput{Path: aws.String("/local/tools")})
	require.Error(t, err)
	_, err = client.GetParameter(t.Context(), &awsssm.GetParameterInput{Name: aws.String("/local/tools/../x"), WithDecryption: aws.Bool(true)})
	require.Error(t, err)
}
