package awsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// broken is an engine that answers each call with an error; the contracts of packages workflow and clock run over engines that work.
type broken struct{ err error }

func (b broken) Put(context.Context, string, string) error    { return b.err }
func (b broken) Delete(context.Context, string) error         { return b.err }
func (b broken) Stop(_ context.Context, _, _, _ string) error { return b.err }
func (b broken) Start(context.Context, string, string, json.RawMessage) (string, error) {
	return "", b.err
}
func (b broken) Describe(context.Context, string) (workflow.Run, error) {
	return workflow.Run{}, b.err
}
func (b broken) History(context.Context, string, int, int) ([]workflow.Step, error) {
	return nil, b.err
}
func (b broken) Succeed(context.Context, string, json.RawMessage) error { return b.err }
func (b broken) Fail(context.Context, string, string, string) error     { return b.err }
func (b broken) Heartbeat(context.Context, string) error                { return b.err }

// What the engine says of itself stays in the log; what the port says has the service's word.
func TestStatesErrors(t *testing.T) {
	client := func(err error) *sfn.Client {
		server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler(),
			Workflow: broken{err}, Machines: "arn:aws:states:us-east-1:000000000000:stateMachine:local-"}))
		t.Cleanup(server.Close)
		return sfn.New(sfn.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", ""), RetryMaxAttempts: 1})
	}
	_, err := client(errors.New("password of the database")).SendTaskHeartbeat(t.Context(), &sfn.SendTaskHeartbeatInput{TaskToken: aws.String("t")})
	require.ErrorContains(t, err, "InternalServerError")
	require.NotContains(t, err.Error(), "password")
	_, err = client(workflow.ErrThrottled).StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String("arn:aws:states:us-east-1:000000000000:stateMachine:local-m")})
	require.ErrorContains(t, err, "ThrottlingException")
	_, err = client(workflow.ErrTaskOver).SendTaskSuccess(t.Context(), &sfn.SendTaskSuccessInput{TaskToken: aws.String("t"), Output: aws.String("{}")})
	require.ErrorAs(t, err, new(*types.TaskTimedOut))
	_, err = client(nil).StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String("arn:aws:states:us-east-1:000000000000:stateMachine:another-m")})
	require.ErrorAs(t, err, new(*types.StateMachineDoesNotExist))
	_, err = client(nil).CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{Name: aws.String("local-m"), Definition: aws.String("{}"), RoleArn: aws.String("r"), Type: types.StateMachineTypeExpress})
	require.ErrorContains(t, err, "standard")
}

// A body that is none is refused in the protocol's word.
func TestStatesAndSchedulesRefuseWhatTheyCannotRead(t *testing.T) {
	w := start(t)
	for _, c := range []struct{ path, target string }{{"/", "AWSStepFunctions.StartExecution"}, {"/schedules/s", ""}} {
		headers := http.Header{}
		if c.target != "" {
			headers.Set("X-Amz-Target", c.target)
		}
		status, answer := w.post(t, w.key, c.path, `{`, headers)
		require.Equal(t, http.StatusBadRequest, status, c.path)
		require.Contains(t, answer, "SerializationException", c.path)
	}
}
