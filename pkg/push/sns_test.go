package push_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/test/moto"
)

// TestContractSNS runs over moto, which shows what was published among the data of its own pages.
func TestContractSNS(t *testing.T) {
	endpoint := moto.Start(t)
	client := awssns.New(awssns.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	carrier := sns.Carrier{Client: client, Applications: map[push.Platform]string{push.APNS: application(t, client, "APNS"), push.FCM: application(t, client, "GCM"), push.APNSSandbox: ""}}
	testContract(t, adapter{Carrier: carrier,
		sent: func(t *testing.T, arn string) (all []string) {
			for _, e := range published(t, endpoint) {
				for _, message := range e.Messages {
					if e.ARN != arn {
						continue
					}
					var forms map[string]string
					require.NoError(t, json.Unmarshal([]byte(message), &forms))
					require.Len(t, forms, 2)
					require.NotEmpty(t, forms["default"])
					delete(forms, "default")
					for _, form := range forms { // moto keeps what it was given; SNS takes the platform's out of it
						all = append(all, form)
					}
				}
			}
			return all
		},
		data: func(t *testing.T, arn string) string {
			out, err := client.GetEndpointAttributes(t.Context(), &awssns.GetEndpointAttributesInput{EndpointArn: &arn})
			require.NoError(t, err)
			require.Equal(t, "true", out.Attributes["Enabled"])
			return out.Attributes["CustomUserData"]
		},
		disable: func(t *testing.T, arn string) {
			_, err := client.SetEndpointAttributes(t.Context(), &awssns.SetEndpointAttributesInput{EndpointArn: &arn, Attributes: map[string]string{"Enabled": "false"}})
			require.NoError(t, err)
		},
	})

	t.Run("another application's endpoint is not ours to send to", func(t *testing.T) {
		other := sns.Carrier{Client: client, Applications: map[push.Platform]string{push.FCM: application(t, client, "GCM", "other")}}
		theirs, err := push.New(other).Register(t.Context(), push.FCM, "their-token", "")
		require.NoError(t, err)
		require.ErrorIs(t, push.New(carrier).Send(t.Context(), theirs, notification()), push.ErrGone)
		require.NoError(t, push.New(carrier).Unregister(t.Context(), theirs))
		require.NoError(t, push.New(other).Send(t.Context(), theirs, notification()), "it is still there")
	})
}

func application(t *testing.T, client *awssns.Client, platform string, name ...string) string {
	t.Helper()
	name = append(name, "agentplatform")
	out, err := client.CreatePlatformApplication(t.Context(), &awssns.CreatePlatformApplicationInput{Name: &name[0], Platform: &platform, Attributes: map[string]string{"PlatformCredential": "key"}})
	require.NoError(t, err)
	return *out.PlatformApplicationArn
}

type platformEndpoint struct {
	ARN      string  `json:"arn"`
	Messages ordered `json:"messages"` // by id, oldest first
}

func published(t *testing.T, endpoint string) []platformEndpoint {
	t.Helper()
	res, err := http.Get(endpoint + "/moto-api/data.json")
	require.NoError(t, err)
	defer res.Body.Close()
	var data struct {
		SNS struct {
			PlatformEndpoint []platformEndpoint
		} `json:"sns"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&data))
	return data.SNS.PlatformEndpoint
}

// ordered are the values of an object, in its order.
type ordered []string

func (o *ordered) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	for i := 0; ; i++ {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if value, ok := token.(string); ok && i%2 == 0 { // after the brace come name and value in turn
			*o = append(*o, value)
		}
	}
}
