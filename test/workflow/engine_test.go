package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	local "github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/test/moto"
)

const minute, tick = time.Minute, 20 * time.Millisecond

// Where both engines are, so that the same has the same ARN in both.
const (
	region  = "us-east-1"
	account = "123456789012"
	prefix  = "agentplatform-test-"                                              // of functions and machines
	arn     = "arn:aws:lambda:" + region + ":" + account + ":function:" + prefix // with a function's name behind
	role    = "arn:aws:iam::" + account + ":role/workflow"
	key     = "test" // access key and secret
)

// invoke is how an engine calls a function, by its name, and waits for its answer. A failure of the function is a messages.InvokeResponse_Error or a
// *host.FunctionError.
type invoke func(ctx context.Context, function string, payload []byte) ([]byte, error)

// engine is one, and where it is to be had as AWS's Step Functions, for functions in processes of their own.
type engine struct {
	workflow.Engine
	url string
}

// engines start an engine whose tasks call functions; it ends with the test.
var engines = map[string]func(testing.TB, invoke) engine{"moto": newMoto, "local": newLocal}

// newMoto is moto's Step Functions behind the adapter that is used in the cloud.
func newMoto(t testing.TB, functions invoke) engine {
	t.Helper()
	lambda := httptest.NewServer(&host.API{Prefix: prefix, Invoke: func(ctx context.Context, function string, payload []byte) ([]byte, error) {
		answer, err := functions(ctx, function, payload)
		if failed := (messages.InvokeResponse_Error{}); errors.As(err, &failed) {
			text, _ := json.Marshal(failed) // strings only
			err = &host.FunctionError{Type: failed.Type, Message: failed.Message, Payload: text}
		}
		return answer, err
	}})
	t.Cleanup(lambda.Close)
	url := moto.States(t, lambda.URL)
	client := sfn.New(sfn.Options{Region: region, BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(key, key, "")})
	return engine{stepfunctions.Engine{Client: client, RoleARN: role, Prefix: prefix}, url}
}

// newLocal is the platform's own engine, with a database of its own.
func newLocal(t testing.TB, functions invoke) engine {
	t.Helper()
	e, err := local.Open(t.Context(), local.Config{URL: pgtest.New(t).SuperURL, Region: region, Account: account, Prefix: prefix,
		Functions: func(ctx context.Context, function string, payload []byte) ([]byte, error) {
			answer, err := functions(ctx, function, payload)
			if failed := (*host.FunctionError)(nil); errors.As(err, &failed) {
				err = messages.InvokeResponse_Error{Type: failed.Type, Message: failed.Message}
			}
			return answer, err
		}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) }) // until then
	t.Cleanup(func() {
		cancel()
		running.Wait()
		e.Close()
	})
	api := httptest.NewServer(awsapi.New(awsapi.Config{AccessKey: key, Secret: key, Lambda: http.NotFoundHandler(), Workflow: e,
		Machines: "arn:aws:states:" + region + ":" + account + ":stateMachine:" + prefix}))
	t.Cleanup(api.Close)
	return engine{e, api.URL}
}
