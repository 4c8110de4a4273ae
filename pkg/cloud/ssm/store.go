// Package ssm is Parameter Store of AWS Systems Manager behind package secret: Store keeps tenants' OAuth tokens and API keys.
package ssm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Store is the secret.Store of one category of secrets: a parameter <Prefix>/<id> each, of type SecureString.
//
// A parameter that is not a SecureString is secret.ErrForeign: it was never encrypted, and who may make one need not have the key.
// The caller's role needs ssm:GetParameter, ssm:PutParameter and ssm:DeleteParameter on what is below the prefix, and, through Parameter Store, kms:Decrypt,
// kms:Encrypt and kms:GenerateDataKey on the key. An account may write few parameters a second (3, and read 40, unless its quotas are higher): a burst ends in secret.ErrBusy.
type Store struct {
	Client *ssm.Client   // who calls. Required
	KeyID  string        // key id or ARN of the category's key in KMS, which encrypts what is put. Required
	Prefix string        // of the names, of 1 to 6 levels: /agentplatform-prod/oauth. Required
	Limit  time.Duration // how long one call may take, its retries included. Default 8 s
}

// Get implements secret.Store.
func (s Store) Get(ctx context.Context, id secret.ID) (string, error) {
	var value string
	err := s.call(ctx, getParameter, id, func(ctx context.Context, name string) error {
		out, err := s.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
		switch {
		case err != nil:
			return err
		case out.Parameter == nil || out.Parameter.Type != types.ParameterTypeSecureString || aws.ToString(out.Parameter.Value) == "":
			return secret.ErrForeign
		}
		value = given(*out.Parameter.Value)
		return nil
	})
	return value, err
}

// Put implements secret.Store.
func (s Store) Put(ctx context.Context, id secret.ID, value string) error {
	if err := secret.Check(value); err != nil {
		return fmt.Errorf("secret %s: %w", id, err)
	}
	if s.KeyID == "" { // AWS would take the account's default key, which all its roles may use
		return fmt.Errorf("secret %s: no key is set", id)
	}
	value = kept(value)
	return s.call(ctx, putParameter, id, func(ctx context.Context, name string) error {
		_, err := s.Client.PutParameter(ctx, &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeSecureString, KeyId: &s.KeyID,
			Overwrite: aws.Bool(true), Tier: tier(value)}, again)
		return err
	})
}

// Delete implements secret.Store.
func (s Store) Delete(ctx context.Context, id secret.ID) error {
	err := s.call(ctx, deleteParameter, id, func(ctx context.Context, name string) error {
		_, err := s.Client.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: &name})
		return err
	})
	if errors.Is(err, secret.ErrMissing) {
		return nil
	}
	return err
}

const (
	getParameter    = "ssm:GetParameter"
	putParameter    = "ssm:PutParameter"
	deleteParameter = "ssm:DeleteParameter"
)

// call makes one call within the limit, and an error of it one that names the secret.
func (s Store) call(ctx context.Context, action string, id secret.ID, do func(ctx context.Context, name string) error) error {
	if id == (secret.ID{}) {
		return fmt.Errorf("secret: %w", secret.ErrNoID)
	}
	if !prefix.MatchString(s.Prefix) || reserved.MatchString(s.Prefix) || len(s.Prefix) > 512 {
		return fmt.Errorf("secret %s: %q cannot be the prefix of parameters: 1 to 6 levels as /agentplatform-prod/oauth, the first neither aws… nor ssm…", id, s.Prefix)
	}
	limit := s.Limit
	if limit == 0 {
		limit = 8 * time.Second
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(within, s.Prefix+"/"+id.String())
	if err == nil {
		return nil
	}
	return fmt.Errorf("secret %s: %w", id, s.reason(within, action, limit, err))
}

// Parameter Store allows 15 levels, of which an id has up to nine, and 1011 characters with the ARN before the name, of which an id has up to 200.
var (
	prefix   = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+){1,6}$`)
	reserved = regexp.MustCompile(`(?i)^/(aws|ssm)`)
)

// again repeats a call that met another one on the same parameter too, which the SDK takes for an error that stays.
func again(o *ssm.Options) {
	o.Retryer = retry.AddWithErrorCodes(o.Retryer, tooManyUpdates)
}

const tooManyUpdates = "TooManyUpdates"

// tier asks for the dearer tier where the value needs it. Intelligent tiering would choose by characters, but KMS encrypts 4096 bytes at most without a
// data key, which only the advanced tier uses. Where it does not, the parameter stays in the tier it has: it cannot come back from the advanced one.
func tier(value string) types.ParameterTier {
	if len(value) > 4096 {
		return types.ParameterTierAdvanced
	}
	return types.ParameterTierIntelligentTiering
}
