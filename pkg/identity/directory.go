package identity

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cognito "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
)

// Directory is the identity pool's users, by e-mail address. Who belongs to which tenant is not its matter: the table users says that.
//
// Every operation is idempotent, so that a transaction that calls it can be tried again: inviting who is there, and disabling, deleting or
// signing out who is not, changes nothing and is no error.
type Directory interface {
	// Invite lets the address sign in: a new user gets an invitation, a disabled one may sign in again, one who has not yet taken its
	// invitation gets another. The address counts as verified, for only who reads its mail can take the invitation.
	Invite(ctx context.Context, email string) error
	// Disable ends the user's sessions and lets it sign in no more.
	Disable(ctx context.Context, email string) error
	// Delete removes the user, with its sessions.
	Delete(ctx context.Context, email string) error
	// SignOut ends the user's sessions: no refresh token is good any more.
	SignOut(ctx context.Context, email string) error
}

// Cognito is the Directory of an Amazon Cognito user pool whose users sign in by e-mail address and that takes no sign-ups: in it, a user
// that exists was invited.
type Cognito struct {
	Client *cognito.Client // required
	PoolID string          // e.g. us-east-1_a1B2c3D4e. Required
}

// limit bounds an operation: it is the last step of a transaction that holds its tenant's audit log, where sign-ins are recorded too.
const limit = 3 * time.Second

// Invite implements Directory.
func (c Cognito) Invite(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	by := []types.DeliveryMediumType{types.DeliveryMediumTypeEmail}
	_, err := c.Client.AdminCreateUser(ctx, &cognito.AdminCreateUserInput{UserPoolId: &c.PoolID, Username: &email,
		DesiredDeliveryMediums: by, UserAttributes: []types.AttributeType{
			{Name: aws.String("email"), Value: &email}, {Name: aws.String("email_verified"), Value: aws.String("true")}}})
	var exists *types.UsernameExistsException
	if !errors.As(err, &exists) {
		return err
	}
	if _, err := c.Client.AdminEnableUser(ctx, &cognito.AdminEnableUserInput{UserPoolId: &c.PoolID, Username: &email}); err != nil {
		return err
	}
	user, err := c.Client.AdminGetUser(ctx, &cognito.AdminGetUserInput{UserPoolId: &c.PoolID, Username: &email})
	if err != nil || user.UserStatus != types.UserStatusTypeForceChangePassword {
		return err
	}
	_, err = c.Client.AdminCreateUser(ctx, &cognito.AdminCreateUserInput{UserPoolId: &c.PoolID, Username: &email,
		MessageAction: types.MessageActionTypeResend, DesiredDeliveryMediums: by})
	return err
}

// Disable implements Directory. The sessions end first: a failure in between leaves a user who signs in again, not one with a session
// that its next invitation would bring back.
func (c Cognito) Disable(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.SignOut(ctx, email); err != nil {
		return err
	}
	_, err := c.Client.AdminDisableUser(ctx, &cognito.AdminDisableUserInput{UserPoolId: &c.PoolID, Username: &email})
	return unlessMissing(err)
}

// Delete implements Directory.
func (c Cognito) Delete(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := c.Client.AdminDeleteUser(ctx, &cognito.AdminDeleteUserInput{UserPoolId: &c.PoolID, Username: &email})
	return unlessMissing(err)
}

// SignOut implements Directory.
func (c Cognito) SignOut(ctx context.Context, email string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := c.Client.AdminUserGlobalSignOut(ctx, &cognito.AdminUserGlobalSignOutInput{UserPoolId: &c.PoolID, Username: &email})
	return unlessMissing(err)
}

func unlessMissing(err error) error {
	var missing *types.UserNotFoundException
	if errors.As(err, &missing) {
		return nil
	}
	return err
}
