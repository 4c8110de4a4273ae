package workflow_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/test/moto"
)

// TestContractStepFunctions runs over moto, which executes state machines; a task calls a function of AWS Lambda, which is here.
func TestContractStepFunctions(t *testing.T) {
	tokens := make(chan handed, 100)
	lambda := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var task handed
		if body, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(body, &task) == nil {
			tokens <- task
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(lambda.Close)
	endpoint := moto.States(t, lambda.URL)
	client := sfn.New(sfn.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
	testContract(t, adapter{
		engine: stepfunctions.Engine{Client: client, RoleARN: "arn:aws:iam::123456789012:role/workflow", Prefix: "agentplatform-test-"},
		waits: `"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
			"Parameters": {"FunctionName": "task", "Payload": {"Token.$": "$$.Task.Token", "Input.$": "$"}}`,
		tokens: tokens,
		not: map[string]string{ // pkg/cloud/stepfunctions tests these, by answers as AWS documents them
			"another definition": "moto keeps the first, and says nothing",
			"reason of a stop":   "moto drops it",
			"a token an attempt": "moto gives them all the first one's",
			"late answers":       "moto takes them",
			"answers come once":  "moto takes a second",
		},
	})
}
