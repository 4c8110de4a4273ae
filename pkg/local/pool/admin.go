package pool

import (
	"context"
	"net/http"
	"slices"
)

// admin are the wire API's operations for who administers the pool: those that cognito.Directory asks for.
var admin = map[string]operation{
	"AdminCreateUser": (*Pool).adminCreateUser,
	"AdminGetUser":    onUser((*Pool).adminGetUser),
	"AdminEnableUser": onUser(func(p *Pool, _ context.Context, u User) (any, error) {
		return p.set(u, func(u *User) { u.Disabled = false })
	}),
	"AdminDisableUser": onUser(func(p *Pool, _ context.Context, u User) (any, error) {
		return p.set(u, func(u *User) { u.Disabled = true })
	}),
	"AdminDeleteUser":        onUser(func(p *Pool, ctx context.Context, u User) (any, error) { return struct{}{}, p.Delete(ctx, u.Email) }),
	"AdminUserGlobalSignOut": onUser(func(p *Pool, ctx context.Context, u User) (any, error) { return struct{}{}, p.SignOut(ctx, u.Email) }),
}

// Admin serves the operations for administrators, which Handler does not. It trusts who calls it: put a check in front of it.
func (p *Pool) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, admin) })
}

// named is what these operations have in common.
type named struct{ UserPoolId, Username string }

func (p *Pool) check(in named) error {
	switch {
	case in.UserPoolId == "":
		return missing("UserPoolId")
	case in.Username == "":
		return missing("Username")
	case in.UserPoolId != p.id:
		return failed("ResourceNotFoundException", "User pool %.128s does not exist.", in.UserPoolId)
	}
	return nil
}

// onUser is an operation on a user that is there.
func onUser(run func(p *Pool, ctx context.Context, u User) (any, error)) operation {
	return func(p *Pool, ctx context.Context, body []byte) (any, error) {
		var in named
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		if err := p.check(in); err != nil {
			return nil, err
		}
		u, ok := p.find(in.Username)
		if !ok {
			return nil, failed("UserNotFoundException", "User does not exist.")
		}
		return run(p, ctx, u)
	}
}

type attribute struct{ Name, Value string }

// adminCreateUser invites. Nothing is mailed, and there is no invitation to take: the password is the one of all users.
func (p *Pool) adminCreateUser(_ context.Context, body []byte) (any, error) {
	var in struct {
		named
		MessageAction  string
		UserAttributes []attribute
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := p.check(in.named); err != nil {
		return nil, err
	}
	u, there := p.byEmail(in.Username)
	switch resend := in.MessageAction == "RESEND"; {
	case there && !resend:
		return nil, failed("UsernameExistsException", "An account with the given email already exists.")
	case !there && resend:
		return nil, failed("UserNotFoundException", "User does not exist.")
	case !there:
		var err error
		if u, err = p.AddUser(in.Username, "", slices.Contains(in.UserAttributes, attribute{"email_verified", "true"})); err != nil {
			return nil, failed("InvalidParameterException", "Username should be an email.")
		}
	}
	return map[string]any{"User": map[string]any{"Username": u.Sub, "Enabled": !u.Disabled, "UserStatus": "CONFIRMED", "Attributes": u.list()}}, nil
}

func (p *Pool) adminGetUser(_ context.Context, u User) (any, error) {
	return map[string]any{"Username": u.Sub, "Enabled": !u.Disabled, "UserStatus": "CONFIRMED", "UserAttributes": u.list()}, nil
}

// list is the user's attributes as the wire API has them.
func (u User) list() []attribute {
	var all []attribute
	for _, name := range []string{"sub", "email", "email_verified"} {
		all = append(all, attribute{name, attributes(u)[name]})
	}
	return all
}

func (p *Pool) set(u User, write func(u *User)) (any, error) {
	return struct{}{}, p.change(u.Email, func(s *state, i int) { write(&s.Users[i]) })
}
