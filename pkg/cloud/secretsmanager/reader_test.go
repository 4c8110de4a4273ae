package secretsmanager_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssecrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/test/moto"
)

func client(endpoint string) *awssecrets.Client {
	return awssecrets.New(awssecrets.Options{Region: "eu-central-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
}

func TestReader(t *testing.T) {
	c := client(moto.Start(t))
	const text = "  a value's whole text, «with» what is around it\n"
	arn := create(t, c, "stage/platform/KEY", text)
	bytes := "stage/bytes"
	_, err := c.CreateSecret(t.Context(), &awssecrets.CreateSecretInput{Name: &bytes, SecretBinary: []byte{1, 2}})
	require.NoError(t, err)

	reader := secretsmanager.Reader{Client: c}
	for _, id := range []string{"stage/platform/KEY", arn} {
		got, err := reader.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	_, err = reader.Get(t.Context(), "stage/platform/OTHER")
	require.ErrorIs(t, err, secret.ErrMissing)
	require.ErrorContains(t, err, "secret stage/platform/OTHER: there is no such secret in this account and region: ")
	_, err = reader.Get(t.Context(), bytes)
	require.ErrorIs(t, err, secret.ErrNotText)

	next := "the next value"
	_, err = c.PutSecretValue(t.Context(), &awssecrets.PutSecretValueInput{SecretId: &arn, SecretString: &next})
	require.NoError(t, err)
	got, err := reader.Get(t.Context(), arn)
	require.NoError(t, err)
	require.Equal(t, next, got, "nothing is kept")
}

// TestReaderIsDenied takes the answers from a server of its own: moto refuses in the form of another protocol. The first is IAM's, the second the key's.
func TestReaderIsDenied(t *testing.T) {
	for _, message := range []string{
		"User: arn:aws:sts::123456789012:assumed-role/r/f is not authorized to perform: secretsmanager:GetSecretValue on resource: stage/platform/KEY",
		"Access to KMS is not allowed",
	} {
		aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"__type": "AccessDeniedException", "Message": message})
		}))
		_, err := secretsmanager.Reader{Client: client(aws.URL)}.Get(t.Context(), "stage/platform/KEY")
		aws.Close()
		require.ErrorIs(t, err, secret.ErrDenied)
		require.ErrorContains(t, err, "secret stage/platform/KEY: access denied: the role needs secretsmanager:GetSecretValue on it and kms:Decrypt on its key: ")
		require.ErrorContains(t, err, message)
	}
}

// TestReaderDoesNotAnswer: without a way to the service the error says so, before the caller's own time is over.
func TestReaderDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	reader := secretsmanager.Reader{Client: client("http://" + silent.Addr().String()), Limit: 50 * time.Millisecond}
	_, err = reader.Get(t.Context(), "stage/platform/KEY")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "secret stage/platform/KEY: no answer within 50ms: is there a way to Secrets Manager, such as a VPC endpoint?")
}

func create(t *testing.T, c *awssecrets.Client, name, text string) (arn string) {
	t.Helper()
	made, err := c.CreateSecret(t.Context(), &awssecrets.CreateSecretInput{Name: &name, SecretString: &text})
	require.NoError(t, err)
	return *made.ARN
}
