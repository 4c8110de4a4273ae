package ssm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/agentplatform/agentplatform/pkg/secret"
)

// reason is what callers branch on and operators act on. The SDK's error is not in it: Parameter Store quotes the value in some of its refusals, and an
// answer that cannot be read is in the error about it. What is told of the service's own words is told where no value can be in them.
func (s Store) reason(ctx context.Context, action string, limit time.Duration, err error) error {
	var api smithy.APIError
	var unread *smithy.DeserializationError
	switch {
	case errors.Is(err, secret.ErrForeign):
		return fmt.Errorf("%w: the parameter is not a SecureString", err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: is there a way to Parameter Store, such as a NAT or a VPC endpoint? %w", limit, ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unread):
		return fmt.Errorf("%s: the answer cannot be read: is it Parameter Store that answers?", action)
	case !errors.As(err, &api):
		return fmt.Errorf("%s: %s", action, err.Error()) // of the way there: an address, and why it is not reached
	}
	code, status, request := api.ErrorCode(), 0, "unknown"
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		status, request = answer.HTTPStatusCode(), answer.ServiceRequestID()
	}
	said := fmt.Sprintf("%s: %s (request %s)", action, code, request)
	if action != putParameter || code == accessDenied { // that one is IAM's or the key's, neither of which sees a value
		said += ": " + api.ErrorMessage()
	}
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	switch {
	case code == "ParameterNotFound":
		return fmt.Errorf("%w in this account and region: %s", secret.ErrMissing, said)
	case code == accessDenied:
		return fmt.Errorf("%w: the role needs %s on it and the use of its key: %s", secret.ErrDenied, action, said)
	case code == "HierarchyTypeMismatchException":
		return fmt.Errorf("%w: the parameter is not a SecureString, and cannot become one: %s", secret.ErrForeign, said)
	case code == "InvalidKeyId":
		return fmt.Errorf("its key cannot be used: is it of this account and region, and enabled? %s", said)
	case code == "ParameterLimitExceeded":
		return fmt.Errorf("the account has as many parameters in this region as it may: ask AWS for more: %s", said)
	case throttled || code == tooManyUpdates || status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %s", secret.ErrBusy, said)
	}
	return errors.New(said)
}

const accessDenied = "AccessDeniedException"
