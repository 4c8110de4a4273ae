package ses_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ses"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// answering is a carrier whose SES gives one answer, in the form of the service: restJson1, the error's name in a header.
func answering(t *testing.T, region string, status int, name string, body any) (ses.Carrier, *map[string]any) {
	t.Helper()
	asked := new(map[string]any)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v2/email/outbound-emails" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if name != "" {
			w.Header().Set("X-Amzn-Errortype", name)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(srv.Close)
	return ses.Carrier{Client: sesv2.New(sesv2.Options{Region: region, BaseEndpoint: &srv.URL, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})}, asked
}

var envelope = mail.Envelope{ID: "<own@x>", From: "ada@agents.example.com", To: []string{"ann@acme.test"}, Raw: []byte("To: ann@acme.test\r\n\r\nHello\r\n")}

func TestTheIDIsTheOneThatSESSets(t *testing.T) {
	for region, host := range map[string]string{"us-east-1": "email.amazonses.com", "eu-central-1": "eu-central-1.amazonses.com", "us-gov-west-1": "us-gov-west-1.amazonses.com"} {
		carrier, asked := answering(t, region, 200, "", map[string]string{"MessageId": "0102-000000"})
		id, err := carrier.Carry(t.Context(), envelope)
		require.NoError(t, err)
		require.Equal(t, "<0102-000000@"+host+">", id)
		require.Equal(t, map[string]any{"FromEmailAddress": "ada@agents.example.com", "Destination": map[string]any{"ToAddresses": []any{"ann@acme.test"}},
			"Content": map[string]any{"Raw": map[string]any{"Data": "VG86IGFubkBhY21lLnRlc3QNCg0KSGVsbG8NCg=="}}}, *asked)
	}
	carrier, _ := answering(t, "us-east-1", 200, "", map[string]string{})
	_, err := carrier.Carry(t.Context(), envelope)
	require.EqualError(t, err, "a mail from ada@agents.example.com: SES gave no message id")
}

// TestRefusals are answers of SES that moto does not give.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status        int
		name, message string
		want          error
	}{
		{400, "MessageRejected", "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1: ada@agents.example.com", mail.ErrRefused},
		{400, "MailFromDomainNotVerifiedException", "The sending domain isn't verified.", mail.ErrRefused},
		{400, "AccountSuspendedException", "The account's ability to send email has been permanently restricted.", mail.ErrRefused},
		{400, "SendingPausedException", "Sending is paused for this account.", mail.ErrRefused},
		{400, "BadRequestException", "Illegal address", mail.ErrRefused},
		{429, "TooManyRequestsException", "Maximum sending rate exceeded.", mail.ErrThrottled},
		{400, "LimitExceededException", "Daily message quota exceeded.", mail.ErrThrottled},
		{400, "ThrottlingException", "Rate exceeded", mail.ErrThrottled},
		{403, "AccessDeniedException", "User: arn:aws:sts::123456789012:assumed-role/r/f is not authorized to perform `ses:SendRawEmail' on resource", nil},
		{500, "InternalServiceErrorException", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			carrier, _ := answering(t, "eu-central-1", c.status, c.name, map[string]string{"message": c.message})
			_, err := carrier.Carry(t.Context(), envelope)
			require.ErrorContains(t, err, "a mail from ada@agents.example.com: ")
			require.ErrorContains(t, err, c.message)
			require.NotContains(t, err.Error(), "Hello")
			require.Equal(t, errors.Is(c.want, mail.ErrRefused), errors.Is(err, mail.ErrRefused))
			require.Equal(t, errors.Is(c.want, mail.ErrThrottled), errors.Is(err, mail.ErrThrottled))
			if c.name == "AccessDeniedException" {
				require.ErrorContains(t, err, "access denied: the role needs ses:SendEmail and ses:SendRawEmail on the sender's identity: ")
			}
		})
	}
}

// A mail that may have been sent is not sent again: only what SES says that it has not taken is repeated.
func TestAMailIsNotSentTwice(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		again  bool
	}{
		"throttled": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
			w.WriteHeader(http.StatusTooManyRequests)
		}, true},
		"failed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, false},
		"gone":   {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					c.answer(w, r)
					return
				}
				_, _ = io.WriteString(w, `{"MessageId":"0102-000000"}`)
			}))
			t.Cleanup(srv.Close)
			client := ses.NewClient(aws.Config{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
			_, err := ses.Carrier{Client: client}.Carry(t.Context(), envelope)
			require.Equal(t, c.again, err == nil, "%v", err)
			require.Equal(t, c.again, asked.Load() == 2)
		})
	}
}
