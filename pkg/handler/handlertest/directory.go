package handlertest

import (
	"context"
	"slices"
	"sync"
)

// Directory implements identity.Directory for functions under test; pkg/identity and pkg/local/pool are tested on their own.
type Directory struct {
	Fail error // what every operation answers

	mu   sync.Mutex
	told []string
}

// Told is what it was told, in order.
func (d *Directory) Told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

func (d *Directory) tell(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Fail == nil {
		d.told = append(d.told, what)
	}
	return d.Fail
}

// Invite implements identity.Directory.
func (d *Directory) Invite(_ context.Context, email string) error { return d.tell("invite " + email) }

// Disable implements identity.Directory.
func (d *Directory) Disable(_ context.Context, email string) error { return d.tell("disable " + email) }

// Delete implements identity.Directory.
func (d *Directory) Delete(_ context.Context, email string) error { return d.tell("delete " + email) }

// SignOut implements identity.Directory.
func (d *Directory) SignOut(_ context.Context, email string) error {
	return d.tell("sign out " + email)
}
