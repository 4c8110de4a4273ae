package identity

import "context"

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
