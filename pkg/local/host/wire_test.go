package host_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/host"
)

// The real client of Lambda invokes functions.
func TestTheSDKInvokes(t *testing.T) {
	h := start(t, nil)
	server := httptest.NewServer(&host.API{Prefix: "test-", Invoke: h.Invoke})
	defer server.Close()
	client := lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
	call := func(name, event string, kind types.InvocationType) (*lambda.InvokeOutput, error) {
		return client.Invoke(context.WithoutCancel(t.Context()), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(event), InvocationType: kind})
	}
	for _, name := range []string{"test-one", "test-one:$LATEST", "arn:aws:lambda:us-east-1:000000000000:function:test-one", "000000000000:function:test-one:live"} {
		out, err := call(name, `{"text":"hello"}`, "")
		require.NoError(t, err)
		require.Contains(t, string(out.Payload), `"text":"hello"`)
		require.Nil(t, out.FunctionError)
		require.EqualValues(t, http.StatusOK, out.StatusCode)
	}
	out, err := call("test-one", `{"do":"fail","text":"no luck"}`, types.InvocationTypeRequestResponse)
	require.NoError(t, err)
	require.Equal(t, "Unhandled", aws.ToString(out.FunctionError))
	require.JSONEq(t, `{"errorMessage":"no luck","errorType":"errorString"}`, string(out.Payload))

	file := filepath.Join(t.TempDir(), "file")
	out, err = call("test-one", `{"do":"file","text":"`+file+`"}`, types.InvocationTypeEvent)
	require.NoError(t, err)
	require.EqualValues(t, http.StatusAccepted, out.StatusCode)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Eventually(t, func() bool { _, err := os.Stat(file); return os.IsNotExist(err) }, time.Minute, time.Millisecond)

	out, err = call("test-one", `{}`, types.InvocationTypeDryRun)
	require.NoError(t, err)
	require.EqualValues(t, http.StatusNoContent, out.StatusCode)

	var missing *types.ResourceNotFoundException
	_, err = call("test-three", `{}`, "")
	require.ErrorAs(t, err, &missing)
	_, err = call("one", `{}`, "")
	require.ErrorAs(t, err, &missing)
	var tooLarge *types.RequestTooLargeException
	_, err = call("test-one", `"`+strings.Repeat("x", host.MaxEvent)+`"`, types.InvocationTypeEvent)
	require.ErrorAs(t, err, &tooLarge)
	_, err = call("test-one", `"`+strings.Repeat("x", host.MaxPayload)+`"`, "")
	require.ErrorAs(t, err, &tooLarge)
	var noJSON *types.InvalidRequestContentException
	_, err = call("test-one", `{`, "")
	require.ErrorAs(t, err, &noJSON)
}
