package awslambda_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// What functions do to one another, Lambda's API in between, is TestContractInvoke in pkg/local. Here is what that API's own answers come to.

// aws answers each request by the next of these, the last one again and again; it counts the requests.
func aws(t *testing.T, answers ...http.HandlerFunc) (awslambda.Functions, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[min(int(asked.Add(1)), len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	impatient := retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter, o.MaxBackoff = ratelimit.None, 1 })
	return awslambda.Functions{Prefix: "stage-", Client: lambda.New(lambda.Options{Region: "eu-central-1", BaseEndpoint: &server.URL, Retryer: impatient,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})}, asked
}

// refused is an error in Lambda's wire form, REST-JSON.
func refused(status int, kind, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-ErrorType", kind)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "message": message})
	}
}

func answered(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, `{"data":1}`)
}

// gone ends the connection without an answer: the function may have begun.
func gone(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

var busy = refused(http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")

func TestACallSaysWhatItIs(t *testing.T) {
	functions, _ := aws(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/2015-03-31/functions/stage-get-thread/invocations", r.URL.Path)
		require.Contains(t, []string{"", "RequestResponse"}, r.Header.Get("X-Amz-Invocation-Type"))
		require.Contains(t, r.Header.Get("Authorization"), "/eu-central-1/lambda/aws4_request")
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, `{"field":"Query.getThread"}`, string(body))
		answered(w, r)
	}, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Event", r.Header.Get("X-Amz-Invocation-Type"))
		w.WriteHeader(http.StatusAccepted)
	})
	answer, err := functions.Call(t.Context(), "get-thread", []byte(`{"field":"Query.getThread"}`))
	require.NoError(t, err)
	require.Equal(t, `{"data":1}`, string(answer))
	require.NoError(t, functions.Invoke(t.Context(), "dispatch-turn", struct{}{}))
}

// A mutation that may have begun is not begun again; what Lambda has not begun is.
func TestACallIsNotRepeatedOnceItMayHaveBegun(t *testing.T) {
	functions, asked := aws(t, busy, busy, answered)
	_, err := functions.Call(t.Context(), "send-message", []byte("{}"))
	require.NoError(t, err)
	require.EqualValues(t, 3, asked.Load())

	for name, answer := range map[string]http.HandlerFunc{"ServiceException": refused(http.StatusInternalServerError, "ServiceException", "later"),
		"EOF": gone, "502": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }} {
		functions, asked = aws(t, answer)
		_, err = functions.Call(t.Context(), "send-message", []byte("{}"))
		require.ErrorContains(t, err, "call send-message: ")
		require.ErrorContains(t, err, name)
		require.Equal(t, fault.InternalError, fault.From(err).Type, name)
		require.EqualValues(t, 1, asked.Load(), name)
	}

	functions, asked = aws(t, busy)
	_, err = functions.Call(t.Context(), "send-message", []byte("{}"))
	var throttled *types.TooManyRequestsException
	require.ErrorAs(t, err, &throttled)
	require.Equal(t, fault.RateLimitExceeded, fault.From(err).Type, "nothing was begun")
	require.Greater(t, asked.Load(), int64(1))
}

// Whoever starts a function has it started twice rather than not at all: it is guarded against that.
func TestAnInvokeIsRepeated(t *testing.T) {
	functions, asked := aws(t, busy, refused(http.StatusInternalServerError, "ServiceException", "later"), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	})
	require.NoError(t, functions.Invoke(t.Context(), "dispatch-turn", struct{}{}))
	require.EqualValues(t, 3, asked.Load())
}

func TestAFunctionThatFails(t *testing.T) {
	failed := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = io.WriteString(w, body)
		}
	}
	functions, asked := aws(t, failed(`{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 10.00 seconds"}`), failed("not JSON"))
	var failure *awslambda.FunctionError
	_, err := functions.Call(t.Context(), "get-thread", []byte("{}"))
	require.ErrorAs(t, err, &failure)
	require.Equal(t, awslambda.FunctionError{Function: "get-thread", Type: "Sandbox.Timedout", Message: "RequestId: 1 Error: Task timed out after 10.00 seconds"}, *failure)
	require.EqualError(t, err, "the function get-thread failed: Sandbox.Timedout: RequestId: 1 Error: Task timed out after 10.00 seconds")
	_, err = functions.Call(t.Context(), "get-thread", []byte("{}"))
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "Unhandled", failure.Type)
	require.EqualValues(t, 2, asked.Load())
}

func TestWhatLambdaRefuses(t *testing.T) {
	functions, _ := aws(t, refused(http.StatusForbidden, "AccessDeniedException", "not authorized to perform: lambda:InvokeFunction"))
	_, err := functions.Call(t.Context(), "get-thread", []byte("{}"))
	require.ErrorContains(t, err, "call get-thread: ")
	require.ErrorContains(t, err, "not authorized to perform: lambda:InvokeFunction")
	require.ErrorContains(t, functions.Invoke(t.Context(), "dispatch-turn", struct{}{}), "invoke dispatch-turn: ")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = functions.Call(ctx, "get-thread", []byte("{}"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, functions.Invoke(ctx, "dispatch-turn", struct{}{}), context.Canceled)
}
