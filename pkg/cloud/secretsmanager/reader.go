package secretsmanager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Reader is the secret.Reader of AWS Secrets Manager.
type Reader struct {
	Client *secretsmanager.Client // who asks; its role needs secretsmanager:GetSecretValue on the secret and kms:Decrypt on its key. Required
	Limit  time.Duration          // how long one Get may take, its retries included. Default 8 s: less than Lambda gives a function to start
}

// Get implements secret.Reader by the version that is staged AWSCURRENT.
func (r Reader) Get(ctx context.Context, id string) (string, error) {
	limit := r.Limit
	if limit == 0 {
		limit = 8 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := r.Client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	switch {
	case err != nil:
		return "", fmt.Errorf("secret %s: %w", id, reason(err, limit))
	case out.SecretString == nil:
		return "", fmt.Errorf("secret %s: %w", id, secret.ErrNotText)
	}
	return *out.SecretString, nil
}

// reason is what an operator can act on. AccessDeniedException is not among the operation's modelled errors: it comes from IAM, and from the key.
func reason(err error, limit time.Duration) error {
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode() == "ResourceNotFoundException":
		return fmt.Errorf("%w in this account and region: %w", secret.ErrMissing, err)
	case errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("%w: the role needs secretsmanager:GetSecretValue on it and kms:Decrypt on its key: %w", secret.ErrDenied, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: is there a way to Secrets Manager, such as a VPC endpoint? %w", limit, err)
	}
	return err
}
