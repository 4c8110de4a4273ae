// Package cognito is Amazon Cognito behind package identity: Directory administers a user pool, and Identity puts it behind the need of that name.
package cognito

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/identity"
)

// Identity is the adapter for the need identity.
func Identity(a *cloud.Account, p *handler.Ports) {
	p.Identity = sync.OnceValue(func() identity.Directory {
		return Directory{Client: cognitoidentityprovider.NewFromConfig(a.AWS()), PoolID: cloud.Required("USER_POOL_ID", a.UserPoolID)}
	})
}

// Directory is the identity.Directory of an Amazon Cognito user pool whose users sign in by e-mail address and that takes no sign-ups: in it, a user
// that exists was invited.
type Directory struct {
	Client *cognitoidentityprovider.Client // required
	PoolID string                          // e.g. us-east-1_a1B2c3D4e. Required
}

// limit bounds an operation: it is the last step of a transaction that holds its tenant's audit log, where sign-ins are recorded too.
const limit = 3 * time.Second

// Invite implements identity.Directory.
func (d Directory) Invite(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	by := []types.DeliveryMediumType{types.DeliveryMediumTypeEmail}
	_, err := d.Client.AdminCreateUser(ctx, &cognitoidentityprovider.AdminCreateUserInput{UserPoolId: &d.PoolID, Username: &email,
		DesiredDeliveryMediums: by, UserAttributes: []types.AttributeType{
			{Name: aws.String("email"), Value: &email}, {Name: aws.String("email_verified"), Value: aws.String("true")}}})
	var exists *types.UsernameExistsException
	if !errors.As(err, &exists) {
		return err
	}
	if _, err := d.Client.AdminEnableUser(ctx, &cognitoidentityprovider.AdminEnableUserInput{UserPoolId: &d.PoolID, Username: &email}); err != nil {
		return err
	}
	user, err := d.Client.AdminGetUser(ctx, &cognitoidentityprovider.AdminGetUserInput{UserPoolId: &d.PoolID, Username: &email})
	if err != nil || user.UserStatus != types.UserStatusTypeForceChangePassword {
		return err
	}
	_, err = d.Client.AdminCreateUser(ctx, &cognitoidentityprovider.AdminCreateUserInput{UserPoolId: &d.PoolID, Username: &email,
		MessageAction: types.MessageActionTypeResend, DesiredDeliveryMediums: by})
	return err
}

// Disable implements identity.Directory. The sessions end first: a failure in between leaves a user who signs in again, not one with a session
// that its next invitation would bring back.
func (d Directory) Disable(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := d.SignOut(ctx, email); err != nil {
		return err
	}
	_, err := d.Client.AdminDisableUser(ctx, &cognitoidentityprovider.AdminDisableUserInput{UserPoolId: &d.PoolID, Username: &email})
	return unlessMissing(err)
}

// Delete implements identity.Directory.
func (d Directory) Delete(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := d.Client.AdminDeleteUser(ctx, &cognitoidentityprovider.AdminDeleteUserInput{UserPoolId: &d.PoolID, Username: &email})
	return unlessMissing(err)
}

// SignOut implements identity.Directory.
func (d Directory) SignOut(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := d.Client.AdminUserGlobalSignOut(ctx, &cognitoidentityprovider.AdminUserGlobalSignOutInput{UserPoolId: &d.PoolID, Username: &email})
	return unlessMissing(err)
}

func unlessMissing(err error) error {
	var missing *types.UserNotFoundException
	if errors.As(err, &missing) {
		return nil
	}
	return err
}
