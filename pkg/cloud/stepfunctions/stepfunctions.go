// Package stepfunctions is AWS Step Functions behind package workflow.
package stepfunctions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Engine is a workflow.Engine of standard state machines. A run's id is its execution's ARN.
//
// A machine is a state machine of its own, not a version of one: its runs' names and ARNs are its own, roles may be allowed machines by name, and
// CreateStateMachine is idempotent and consistent, while a state machine that was updated may start runs of what it was before for some seconds.
//
// What Engine calls needs, on the state machines with its Prefix: states:CreateStateMachine and iam:PassRole on RoleARN (Put), states:DescribeStateMachine
// (Put), states:DeleteStateMachine, states:StartExecution; on their executions: states:DescribeExecution (also Start), states:StopExecution,
// states:GetExecutionHistory; on *, for they know no narrower resource: states:ValidateStateMachineDefinition (Put), states:SendTaskSuccess,
// states:SendTaskFailure, states:SendTaskHeartbeat.
type Engine struct {
	Client *sfn.Client // of the region that the state machines are in. Required
	// RoleARN is what the state machines run as; they are in its account. Whoever only starts and watches needs no permission on it. Required.
	RoleARN string
	Prefix  string // of the state machines' names, at most 34 bytes: what keeps a deployment's apart from others'
	// LogGroupARN is where Step Functions reports what fails: the state, the error's code and its cause, without inputs and outputs, for what people
	// said is not for logs. Empty: nowhere. The role needs the delivery of logs (logs:CreateLogDelivery and so on).
	LogGroupARN string
}

var _ workflow.Engine = Engine{}

// service is a task's resource that AWS has in each of its partitions under another name.
var service = regexp.MustCompile(`("Resource"\s*:\s*")arn:aws:states:::`)

// Put has the definition validated, for what is wrong and where, before the state machine is created. A definition names services as in the partition
// aws; in another one they are put as they are called there.
func (e Engine) Put(ctx context.Context, machine, definition string) error {
	id, err := e.machine(machine)
	if err == nil {
		err = workflow.CheckDefinition(definition)
	}
	if parts := strings.SplitN(id, ":", 3); err == nil && parts[1] != "aws" {
		definition = service.ReplaceAllString(definition, "${1}arn:"+parts[1]+":states:::")
	}
	if err == nil {
		err = e.validate(ctx, definition)
	}
	if err != nil {
		return err
	}
	name, logging := e.Prefix+machine, &types.LoggingConfiguration{Level: types.LogLevelOff}
	if e.LogGroupARN != "" {
		group := strings.TrimSuffix(e.LogGroupARN, ":*") + ":*"
		logging = &types.LoggingConfiguration{Level: types.LogLevelError, IncludeExecutionData: false,
			Destinations: []types.LogDestination{{CloudWatchLogsLogGroup: &types.CloudWatchLogsLogGroup{LogGroupArn: &group}}}}
	}
	_, err = e.Client.CreateStateMachine(ctx, &sfn.CreateStateMachineInput{Name: &name, Definition: &definition, RoleArn: &e.RoleARN, Type: types.StateMachineTypeStandard,
		LoggingConfiguration: logging, TracingConfiguration: &types.TracingConfiguration{Enabled: true}})
	if exists := new(types.StateMachineAlreadyExists); errors.As(err, &exists) { // also when only its logging is another
		err = e.compare(ctx, id, definition, err)
	}
	return about("machine "+machine, err)
}

// compare is what to say of a state machine that exists: nothing if it has that definition.
func (e Engine) compare(ctx context.Context, id, definition string, exists error) error {
	out, err := e.Client.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: &id})
	switch {
	case err != nil:
		return err
	case out.Status == types.StateMachineStatusDeleting || !same(aws.ToString(out.Definition), definition):
		return exists
	}
	return nil
}

func (e Engine) validate(ctx context.Context, definition string) error {
	out, err := e.Client.ValidateStateMachineDefinition(ctx, &sfn.ValidateStateMachineDefinitionInput{Definition: &definition,
		Severity: types.ValidateStateMachineDefinitionSeverityError, Type: types.StateMachineTypeStandard})
	if err != nil || out.Result == types.ValidateStateMachineDefinitionResultCodeOk {
		return about("validation of a definition", err)
	}
	refused := new(workflow.DefinitionError)
	for _, d := range out.Diagnostics {
		refused.Problems = append(refused.Problems, workflow.Problem{Code: aws.ToString(d.Code), Message: aws.ToString(d.Message), Location: aws.ToString(d.Location)})
	}
	return refused
}

// Delete returns before the state machine is gone.
func (e Engine) Delete(ctx context.Context, machine string) error {
	id, err := e.machine(machine)
	if err != nil {
		return err
	}
	_, err = e.Client.DeleteStateMachine(ctx, &sfn.DeleteStateMachineInput{StateMachineArn: &id})
	return about("machine "+machine, err)
}

// Start also finds the run of an input that is over: to StartExecution its name is taken.
func (e Engine) Start(ctx context.Context, machine, name string, input json.RawMessage) (string, error) {
	id, err := e.machine(machine)
	if err == nil {
		err = workflow.CheckName(name)
	}
	if err != nil {
		return "", err
	}
	data, err := workflow.Data(input)
	if err != nil {
		return "", err
	}
	what := "run " + name + " of machine " + machine
	out, err := e.Client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: &id, Name: &name, Input: &data})
	if err == nil {
		return aws.ToString(out.ExecutionArn), nil
	}
	if exists := new(types.ExecutionAlreadyExists); !errors.As(err, &exists) {
		return "", about(what, err)
	}
	run := strings.Replace(id, ":stateMachine:", ":execution:", 1) + ":" + name
	was, missing := e.Client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &run})
	switch hidden := new(types.ExecutionDoesNotExist); {
	case errors.As(missing, &hidden): // what was just started may not be seen at once
		return "", fmt.Errorf("workflow: %s: %w: %w", what, workflow.ErrThrottled, missing)
	case missing != nil:
		return "", about(what, missing)
	case !same(aws.ToString(was.Input), data):
		return "", about(what, err)
	}
	return run, nil
}

// same reports whether two JSON texts are the same but for white space around tokens.
func same(a, b string) bool {
	var x, y bytes.Buffer
	return a == b || json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && x.String() == y.String()
}

// machine is the ARN of the state machine of that name.
func (e Engine) machine(name string) (string, error) {
	if err := workflow.CheckMachine(name); err != nil {
		return "", err
	}
	return e.arn("stateMachine", name)
}

// arn is of what has the Prefix.
func (e Engine) arn(kind, rest string) (string, error) {
	role, err := arn.Parse(e.RoleARN)
	if err != nil {
		return "", fmt.Errorf("workflow: the state machines' role %q: %w", e.RoleARN, err)
	}
	return arn.ARN{Partition: role.Partition, Service: "states", Region: e.Client.Options().Region, AccountID: role.AccountID,
		Resource: kind + ":" + e.Prefix + rest}.String(), nil
}
