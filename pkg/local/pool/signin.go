package pool

import (
	"context"
	"net"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// SignedIn is the post-authentication trigger's event, with what only this pool can tell: where the sign-in came from.
type SignedIn struct {
	events.CognitoEventUserPoolsPostAuthentication
	Origin Origin `json:"origin"`
}

// PostAuthentication is the post-authentication trigger: it gets the event and returns it. Its error refuses the sign-in.
type PostAuthentication func(ctx context.Context, event SignedIn) (SignedIn, error)

// Origin is where a request came from, as far as it says.
type Origin struct {
	IP        string `json:"ip,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// FailedSignIn is a sign-in that was refused.
type FailedSignIn struct {
	Email  string `json:"email"`  // the user's, or what was given in place of one; empty when that was longer than any address
	Method string `json:"method"` // password
	Reason Reason `json:"reason"`
	Origin
}

// Reason is why a sign-in was refused. The answer to it says less.
type Reason string

// The reasons. Tries while a name has to wait are not told: nobody looked at their password, and they could fill any log.
const (
	UnknownUser   Reason = "unknown_user"
	WrongPassword Reason = "wrong_password"
	DisabledUser  Reason = "user_disabled" // the password was right
)

// SignInFailed is told of a sign-in that was refused, and must not wait for what it does with that: the refusal does.
type SignInFailed func(ctx context.Context, failed FailedSignIn)

const (
	byPassword = "password"
	maxAddress = 254 // bytes
)

// authenticate is the user with this name and password; the triggers are told of the outcome.
func (p *Pool) authenticate(ctx context.Context, username, password string) (User, error) {
	name := normalize(username)
	if p.failures.waiting(name) {
		return User{}, notAuthorized("Password attempts exceeded")
	}
	user, found := p.find(name)
	ok := p.password.matches(password) && found
	p.failures.note(name, ok)
	switch {
	case !found:
		p.refused(ctx, name, UnknownUser)
	case !ok:
		p.refused(ctx, user.Email, WrongPassword)
	case user.Disabled:
		p.refused(ctx, user.Email, DisabledUser)
		return User{}, notAuthorized("User is disabled.")
	}
	if !ok {
		return User{}, notAuthorized("Incorrect username or password.")
	}
	return user, p.authenticated(ctx, user)
}

// authenticated asks the post-authentication trigger, which may refuse.
func (p *Pool) authenticated(ctx context.Context, u User) error {
	if p.config.PostAuthentication == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, triggerTime)
	defer cancel()
	const source = "PostAuthentication_Authentication"
	_, err := p.config.PostAuthentication(ctx, SignedIn{
		CognitoEventUserPoolsPostAuthentication: events.CognitoEventUserPoolsPostAuthentication{
			CognitoEventUserPoolsHeader: p.header("1", source, u),
			Request: events.CognitoEventUserPoolsPostAuthenticationRequest{
				UserAttributes: attributes(u), ClientMetadata: map[string]string{}},
		},
		Origin: originOf(ctx),
	})
	if err != nil {
		p.config.Log.ErrorContext(ctx, "post-authentication trigger failed", "sub", u.Sub, "error", err)
		return failed("UserLambdaValidationException", "PostAuthentication failed with error %s.", fault.From(err).Message)
	}
	return nil
}

func (p *Pool) refused(ctx context.Context, email string, reason Reason) {
	if p.config.SignInFailed == nil {
		return
	}
	if len(email) > maxAddress {
		email = ""
	}
	p.config.SignInFailed(context.WithoutCancel(ctx), FailedSignIn{email, byPassword, reason, originOf(ctx)}) // who hangs up is told of, too
}

type originKey struct{}

// withOrigin carries where the request came from.
func withOrigin(r *http.Request) context.Context {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = ""
	}
	return context.WithValue(r.Context(), originKey{}, Origin{ip, r.UserAgent()})
}

func originOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
