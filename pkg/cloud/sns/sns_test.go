package sns_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/push"
)

const (
	applications = "arn:aws:sns:eu-central-1:123456789012:app/"
	endpoints    = "arn:aws:sns:eu-central-1:123456789012:endpoint/"
)

// service is an SNS that answers as it is told, in the form of the service (awsQuery).
type service struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []url.Values
	errors map[string][2]string // by action: code and message
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.asked = append(s.asked, r.PostForm)
	s.mu.Unlock()
	action := r.PostForm.Get("Action")
	w.Header().Set("Content-Type", "text/xml")
	if e, refused := s.errors[action]; refused {
		var message strings.Builder
		_ = xml.EscapeText(&message, []byte(e[1]))
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>` + e[0] + `</Code><Message>` + message.String() + `</Message></Error><RequestId>1</RequestId></ErrorResponse>`))
		return
	}
	_, _ = w.Write([]byte(`<` + action + `Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><` + action + `Result><EndpointArn>` + endpoints + `GCM/app/1</EndpointArn><MessageId>1</MessageId></` + action + `Result></` + action + `Response>`))
}

func answering(t *testing.T, refusals map[string][2]string) (sns.Carrier, *service) {
	t.Helper()
	s := &service{errors: refusals}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	client := awssns.New(awssns.Options{Region: "eu-central-1", BaseEndpoint: &s.URL, Retryer: aws.NopRetryer{}, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	return sns.Carrier{Client: client, Applications: map[push.Platform]string{push.FCM: applications + "GCM/app", push.APNS: applications + "APNS/app", push.APNSSandbox: applications + "APNS_SANDBOX/app"}}, s
}

func TestWhatIsPublished(t *testing.T) {
	n := push.Notification{Title: "Fix login", Body: "is yours", Data: map[string]string{"threadId": "TASK-7"}, DedupeID: "task-7"}
	for key, platform := range map[string]push.Platform{"GCM": push.FCM, "APNS": push.APNS, "APNS_SANDBOX": push.APNSSandbox} {
		carrier, s := answering(t, nil)
		require.NoError(t, carrier.Send(t.Context(), endpoints+key+"/app/1", n))
		require.Len(t, s.asked, 1)
		in := s.asked[0]
		require.Equal(t, []string{"Publish", endpoints + key + "/app/1", "json"}, []string{in.Get("Action"), in.Get("TargetArn"), in.Get("MessageStructure")})
		var message map[string]string
		require.NoError(t, json.Unmarshal([]byte(in.Get("Message")), &message))
		require.Equal(t, map[string]string{"default": "Fix login", key: string(push.Payload(platform, n))}, message)
		attributes := map[string]string{}
		for _, i := range []string{"1", "2"} {
			if name := in.Get("MessageAttributes.entry." + i + ".Name"); name != "" {
				require.Equal(t, "String", in.Get("MessageAttributes.entry."+i+".Value.DataType"))
				attributes[name] = in.Get("MessageAttributes.entry." + i + ".Value.StringValue")
			}
		}
		if key == "GCM" {
			require.Empty(t, attributes)
		} else {
			require.Equal(t, map[string]string{"AWS.SNS.MOBILE.APNS.PUSH_TYPE": "alert", "AWS.SNS.MOBILE.APNS.COLLAPSE_ID": "task-7"}, attributes)
		}
	}
}

// TestEndpointsThatAreGone: of a deleted one SNS says something else than moto.
func TestEndpointsThatAreGone(t *testing.T) {
	for _, c := range []struct {
		code, message string
		gone          bool
	}{
		{"EndpointDisabled", "Endpoint is disabled", true},
		{"InvalidParameter", "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified", true},
		{"NotFound", "Endpoint does not exist", true},
		{"InvalidParameter", "Invalid parameter: Message too long", false},
		{"PlatformApplicationDisabled", "Platform application is disabled", false},
		{"AuthorizationError", "is not authorized to perform: SNS:Publish", false},
		{"Throttled", "Rate exceeded", false},
	} {
		carrier, _ := answering(t, map[string][2]string{"Publish": {c.code, c.message}})
		err := carrier.Send(t.Context(), endpoints+"GCM/app/1", push.Notification{Title: "secret title"})
		require.Equal(t, c.gone, errors.Is(err, push.ErrGone), c.message)
		require.ErrorContains(t, err, "endpoint "+endpoints+"GCM/app/1: ")
		require.ErrorContains(t, err, c.message)
		require.NotContains(t, err.Error(), "secret title")
	}
}

func TestNothingButAnEndpointOfOursIsAsked(t *testing.T) {
	carrier, s := answering(t, nil)
	carrier.Applications["other"] = "" // not served
	for _, arn := range []string{"", "/", endpoints + "GCM/app/", endpoints + "GCM/app", endpoints + "GCM/application/1", endpoints + "ADM/app/1", "arn:aws:sns:eu-central-1:123456789012:topic",
		"arn:aws:sns:eu-central-1:210987654321:endpoint/GCM/app/1", "+41791234567", applications + "GCM/app"} {
		require.ErrorIs(t, carrier.Send(t.Context(), arn, push.Notification{Title: "t"}), push.ErrGone, arn)
		require.NoError(t, carrier.Unregister(t.Context(), arn))
	}
	require.Empty(t, s.asked)
}

func TestRegister(t *testing.T) {
	carrier, s := answering(t, nil)
	endpoint, err := carrier.Register(t.Context(), push.FCM, "token", "user-1")
	require.NoError(t, err)
	require.Equal(t, endpoints+"GCM/app/1", endpoint)
	require.Len(t, s.asked, 2)
	require.Equal(t, "SetEndpointAttributes", s.asked[1].Get("Action"), "a disabled one is given back as it is")

	carrier, s = answering(t, map[string][2]string{"CreatePlatformEndpoint": {"InvalidParameter",
		"Invalid parameter: Token Reason: Endpoint " + endpoints + "GCM/app/2 already exists with the same Token, but different attributes."}})
	endpoint, err = carrier.Register(t.Context(), push.FCM, "token", "user-1")
	require.NoError(t, err)
	require.Equal(t, endpoints+"GCM/app/2", endpoint)
	set := map[string]string{}
	for _, i := range []string{"1", "2", "3"} {
		set[s.asked[1].Get("Attributes.entry."+i+".key")] = s.asked[1].Get("Attributes.entry." + i + ".value")
	}
	require.Equal(t, map[string]string{"Enabled": "true", "Token": "token", "CustomUserData": "user-1"}, set)

	carrier, _ = answering(t, map[string][2]string{"CreatePlatformEndpoint": {"InvalidParameter", "Invalid parameter: Token Reason: iOS device tokens must be no more than 400 hexadecimal characters"}})
	_, err = carrier.Register(t.Context(), push.APNS, "aa", "")
	require.ErrorIs(t, err, push.ErrInvalid)
	for code, message := range map[string]string{"InvalidParameter": "Invalid parameter: PlatformApplicationArn Reason: Wrong number of slashes", "NotFound": "PlatformApplication does not exist", "AuthorizationError": "is not authorized"} {
		carrier, _ = answering(t, map[string][2]string{"CreatePlatformEndpoint": {code, message}})
		_, err = carrier.Register(t.Context(), push.APNS, "aa", "")
		require.NotErrorIs(t, err, push.ErrInvalid)
		require.ErrorContains(t, err, "platform application "+applications+"APNS/app: ")
		require.ErrorContains(t, err, message)
	}
}
