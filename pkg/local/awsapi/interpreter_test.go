package awsapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// told answers with what it is told to. What programs really do is package sandbox's contract.
type told struct {
	result sandbox.Result
	err    error
	ran    []sandbox.Script
}

func (t *told) Run(_ context.Context, s sandbox.Script) (sandbox.Result, error) {
	t.ran = append(t.ran, s)
	return t.result, t.err
}

func TestCodeInterpreter(t *testing.T) {
	behind := &told{result: sandbox.Result{Status: sandbox.StatusOK, Stdout: "out\n", DurationMs: 7}}
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", InterpreterID: "local", Sandbox: behind, Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler()}))
	defer server.Close()
	client := func(secret string) *bedrockagentcore.Client {
		return bedrockagentcore.New(bedrockagentcore.Options{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("platform", secret, "")})
	}
	c := client("its secret")
	id := aws.String("local")
	start := &bedrockagentcore.StartCodeInterpreterSessionInput{CodeInterpreterIdentifier: id, Name: aws.String("n"), SessionTimeoutSeconds: aws.Int32(60)}
	_, err := client("another").StartCodeInterpreterSession(t.Context(), start)
	require.ErrorContains(t, err, "InvalidSignatureException")

	session, err := c.StartCodeInterpreterSession(t.Context(), start)
	require.NoError(t, err)
	require.Equal(t, "local", *session.CodeInterpreterIdentifier)
	require.False(t, session.CreatedAt.IsZero())
	invoke := func(session *string, language types.ProgrammingLanguage) (r types.CodeInterpreterResult, err error) {
		out, err := c.InvokeCodeInterpreter(t.Context(), &bedrockagentcore.InvokeCodeInterpreterInput{CodeInterpreterIdentifier: id, SessionId: session, Name: types.ToolNameExecuteCode,
			Arguments: &types.ToolArguments{Language: language, Code: aws.String(`console.log("é")`)}})
		if err != nil {
			return r, err
		}
		defer out.GetStream().Close()
		require.Equal(t, *session, *out.SessionId)
		for event := range out.GetStream().Events() {
			r = event.(*types.CodeInterpreterStreamOutputMemberResult).Value
		}
		return r, out.GetStream().Err()
	}
	r, err := invoke(session.SessionId, types.ProgrammingLanguageJavascript)
	require.NoError(t, err)
	require.False(t, *r.IsError)
	require.Equal(t, types.ToolResultStructuredContent{Stdout: aws.String("out\n"), Stderr: aws.String(""), ExitCode: aws.Int32(0), ExecutionTime: aws.Float64(7)}, *r.StructuredContent)
	require.Equal(t, "out\n", *r.Content[0].Text)
	require.Equal(t, `"console.log(\"é\")"`, string(behind.ran[0].Input))

	behind.result = sandbox.Result{Status: sandbox.StatusTimeout, Error: "too long"}
	r, err = invoke(session.SessionId, types.ProgrammingLanguageJavascript)
	require.NoError(t, err)
	require.True(t, *r.IsError)
	require.EqualValues(t, 124, *r.StructuredContent.ExitCode)

	for cause, want := range map[error]string{sandbox.ErrBusy: "ThrottlingException", sandbox.Default.Check(sandbox.Script{}): "ValidationException", http.ErrServerClosed: "InternalServerException"} {
		behind.err = cause
		_, err = invoke(session.SessionId, types.ProgrammingLanguageJavascript)
		require.ErrorContains(t, err, want)
	}
	_, err = invoke(session.SessionId, types.ProgrammingLanguagePython)
	require.ErrorContains(t, err, "ValidationException")
	var missing *types.ResourceNotFoundException
	_, err = invoke(aws.String("another"), types.ProgrammingLanguageJavascript)
	require.ErrorAs(t, err, &missing)
	stop := &bedrockagentcore.StopCodeInterpreterSessionInput{CodeInterpreterIdentifier: id, SessionId: session.SessionId}
	_, err = c.StopCodeInterpreterSession(t.Context(), stop)
	require.NoError(t, err)
	_, err = invoke(session.SessionId, types.ProgrammingLanguageJavascript)
	require.ErrorAs(t, err, &missing)
	_, err = c.StopCodeInterpreterSession(t.Context(), stop)
	require.ErrorAs(t, err, &missing)
	start.CodeInterpreterIdentifier = aws.String("another")
	_, err = c.StartCodeInterpreterSession(t.Context(), start)
	require.ErrorAs(t, err, &missing)
	start.CodeInterpreterIdentifier, start.SessionTimeoutSeconds = id, aws.Int32(0)
	_, err = c.StartCodeInterpreterSession(t.Context(), start)
	require.ErrorContains(t, err, "ValidationException")
}
