package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	awssdk "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// The contract of package invoke: functions reach one another in one process as they do over Lambda's API.
func TestContractInvoke(t *testing.T) {
	t.Run("one process", func(t *testing.T) {
		testInvoke(t, func(q *queue) (invoke.Invoker, invoke.Caller) { return q, caller{&Platform{queue: q}} })
	})
	t.Run("Lambda's API", func(t *testing.T) {
		testInvoke(t, func(q *queue) (invoke.Invoker, invoke.Caller) {
			api := &host.API{Prefix: "test-",
				Invoke: func(ctx context.Context, name string, payload []byte) ([]byte, error) {
					h := q.functions[name]
					if h == nil {
						return nil, host.ErrUnknown
					}
					answer, err := h.Invoke(ctx, payload)
					if err != nil {
						words, _ := json.Marshal(map[string]string{"errorType": "errorString", "errorMessage": err.Error()})
						return nil, &host.FunctionError{Type: "errorString", Message: err.Error(), Payload: words}
					}
					return answer, nil
				},
				Event: func(ctx context.Context, name string, payload []byte) error {
					if q.functions[name] == nil {
						return host.ErrUnknown
					}
					return q.Invoke(ctx, name, json.RawMessage(payload))
				}}
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			f := awslambda.Functions{Prefix: "test-", Client: awssdk.New(awssdk.Options{Region: region, BaseEndpoint: &server.URL,
				Credentials: awscredentials.NewStaticCredentialsProvider("key", "secret", "")})}
			return f, f
		})
	})
}

// does is a function.
type does func(ctx context.Context, payload []byte) ([]byte, error)

func (f does) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return f(ctx, payload) }

func testInvoke(t *testing.T, over func(*queue) (invoke.Invoker, invoke.Caller)) {
	came, release := make(chan string, 100), make(chan struct{})
	q := newQueue()
	t.Cleanup(q.close)
	q.serve(manifest.Manifest{Rows: []manifest.Row{{Name: "echo", Timeout: 60}, {Name: "fail", Timeout: 60}, {Name: "wait", Timeout: 60}}}, map[string]lambda.Handler{
		"echo": does(func(_ context.Context, payload []byte) ([]byte, error) { return append([]byte(nil), payload...), nil }),
		"fail": does(func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no luck today") }),
		"wait": does(func(ctx context.Context, payload []byte) ([]byte, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			came <- string(payload)
			return []byte("null"), nil
		}),
	})
	starts, calls := over(q)

	t.Run("a call gives the answer as it is", func(t *testing.T) {
		for _, text := range []string{`{}`, `[]`, `null`, `"Grüße, 世界 \u0000"`, `{"a": 9007199254740993}`} {
			answer, err := calls.Call(t.Context(), "echo", []byte(text))
			require.NoError(t, err)
			require.Equal(t, text, string(answer))
		}
	})
	t.Run("a call that fails says so", func(t *testing.T) {
		_, err := calls.Call(t.Context(), "fail", []byte("{}"))
		require.ErrorContains(t, err, "no luck today")
	})
	t.Run("by many at once", func(t *testing.T) {
		var wg sync.WaitGroup
		answers, errs := make([]string, 16), make([]error, 16)
		for i := range answers {
			wg.Go(func() {
				var answer []byte
				answer, errs[i] = calls.Call(t.Context(), "echo", fmt.Appendf(nil, "[%d]", i))
				answers[i] = string(answer)
			})
		}
		wg.Wait()
		for i, answer := range answers {
			require.NoError(t, errs[i])
			require.Equal(t, fmt.Sprintf("[%d]", i), answer)
		}
	})
	t.Run("nobody waits for what was started", func(t *testing.T) {
		require.NoError(t, starts.Invoke(t.Context(), "wait", map[string]string{"text": "Grüße"})) // it ends only after this has returned
		require.Empty(t, came)
		close(release)
		require.JSONEq(t, `{"text":"Grüße"}`, <-came)
	})
	t.Run("the platform has what was started, whoever goes away", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, starts.Invoke(ctx, "wait", struct{}{}))
		cancel()
		require.JSONEq(t, `{}`, <-came)
	})
	t.Run("what was started fails by itself", func(t *testing.T) {
		require.NoError(t, starts.Invoke(t.Context(), "fail", struct{}{}))
	})
	t.Run("no such function", func(t *testing.T) {
		_, err := calls.Call(t.Context(), "missing", []byte("{}"))
		require.ErrorContains(t, err, "missing")
		require.ErrorContains(t, starts.Invoke(t.Context(), "missing", struct{}{}), "missing")
	})
	t.Run("no payload", func(t *testing.T) {
		require.Error(t, starts.Invoke(t.Context(), "echo", make(chan int)), "it is no JSON")
	})
}
