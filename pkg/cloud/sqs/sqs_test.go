package sqs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/sqs"
	"github.com/agentplatform/agentplatform/pkg/deadletter"
)

const url = "https://sqs.eu-central-1.amazonaws.com/123456789012/agentplatform-test-dead-letters"

// service answers in SQS's wire form what moto never answers, and keeps what it was asked.
type service struct {
	asked   []map[string]any
	answers []answer // one after the other, the last for ever
}

type answer struct {
	status int
	code   string // of an error; <shape>=<code> for one whose code is another word
	body   map[string]any
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := map[string]any{"target": r.Header.Get("X-Amz-Target")}
	_ = json.NewDecoder(r.Body).Decode(&asked)
	s.asked = append(s.asked, asked)
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if a.code != "" {
		shape, code, other := strings.Cut(a.code, "=")
		if !other {
			code = shape
		}
		w.Header().Set("x-amzn-query-error", code+";Sender")
		a.body["__type"] = "com.amazonaws.sqs#" + shape
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

func refusal(code, message string) answer {
	return answer{http.StatusBadRequest, code, map[string]any{"message": message}}
}

func (s *service) queue(t *testing.T) sqs.Queue {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return sqs.Queue{URL: url, Prefix: "agentplatform-test-", Client: awssqs.New(awssqs.Options{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})}
}

func messages(ids ...string) answer {
	var all []map[string]any
	for _, id := range ids {
		all = append(all, map[string]any{"MessageId": id, "ReceiptHandle": "receipt of " + id, "Body": "{}", "Attributes": map[string]string{"SentTimestamp": "1772600767089"}})
	}
	return answer{http.StatusOK, "", map[string]any{"Messages": all}}
}

// An answer with fewer messages than were asked for is not the last one; an empty one is.
func TestReceiveInSeveralAnswers(t *testing.T) {
	s := &service{answers: []answer{messages("a", "b"), messages("c"), messages()}}
	got, err := s.queue(t).Receive(t.Context(), 12, 90*time.Second+1)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, ids(got))
	require.Equal(t, time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC), got[0].At)
	require.Equal(t, "receipt of a", got[0].Receipt)
	require.Len(t, s.asked, 3)
	for i, most := range []float64{10, 10, 9} {
		require.Equal(t, map[string]any{"target": "AmazonSQS.ReceiveMessage", "QueueUrl": url, "MaxNumberOfMessages": most, "VisibilityTimeout": 91.0, "WaitTimeSeconds": 1.0,
			"MessageAttributeNames": []any{"All"}, "MessageSystemAttributeNames": []any{"SentTimestamp"}}, s.asked[i])
	}
}

// A letter that comes again in the same round was held for too short a time for all of them: it counts once, by its last receipt.
func TestReceiveEndsWithTheRound(t *testing.T) {
	second := messages("c", "a")
	second.body["Messages"].([]map[string]any)[1]["ReceiptHandle"] = "its last receipt"
	s := &service{answers: []answer{messages("a", "b"), second}}
	got, err := s.queue(t).Receive(t.Context(), 100, time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, ids(got))
	require.Equal(t, "its last receipt", got[0].Receipt)
	require.Len(t, s.asked, 2)
}

// What was received before an error is held, so the caller gets it.
func TestReceiveFailsHalfWay(t *testing.T) {
	s := &service{answers: []answer{messages("a"), refusal("OverLimit", "too many messages in flight")}}
	got, err := s.queue(t).Receive(t.Context(), 5, time.Minute)
	require.ErrorContains(t, err, "OverLimit")
	require.Equal(t, []string{"a"}, ids(got))
}

// SQS has several ways to say that a receipt handle is of no use any more.
func TestAnExpiredReceiptHandle(t *testing.T) {
	held := deadletter.Letter{ID: "a", Receipt: "r", Until: time.Now().Add(time.Hour)}
	for _, c := range []struct{ code, message string }{
		{"ReceiptHandleIsInvalid", "The input receipt handle is invalid."},
		{"InvalidParameterValue", "Value r for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."},
		{"InvalidParameterValue", "Value r for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."},
		{"MessageNotInflight=AWS.SimpleQueueService.MessageNotInflight", "The specified message isn't in flight."},
		{"InvalidIdFormat", "The specified receipt handle isn't valid for the current version."},
	} {
		t.Run(c.message, func(t *testing.T) {
			s := &service{answers: []answer{refusal(c.code, c.message)}}
			q := s.queue(t)
			err := q.Delete(t.Context(), held)
			require.ErrorIs(t, err, deadletter.ErrExpired)
			require.ErrorContains(t, err, "letter a: ")
			require.NoError(t, q.Release(t.Context(), held), "it is visible, or gone")
			require.Len(t, s.asked, 2)
		})
	}
	s := &service{}
	q, late := s.queue(t), deadletter.Letter{ID: "a", Receipt: "r", Until: time.Now()}
	require.ErrorIs(t, q.Delete(t.Context(), late), deadletter.ErrExpired)
	require.NoError(t, q.Release(t.Context(), late))
	require.Empty(t, s.asked, "SQS might delete it and say nothing, or release it in the hands of another")
}

// An operator learns what to do.
func TestWhatCannotBeAsked(t *testing.T) {
	held := deadletter.Letter{ID: "a", Receipt: "r", Until: time.Now().Add(time.Hour)}
	for _, c := range []struct{ code, want string }{
		{"QueueDoesNotExist=AWS.SimpleQueueService.NonExistentQueue", "there is no queue " + url + ": is it this stage's, in this account and region?"},
		{"AccessDenied", "access denied: the role needs %s on the queue " + url},
		{"AccessDeniedException", "access denied: the role needs %s on the queue " + url},
		{"InvalidParameterValue", " of queue " + url},
	} {
		t.Run(c.code, func(t *testing.T) {
			a := refusal(c.code, "words of AWS")
			q := (&service{answers: []answer{a}}).queue(t)
			_, received := q.Receive(t.Context(), 1, time.Minute)
			for permission, err := range map[string]error{"sqs:ReceiveMessage": received, "sqs:DeleteMessage": q.Delete(t.Context(), held), "sqs:ChangeMessageVisibility": q.Release(t.Context(), held)} {
				want := c.want
				if strings.Contains(want, "%s") {
					want = fmt.Sprintf(c.want, permission)
				}
				require.ErrorContains(t, err, want)
				require.ErrorContains(t, err, "words of AWS")
				require.NotErrorIs(t, err, deadletter.ErrExpired)
			}
		})
	}
}

func ids(all []deadletter.Letter) (found []string) {
	for _, l := range all {
		found = append(found, l.ID)
	}
	return found
}
