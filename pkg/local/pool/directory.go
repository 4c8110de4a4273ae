package pool

import (
	"context"
	"slices"
)

// The pool is an identity.Directory. An operation that has returned is on disk.

// Invite adds the user, with the pool's password and a verified address, or lets a disabled one sign in again. Nothing is mailed: the
// password is the one of all users.
func (p *Pool) Invite(_ context.Context, email string) error {
	u, err := p.AddUser(email, "", true)
	if err != nil || !u.Disabled {
		return err
	}
	return p.change(u.Email, func(s *state, i int) { s.Users[i].Disabled = false })
}

// Disable lets the user sign in no more, then ends its sessions. One that is not there stays so.
func (p *Pool) Disable(ctx context.Context, email string) error {
	if err := p.change(email, func(s *state, i int) { s.Users[i].Disabled = true }); err != nil {
		return err
	}
	return p.SignOut(ctx, email)
}

// Delete removes the user, then ends its sessions. One that is not there stays so.
func (p *Pool) Delete(_ context.Context, email string) error {
	u, ok := p.byEmail(email)
	if !ok {
		return nil
	}
	if err := p.change(email, func(s *state, i int) { s.Users = slices.Delete(s.Users, i, i+1) }); err != nil {
		return err
	}
	return p.sessions.end(func(x session) bool { return x.Sub == u.Sub })
}

// SignOut ends all sessions of the user.
func (p *Pool) SignOut(_ context.Context, email string) error {
	u, ok := p.byEmail(email)
	if !ok {
		return nil
	}
	return p.sessions.end(func(x session) bool { return x.Sub == u.Sub })
}

// byEmail is find for an address only: a directory names nobody by sub.
func (p *Pool) byEmail(email string) (User, bool) {
	u, ok := p.find(email)
	return u, ok && u.Email == normalize(email)
}

// change writes one user's entry; no such user is no change.
func (p *Pool) change(email string, write func(s *state, i int)) error {
	email = normalize(email)
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.copyState()
	i := slices.IndexFunc(next.Users, func(u User) bool { return u.Email == email })
	if i < 0 {
		return nil
	}
	write(&next, i)
	return p.replaceState(next)
}
