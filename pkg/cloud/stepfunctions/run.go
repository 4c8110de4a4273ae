package stepfunctions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Stop implements workflow.Engine.
func (e Engine) Stop(ctx context.Context, run, code, cause string) error {
	if err := e.owns(run); err != nil {
		return err
	}
	code, cause = workflow.Reason(code, cause)
	_, err := e.Client.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: &run, Error: &code, Cause: &cause})
	return about("run "+run, err)
}

// Describe may show a run as it was a moment ago.
func (e Engine) Describe(ctx context.Context, run string) (workflow.Run, error) {
	if err := e.owns(run); err != nil {
		return workflow.Run{}, err
	}
	out, err := e.Client.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &run})
	if err != nil {
		return workflow.Run{}, about("run "+run, err)
	}
	r := workflow.Run{ID: run, Status: workflow.Status(out.Status), Input: text(out.Input), Output: text(out.Output), Error: aws.ToString(out.Error),
		Cause: aws.ToString(out.Cause), Started: aws.ToTime(out.StartDate), Ended: aws.ToTime(out.StopDate)}
	if out.Status == types.ExecutionStatusPendingRedrive { // an operator has it go on
		r.Status = workflow.Running
	}
	return r, nil
}

// page is how many events are asked for at once; each may have 256 KiB.
const page = 200

// History reads a run's events from the first on, for which state an event is of, those before it tell. There are at most 25,000.
func (e Engine) History(ctx context.Context, run string, after, limit int) ([]workflow.Step, error) {
	if err := e.owns(run); err != nil {
		return nil, err
	}
	var found []workflow.Step
	h := newHistory(func(s workflow.Step) {
		if s.Seq > after && len(found) < limit {
			found = append(found, s)
		}
	})
	pages := sfn.NewGetExecutionHistoryPaginator(e.Client, &sfn.GetExecutionHistoryInput{ExecutionArn: &run, IncludeExecutionData: aws.Bool(true), MaxResults: page})
	for len(found) < limit && pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, about("run "+run, err)
		}
		for _, event := range out.Events {
			h.add(event)
		}
	}
	return found, nil
}

// Succeed implements workflow.Engine.
func (e Engine) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	if err := workflow.CheckToken(token); err != nil {
		return err
	}
	data, err := workflow.Data(output)
	if err != nil {
		return err
	}
	_, err = e.Client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: &data})
	return about("task", err)
}

// Fail implements workflow.Engine.
func (e Engine) Fail(ctx context.Context, token, code, cause string) error {
	if err := workflow.CheckToken(token); err != nil {
		return err
	}
	code, cause = workflow.Reason(code, cause)
	_, err := e.Client.SendTaskFailure(ctx, &sfn.SendTaskFailureInput{TaskToken: &token, Error: &code, Cause: &cause})
	return about("task", err)
}

// Heartbeat implements workflow.Engine.
func (e Engine) Heartbeat(ctx context.Context, token string) error {
	if err := workflow.CheckToken(token); err != nil {
		return err
	}
	_, err := e.Client.SendTaskHeartbeat(ctx, &sfn.SendTaskHeartbeatInput{TaskToken: &token})
	return about("task", err)
}

// owns says that a run is none of this engine's machines.
func (e Engine) owns(run string) error {
	prefix, err := e.arn("execution", "")
	if err == nil && !strings.HasPrefix(run, prefix) {
		err = fmt.Errorf("workflow: run %.300q: %w", run, workflow.ErrNoRun)
	}
	return err
}

// text is nil for what is not there.
func text(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}
