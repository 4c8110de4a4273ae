package scheduler_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsscheduler "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/cloud/scheduler"
)

// service plays what moto cannot: each call gets the next answer, in the service's wire form (restJson1); the last goes on.
type service struct {
	mu      sync.Mutex
	answers []string // an error's name, or empty: done
	asked   []string // methods
	bodies  []map[string]any
}

var statuses = map[string]int{"": 200, "ConflictException": 409, "ResourceNotFoundException": 404, "ServiceQuotaExceededException": 402, "ThrottlingException": 429, "ValidationException": 400,
	"AccessDeniedException": 403, "InternalServerException": 500}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	s.asked, s.bodies = append(s.asked, r.Method), append(s.bodies, body)
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	w.Header().Set("Content-Type", "application/json")
	if answer != "" {
		w.Header().Set("X-Amzn-Errortype", answer)
	}
	w.WriteHeader(statuses[answer])
	_, _ = io.WriteString(w, `{"Message":"told","ScheduleArn":"arn"}`)
}

var now = time.Date(2027, 3, 10, 12, 0, 30, 0, time.UTC)

func start(t *testing.T, answers ...string) (*service, *scheduler.Clock) {
	s := &service{answers: answers}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	client := awsscheduler.New(awsscheduler.Options{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		Retryer: aws.NopRetryer{}})
	return s, &scheduler.Clock{Client: client, Group: "stage", Target: "arn:target", Role: "arn:role", Now: func() time.Time { return now }}
}

var schedule = clock.Schedule{Name: "s", Expression: "rate(1 day)", Enabled: true}

// Create or update, whatever others do between the two.
func TestPutAgainstOthers(t *testing.T) {
	for name, c := range map[string]struct{ answers, asked string }{
		"new":                               {"", "POST"},
		"there":                             {"ConflictException,", "POST PUT"},
		"deleted meanwhile":                 {"ConflictException,ResourceNotFoundException,", "POST PUT POST"},
		"updated by another at this moment": {"ConflictException,ConflictException,ConflictException,", "POST PUT POST PUT"},
	} {
		s, c2 := start(t, strings.Split(c.answers, ",")...)
		require.NoError(t, c2.Put(t.Context(), schedule), name)
		require.Equal(t, c.asked, strings.Join(s.asked, " "), name)
	}
	s, c := start(t, "ConflictException")
	require.ErrorContains(t, c.Put(t.Context(), schedule), "schedule s: ", "it gives up")
	require.Len(t, s.asked, 12)
}

// One token for a call and its retries, another for the next call: of Put(a), Put(b), Put(a) none is taken for another.
func TestClientToken(t *testing.T) {
	s, _ := start(t, "InternalServerException", "InternalServerException", "")
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := &scheduler.Clock{Client: awsscheduler.New(awsscheduler.Options{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}),
		Group: "stage", Target: "arn:target", Role: "arn:role"}
	require.NoError(t, c.Put(t.Context(), schedule))
	require.NoError(t, c.Put(t.Context(), schedule))
	require.Len(t, s.bodies, 4)
	token := s.bodies[0]["ClientToken"]
	require.NotEmpty(t, token)
	require.Equal(t, token, s.bodies[1]["ClientToken"])
	require.Equal(t, token, s.bodies[2]["ClientToken"])
	require.NotEqual(t, token, s.bodies[3]["ClientToken"])
}

func TestDelete(t *testing.T) {
	s, c := start(t, "ConflictException", "")
	require.NoError(t, c.Delete(t.Context(), "s"))
	require.Len(t, s.asked, 2)
	_, c = start(t, "ResourceNotFoundException")
	require.NoError(t, c.Delete(t.Context(), "s"))
}

func TestErrors(t *testing.T) {
	for answer, want := range map[string]error{"ServiceQuotaExceededException": clock.ErrTooMany, "ThrottlingException": clock.ErrThrottled} {
		_, c := start(t, answer)
		err := c.Put(t.Context(), schedule)
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, "schedule s: ")
		require.ErrorContains(t, err, "told")
	}
	_, c := start(t, "ThrottlingException")
	_, err := c.List(t.Context(), nil)
	require.ErrorIs(t, err, clock.ErrThrottled)
	require.ErrorContains(t, err, "group stage")
	_, err = c.Get(t.Context(), "s")
	require.ErrorIs(t, err, clock.ErrThrottled)
	require.ErrorIs(t, c.Delete(t.Context(), "s"), clock.ErrThrottled)

	_, c = start(t, "ResourceNotFoundException")
	require.ErrorContains(t, c.Put(t.Context(), schedule), "schedule s: there is no group stage: ")
	_, err = c.Get(t.Context(), "s")
	require.ErrorIs(t, err, clock.ErrNotFound)
	_, c = start(t, "AccessDeniedException")
	require.ErrorContains(t, c.Put(t.Context(), schedule), "schedule s: access denied: the role needs the action on the group's schedules, and iam:PassRole on the target's role: ")
	_, c = start(t, "ValidationException")
	require.ErrorContains(t, c.Put(t.Context(), schedule), "ValidationException: told")
}

// A start that is past is refused by the service: a rate goes on in its step, a cron has none.
func TestAStartThatIsPast(t *testing.T) {
	for text, want := range map[string]any{
		"rate(7 days)":       float64(time.Date(2027, 3, 15, 9, 0, 0, 0, time.UTC).Unix()),
		"cron(0 0 * * ? *)":  nil,
		"rate(30 minutes)":   float64(time.Date(2027, 3, 10, 12, 30, 0, 0, time.UTC).Unix()),
		"cron(* * 10 3 ? *)": nil,
	} {
		s, c := start(t, "")
		past := schedule
		past.Expression, past.Start = text, time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
		require.NoError(t, c.Put(t.Context(), past))
		require.Equal(t, want, s.bodies[0]["StartDate"], text)
		require.Equal(t, "Starts 2027-03-01T09:00:00Z", s.bodies[0]["Description"])
		past.Start = now.Add(time.Hour)
		require.NoError(t, c.Put(t.Context(), past))
		require.Equal(t, float64(past.Start.Unix()), s.bodies[1]["StartDate"])
		require.Nil(t, s.bodies[1]["Description"])
	}
}

// What the service makes of an end that is past is nowhere said: what is over and disabled goes without.
func TestAnEndThatIsPast(t *testing.T) {
	s, c := start(t, "")
	over := clock.Schedule{Name: "s", Expression: "rate(1 day)", Start: now.AddDate(0, -1, 0), End: now.Add(-time.Hour)}
	require.NoError(t, c.Put(t.Context(), over))
	require.NotContains(t, s.bodies[0], "EndDate")
	require.Equal(t, "Starts 2027-02-10T12:00:30Z, Ends 2027-03-10T11:00:30Z", s.bodies[0]["Description"])
	over.End = now.Add(time.Hour)
	require.NoError(t, c.Put(t.Context(), over))
	require.Equal(t, float64(over.End.Unix()), s.bodies[1]["EndDate"])
	require.Equal(t, "Starts 2027-02-10T12:00:30Z", s.bodies[1]["Description"])
}

func TestWhatIsSent(t *testing.T) {
	s, c := start(t, "ConflictException", "")
	c.DeadLetters = "arn:queue"
	once := clock.Schedule{Name: "s", Expression: "at(2030-01-01T00:00:00)", TimeZone: "Europe/Berlin", Start: now.AddDate(-1, 0, 0), End: now, Enabled: true,
		Input: json.RawMessage(`{"at": "\u003caws.scheduler.scheduled-time\u003e"}`)}
	require.NoError(t, c.Put(t.Context(), once))
	for _, body := range s.bodies {
		delete(body, "ClientToken")
		require.Equal(t, map[string]any{"GroupName": "stage", "ScheduleExpression": "at(2030-01-01T00:00:00)", "ScheduleExpressionTimezone": "Europe/Berlin", "State": "ENABLED",
			"ActionAfterCompletion": "NONE", "FlexibleTimeWindow": map[string]any{"Mode": "OFF"},
			"Target": map[string]any{"Arn": "arn:target", "RoleArn": "arn:role", "Input": `{"at":"<aws.scheduler.scheduled-time>"}`, "DeadLetterConfig": map[string]any{"Arn": "arn:queue"},
				"RetryPolicy": map[string]any{"MaximumEventAgeInSeconds": 3600.0, "MaximumRetryAttempts": 185.0}}}, body, "the update is the create's twin")
	}
}
