package stepfunctions

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// means is the port's word for the service's.
var means = map[string]error{
	"StateMachineAlreadyExists": workflow.ErrMachineExists,
	"StateMachineDoesNotExist":  workflow.ErrNoMachine,
	"StateMachineDeleting":      workflow.ErrNoMachine,
	"ExecutionAlreadyExists":    workflow.ErrRunExists,
	"ExecutionDoesNotExist":     workflow.ErrNoRun,
	"InvalidToken":              workflow.ErrNoTask,
	"TaskDoesNotExist":          workflow.ErrNoTask,
	"TaskTimedOut":              workflow.ErrTaskOver,
	"ExecutionLimitExceeded":    workflow.ErrThrottled, // as many run as may
	"StateMachineLimitExceeded": workflow.ErrThrottled, // as many are there as may be
	"ConflictException":         workflow.ErrThrottled, // another call changes the same
}

// about is err with what it is about, and as the port says it.
func about(what string, err error) error {
	var api smithy.APIError
	if err == nil {
		return nil
	}
	if errors.As(err, &api) {
		code := api.ErrorCode()
		if _, throttled := retry.DefaultThrottleErrorCodes[code]; throttled {
			return fmt.Errorf("workflow: %s: %w: %w", what, workflow.ErrThrottled, err)
		}
		if code == "InvalidDefinition" {
			return &workflow.DefinitionError{Problems: []workflow.Problem{{Code: code, Message: api.ErrorMessage()}}}
		}
		if word := means[code]; word != nil {
			return fmt.Errorf("workflow: %s: %w: %w", what, word, err)
		}
	}
	return fmt.Errorf("workflow: %s: %w", what, err)
}
