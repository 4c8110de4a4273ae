package stepfunctions_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/agentplatform/agentplatform/pkg/cloud/stepfunctions"
)

type object = map[string]any

// service answers as AWS Step Functions documents it, by what a test says: what moto cannot.
type service struct {
	t       *testing.T
	answers map[string][]object // of an operation, one after the other; the last stays

	mu    sync.Mutex
	calls []call
}

type call struct {
	operation string
	input     object
}

// refusal is an error on the wire.
func refusal(code string) object {
	return object{"__type": "com.amazonaws.swf.service.v2.model#" + code, "message": "the service's words"}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AWSStepFunctions.")
	c := call{operation: operation}
	if err := json.NewDecoder(r.Body).Decode(&c.input); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	answers := s.answers[operation]
	if len(answers) > 1 {
		s.answers[operation] = answers[1:]
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	answer := refusal("UnknownOperationException")
	if len(answers) > 0 {
		answer = answers[0]
	}
	if answer["__type"] != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// asked are the inputs of an operation's calls so far.
func (s *service) asked(operation string) (inputs []object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.operation == operation {
			inputs = append(inputs, c.input)
		}
	}
	return inputs
}

const (
	role     = "arn:aws-us-gov:iam::123456789012:role/stage-workflow"
	machines = "arn:aws-us-gov:states:us-gov-west-1:123456789012:stateMachine:stage-"
	runs     = "arn:aws-us-gov:states:us-gov-west-1:123456789012:execution:stage-"
)

// engine is one of a service that gives those answers. It asks once: the SDK's waiting between attempts is no matter of ours.
func engine(t *testing.T, answers map[string][]object) (stepfunctions.Engine, *service) {
	t.Helper()
	s := &service{t: t, answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := sfn.New(sfn.Options{Region: "us-gov-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	return stepfunctions.Engine{Client: client, RoleARN: role, Prefix: "stage-"}, s
}
