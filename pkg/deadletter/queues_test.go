package deadletter_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/sqs"
	"github.com/agentplatform/agentplatform/pkg/deadletter"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/letters"
	"github.com/agentplatform/agentplatform/test/moto"
)

func TestContractLocal(t *testing.T) {
	testContract(t, func(t *testing.T) place {
		box, err := letters.Open(letters.Config{Dir: filepath.Join(t.TempDir(), "[letters]*"), Prefix: prefix})
		require.NoError(t, err)
		return place{box, func(t *testing.T, body string) {
			require.NoError(t, os.WriteFile(filepath.Join(box.Dir(), ident.New()+".json"), []byte(body), 0o600))
		}}
	})
}

// TestContractSQS runs over moto, which plays two things wrongly that a Queue never asks for: a receipt handle of a letter that somebody else has received
// since deletes and releases it all the same. And it gives a message to two requests that come at the same moment, where SQS almost never does: oneByOne
// keeps them apart.
func TestContractSQS(t *testing.T) {
	endpoint := moto.Start(t)
	testContract(t, func(t *testing.T) place {
		client := newClient(endpoint)
		url := newQueue(t, client)
		return place{sqs.Queue{Client: client, URL: url, Prefix: prefix}, func(t *testing.T, body string) { send(t, client, url, body, nil) }}
	})
}

// A letter of the scheduler has its body's meaning in attributes.
func TestSQSGivesTheSchedulersLetters(t *testing.T) {
	client := newClient(moto.Start(t))
	url := newQueue(t, client)
	q := sqs.Queue{Client: client, URL: url, Prefix: prefix}
	send(t, client, url, `{}`, map[string]string{
		"ERROR_CODE": "AccessDeniedException", "ERROR_MESSAGE": "not authorized to perform: lambda:InvokeFunction", "EXECUTION_ID": "d3b7a1f0",
		"EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts", "IS_PAYLOAD_TRUNCATED": "false", "RETRY_ATTEMPTS": "10", "SCHEDULED_TIME": "2026-03-04T05:06:00Z",
		"SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/agentplatform-test/reap-turns",
		"TARGET_ARN":   "arn:aws:lambda:eu-central-1:123456789012:function:" + prefix + "reap-turns"})
	l := one(t, q, long)
	require.Equal(t, deadletter.Scheduler, l.Source)
	require.Equal(t, "reap-turns", l.Function)
	require.Equal(t, deadletter.Error{Type: "AccessDeniedException", Message: "not authorized to perform: lambda:InvokeFunction"}, l.Error)
	require.Equal(t, 11, l.Attempts)
	require.False(t, l.At.IsZero(), "when it was put there")
	to := &functions{known: "reap-turns"}
	require.NoError(t, deadletter.Retry(t.Context(), q, to, l))
	require.Equal(t, []string{"reap-turns {}"}, to.invoked)
	none(t, q)

	q.URL += "-other"
	_, err := q.Receive(t.Context(), 1, long)
	require.ErrorContains(t, err, "there is no queue "+q.URL)
}

func newClient(endpoint string) *awssqs.Client {
	return awssqs.New(awssqs.Options{Region: "eu-central-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		HTTPClient: &http.Client{Transport: new(oneByOne)}})
}

// oneByOne has requests for messages come one after the other.
type oneByOne struct{ mu sync.Mutex }

func (o *oneByOne) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ReceiveMessage") {
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func newQueue(t *testing.T, client *awssqs.Client) (url string) {
	t.Helper()
	made, err := client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String("letters-" + ident.New())})
	require.NoError(t, err)
	return *made.QueueUrl
}

func send(t *testing.T, client *awssqs.Client, url, body string, attributes map[string]string) {
	t.Helper()
	in := &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	_, err := client.SendMessage(t.Context(), in)
	require.NoError(t, err)
}
