package ssm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// marker is the value of the calls here, and so must be in no error.
const marker = "s3cr3t-v4lu3"

// store is one whose client repeats a call twice, at once.
func store(endpoint string) ssm.Store {
	return ssm.Store{KeyID: "alias/agentplatform-prod-oauth", Prefix: "/agentplatform-prod/oauth", Client: awsssm.New(awsssm.Options{
		Region: "eu-central-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})})}
}

func newID(t *testing.T) secret.ID {
	t.Helper()
	id, err := secret.Of(ident.New(), "connections", ident.New())
	require.NoError(t, err)
	return id
}

// answering is a server that gives one answer to all calls, in the service's wire form; asked counts them.
func answering(t *testing.T, status int, code, message string) (endpoint string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("X-Amzn-Requestid", "request-1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "message": message})
	}))
	t.Cleanup(aws.Close)
	return aws.URL, asked
}

// calls are the errors of a Store's three calls.
func calls(t *testing.T, s ssm.Store, id secret.ID) map[string]error {
	t.Helper()
	got, err := s.Get(t.Context(), id)
	require.Empty(t, got)
	return map[string]error{"Get": err, "Put": s.Put(t.Context(), id, marker), "Delete": s.Delete(t.Context(), id)}
}

// TestStoreIsRefused: what moto does not do. The answers have the form of AWS, and that to a Put quotes the value, as some of AWS do.
func TestStoreIsRefused(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		is     error  // nil: none of the port
		says   string // % is the call
		tries  int32
	}{
		{400, "AccessDeniedException", secret.ErrDenied, "access denied: the role needs ssm:%Parameter on it and the use of its key: ssm:%Parameter: AccessDeniedException (request request-1): ", 1},
		{400, "ThrottlingException", secret.ErrBusy, "too many calls at once: try again in a moment: ssm:%Parameter: ThrottlingException (request request-1)", 3},
		{500, "InternalServerError", secret.ErrBusy, "too many calls at once: try again in a moment: ssm:%Parameter: InternalServerError (request request-1)", 3},
		{503, "ServiceUnavailable", secret.ErrBusy, "too many calls at once: try again in a moment: ssm:%Parameter: ServiceUnavailable (request request-1)", 3},
		{400, "InvalidKeyId", nil, "its key cannot be used: is it of this account and region, and enabled? ssm:%Parameter: InvalidKeyId", 1},
		{400, "ValidationException", nil, "ssm:%Parameter: ValidationException (request request-1)", 1},
		{400, "ExpiredTokenException", nil, "ssm:%Parameter: ExpiredTokenException (request request-1)", 1},
	} {
		message := "The value was " + marker
		if errors.Is(c.is, secret.ErrDenied) {
			message = "User: arn:aws:sts::123456789012:assumed-role/r/f is not authorized to perform: …" // who answers so sees no value
		}
		endpoint, asked := answering(t, c.status, c.code, message)
		id := newID(t)
		err := store(endpoint).Put(t.Context(), id, marker)
		clean(t, err)
		require.Equal(t, errors.Is(c.is, secret.ErrDenied), strings.Contains(err.Error(), message))
		require.Equal(t, c.tries, asked.Load(), c.code)

		endpoint, _ = answering(t, c.status, c.code, "said by AWS")
		all := calls(t, store(endpoint), id)
		for call, err := range all {
			require.ErrorContains(t, err, "secret "+id.String()+": "+strings.ReplaceAll(c.says, "%", call))
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		}
		require.ErrorContains(t, all["Get"], ": said by AWS")
		require.ErrorContains(t, all["Delete"], ": said by AWS")
	}
}

// TestPutIsRefused: of these only a Put is told.
func TestPutIsRefused(t *testing.T) {
	for code, says := range map[string]string{
		"HierarchyTypeMismatchException": "it was not put there by this store: the parameter is not a SecureString, and cannot become one: ssm:PutParameter: ",
		"ParameterLimitExceeded":         "the account has as many parameters in this region as it may: ask AWS for more: ssm:PutParameter: ",
		"TooManyUpdates":                 "too many calls at once: try again in a moment: ssm:PutParameter: ",
	} {
		endpoint, asked := answering(t, 400, code, "the value was "+marker)
		err := store(endpoint).Put(t.Context(), newID(t), marker)
		require.ErrorContains(t, err, says)
		require.Equal(t, code == "HierarchyTypeMismatchException", errors.Is(err, secret.ErrForeign))
		require.Equal(t, code == "TooManyUpdates", errors.Is(err, secret.ErrBusy))
		clean(t, err)
		if code == "TooManyUpdates" {
			require.EqualValues(t, 3, asked.Load(), "it is tried again")
		}
	}
}

// TestPutMeetsAnother: AWS takes one update of a parameter at a time, and refuses the others.
func TestPutMeetsAnother(t *testing.T) {
	var asked atomic.Int32
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"TooManyUpdates","message":"There are concurrent updates"}`)
			return
		}
		fmt.Fprint(w, `{"Version":2,"Tier":"Standard"}`)
	}))
	defer aws.Close()
	require.NoError(t, store(aws.URL).Put(t.Context(), newID(t), marker))
	require.EqualValues(t, 2, asked.Load())
}

// TestAnswersThatAreNone: the SDK's own errors about them hold the whole answer, and tell parts of it.
func TestAnswersThatAreNone(t *testing.T) {
	for _, body := range []string{"<html>", `{"Parameter":{"Type":"SecureString","Value":"` + marker, `{"Parameter":{"Type":"SecureString","Value":1234}}`, `{"Parameter":["` + marker + `"]}`} {
		aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		id := newID(t)
		_, err := store(aws.URL).Get(t.Context(), id)
		aws.Close()
		require.EqualError(t, err, "secret "+id.String()+": ssm:GetParameter: the answer cannot be read: is it Parameter Store that answers?")
		clean(t, err)
	}
	for _, body := range []string{`{}`, `{"Parameter":{"Type":"SecureString"}}`, `{"Parameter":{"Type":"String","Value":"` + marker + `"}}`, `{"Parameter":{"Type":"StringList","Value":"` + marker + `"}}`} {
		aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		_, err := store(aws.URL).Get(t.Context(), newID(t))
		aws.Close()
		require.ErrorIs(t, err, secret.ErrForeign)
		require.ErrorContains(t, err, "the parameter is not a SecureString")
		clean(t, err)
	}
}

// TestStoreDoesNotAnswer: without a way to the service the error says so, before the caller's own time is over.
func TestStoreDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	s, id := store("http://"+silent.Addr().String()), newID(t)
	s.Limit = 50 * time.Millisecond
	for call, err := range calls(t, s, id) {
		require.ErrorIs(t, err, context.DeadlineExceeded, call)
		require.ErrorContains(t, err, "secret "+id.String()+": no answer within 50ms: is there a way to Parameter Store, such as a NAT or a VPC endpoint?")
		clean(t, err)
	}

	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, err := range calls(t, store("http://"+closed.Addr().String()), id) {
		require.ErrorContains(t, err, "connection refused")
		clean(t, err)
	}
}

func TestStoreIsSetWrongly(t *testing.T) {
	endpoint, asked := answering(t, 400, "ValidationException", "")
	id := newID(t)
	for _, prefix := range []string{"", "/", "agentplatform/oauth", "/agentplatform/", "//oauth", "/a b", "/aws/oauth", "/SSMs/oauth", "/1/2/3/4/5/6/7", "/" + strings.Repeat("a", 512)} {
		s := store(endpoint)
		s.Prefix = prefix
		for call, err := range calls(t, s, id) {
			require.ErrorContains(t, err, "cannot be the prefix of parameters", "%s %q", call, prefix)
			clean(t, err)
		}
	}
	s := store(endpoint)
	s.KeyID = ""
	require.ErrorContains(t, s.Put(t.Context(), id, marker), "no key is set")
	require.Zero(t, asked.Load())
	s = store(endpoint)
	s.Prefix = "/1/2/3/4/5/6"
	_, err := s.Get(t.Context(), id)
	require.ErrorContains(t, err, "ssm:GetParameter: ValidationException")
}

// clean holds that the value is nowhere in an error, nor in what is wrapped in it.
func clean(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for ; err != nil; err = errors.Unwrap(err) {
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), marker)
	}
}
