package workflow_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	engine "github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// waits are the fields of a task that hands out a token.
const waits = `"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
	"Parameters": {"FunctionName": "agentplatform-test-task", "Payload": {"Token.$": "$$.Task.Token", "Input.$": "$"}}`

// startLocal is the engine of one machine, at work, and the tokens that its tasks hand out.
func startLocal(t *testing.T) (*engine.Engine, <-chan handed) {
	tokens := make(chan handed, 100)
	e, err := engine.Open(t.Context(), engine.Config{URL: pgtest.New(t).SuperURL, Prefix: "agentplatform-test-",
		Functions: func(_ context.Context, function string, payload []byte) ([]byte, error) {
			var task handed
			if err := json.Unmarshal(payload, &task); err != nil || function != "task" {
				return nil, err
			}
			tokens <- task
			return []byte(`{}`), nil
		}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = e.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-over
		e.Close()
	})
	return e, tokens
}

// TestContractLocal runs over the engine of one machine, which can be held to all of it.
func TestContractLocal(t *testing.T) {
	e, tokens := startLocal(t)
	testContract(t, adapter{engine: e, waits: waits, tokens: tokens})
}

// TestContractLocalStepFunctions is the cloud's adapter over the platform's own Step Functions, as functions in processes of their own use it.
func TestContractLocalStepFunctions(t *testing.T) {
	e, tokens := startLocal(t)
	const machines = "arn:aws:states:local:000000000000:stateMachine:agentplatform-test-"
	server := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: "platform", Secret: "its secret", Lambda: http.NotFoundHandler(), Cognito: http.NotFoundHandler(),
		Workflow: e, Machines: machines}))
	t.Cleanup(server.Close)
	client := sfn.New(sfn.Options{Region: "local", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("platform", "its secret", "")})
	over := func(prefix string) stepfunctions.Engine {
		return stepfunctions.Engine{Client: client, RoleARN: "arn:aws:iam::000000000000:role/workflow", Prefix: prefix}
	}
	testContract(t, adapter{engine: over("agentplatform-test-"), waits: waits, tokens: tokens})

	ctx, another := t.Context(), over("another-")
	require.ErrorContains(t, another.Put(ctx, "m", `{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true}}}`), "AccessDeniedException")
	_, err := another.Start(ctx, "m", "r", json.RawMessage(`{}`))
	require.ErrorIs(t, err, workflow.ErrNoMachine)
	_, err = another.Describe(ctx, "arn:aws:states:local:000000000000:execution:another-m:r")
	require.ErrorIs(t, err, workflow.ErrNoRun)
	_, err = client.ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
	require.ErrorContains(t, err, "UnknownOperationException")
	_, err = client.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{ExecutionArn: aws.String("arn"), NextToken: aws.String("no token")})
	require.ErrorContains(t, err, "InvalidToken")
	err = over("agentplatform-test-").Put(ctx, "calls", `{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": true}}}`)
	require.ErrorIs(t, err, workflow.ErrDefinition)
	require.ErrorContains(t, err, "lambda")
}
