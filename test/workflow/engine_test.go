package workflow_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/test/moto"
)

const minute, tick = time.Minute, 20 * time.Millisecond

// engine is moto's Step Functions.
type engine struct {
	t   testing.TB
	url string
}

// newEngine starts moto, whose tasks call functions at that URL of AWS Lambda.
func newEngine(t testing.TB, lambda string) engine {
	t.Helper()
	return engine{t, moto.States(t, lambda)}
}

// ask calls an operation of the API.
func (e engine) ask(operation string, input, output any) {
	e.t.Helper()
	body, err := json.Marshal(input)
	require.NoError(e.t, err)
	request, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, e.url, bytes.NewReader(body))
	require.NoError(e.t, err)
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AWSStepFunctions."+operation)
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/states/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(request)
	require.NoError(e.t, err)
	defer response.Body.Close()
	var answer json.RawMessage
	require.NoError(e.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(e.t, http.StatusOK, response.StatusCode, "%s: %s", operation, answer)
	require.NoError(e.t, json.Unmarshal(answer, output))
}

// execution is what DescribeExecution tells of an execution that is over, and the states that it has entered.
type execution struct {
	ARN                          string `json:"executionArn"`
	Status, Output, Error, Cause string
	States                       []string `json:"-"`
}

// execute runs a definition to its end, as a state machine of its own: moto keeps the first definition under a name.
func (e engine) execute(name, definition string, input any) (x execution) {
	e.t.Helper()
	var machine struct{ StateMachineARN string }
	e.ask("CreateStateMachine", map[string]any{"name": name + "-" + ident.New(), "definition": definition, "roleArn": "arn:aws:iam::123456789012:role/workflow"}, &machine)
	text, err := json.Marshal(input)
	require.NoError(e.t, err)
	var started struct{ ExecutionARN string }
	e.ask("StartExecution", map[string]any{"stateMachineArn": machine.StateMachineARN, "name": ident.New(), "input": string(text)}, &started)
	require.Eventually(e.t, func() bool {
		x = execution{}
		e.ask("DescribeExecution", map[string]any{"executionArn": started.ExecutionARN}, &x)
		return x.Status != "RUNNING"
	}, minute, tick)
	var history struct {
		Events []struct {
			Entered *struct{ Name string } `json:"stateEnteredEventDetails"`
		}
	}
	e.ask("GetExecutionHistory", map[string]any{"executionArn": started.ExecutionARN}, &history)
	for _, event := range history.Events {
		if event.Entered != nil {
			x.States = append(x.States, event.Entered.Name)
		}
	}
	return x
}
