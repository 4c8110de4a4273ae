package push_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// TestContractSNSOfTheOutbox is the SDK over SNS's operations as functions in processes of their own find them on one machine.
func TestContractSNSOfTheOutbox(t *testing.T) {
	dir := t.TempDir()
	o, err := outbox.Open(outbox.Config{Dir: dir})
	require.NoError(t, err)
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler(), Push: o}))
	t.Cleanup(server.Close)
	client := awssns.New(awssns.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", ""), Retryer: aws.NopRetryer{}})
	carrier := sns.Carrier{Client: client, Applications: awsapi.Applications}
	id := func(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }
	testContract(t, adapter{Carrier: carrier, all: true,
		sent: func(t *testing.T, arn string) (all []string) { return payloads(t, o, id(arn)) },
		data: func(t *testing.T, arn string) string {
			text, err := os.ReadFile(filepath.Join(dir, "devices", id(arn)+".json"))
			require.NoError(t, err)
			var device struct {
				UserData string `json:"user_data"`
			}
			require.NoError(t, json.Unmarshal(text, &device))
			return device.UserData
		},
		disable: func(t *testing.T, arn string) { require.NoError(t, o.Unregister(t.Context(), id(arn))) },
	})

	t.Run("what the outbox would not keep as it is given is refused", func(t *testing.T) {
		endpoint, err := carrier.Register(t.Context(), push.FCM, google, "")
		require.NoError(t, err)
		before := payloads(t, o, id(endpoint))
		publish := func(target, message string) error {
			_, err := client.Publish(t.Context(), &awssns.PublishInput{TargetArn: &target, MessageStructure: aws.String("json"), Message: &message})
			return err
		}
		for _, message := range []string{"", "[]", `{"default":"t"}`, `{"default":"t","GCM":"{}"}`, `{"default":"t","GCM":"{\"notification\":{\"title\":\"t\"}}"}`, `{"default":"t","APNS":"{}"}`} {
			require.Error(t, publish(endpoint, message), message)
		}
		require.ErrorContains(t, publish("arn:aws:sns:us-east-1:000000000000:topic", `{"default":"t"}`), "No endpoint found")
		other := strings.Replace(endpoint, "endpoint/GCM/", "endpoint/APNS/", 1)
		require.ErrorContains(t, publish(other, `{"default":"t"}`), "No endpoint found", "an endpoint of another application")
		_, err = client.SetEndpointAttributes(t.Context(), &awssns.SetEndpointAttributesInput{EndpointArn: &endpoint, Attributes: map[string]string{"Enabled": "true", "Token": "another", "CustomUserData": ""}})
		require.ErrorContains(t, err, "InvalidParameter", "an endpoint is of one token")
		_, err = client.CreatePlatformEndpoint(t.Context(), &awssns.CreatePlatformEndpointInput{PlatformApplicationArn: aws.String("arn:aws:sns:us-east-1:000000000000:app/GCM/other"), Token: aws.String("t")})
		require.ErrorContains(t, err, "NotFound")
		_, err = client.ListTopics(t.Context(), &awssns.ListTopicsInput{})
		require.ErrorContains(t, err, "InvalidAction")
		require.Equal(t, before, payloads(t, o, id(endpoint)))
	})
}

// payloads are what an endpoint of the outbox was sent, oldest first.
func payloads(t *testing.T, o *outbox.Outbox, endpoint string) (all []string) {
	entries, more, err := o.List("", outbox.MaxPage)
	require.NoError(t, err)
	require.False(t, more)
	for _, e := range slices.Backward(entries) {
		if e.To != endpoint {
			continue
		}
		raw, err := o.Read(e.ID)
		require.NoError(t, err)
		var push struct{ Payload json.RawMessage }
		require.NoError(t, json.Unmarshal(raw, &push))
		var payload bytes.Buffer
		require.NoError(t, json.Compact(&payload, push.Payload))
		all = append(all, payload.String())
	}
	return all
}
