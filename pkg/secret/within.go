package secret

import (
	"context"
	"fmt"
	"strings"
)

// Within is the part of a store whose ids have this word behind the tenant: of all others it says ErrDenied.
func Within(s Store, word string) Store { return within{s, word} }

type within struct {
	store Store
	word  string
}

func (w within) check(id ID) error {
	words := strings.Split(id.text, "/")
	if len(words) < 2 || words[1] != w.word {
		return fmt.Errorf("secret %s: %w", id, ErrDenied)
	}
	return nil
}

// Get implements StoreReader.
func (w within) Get(ctx context.Context, id ID) (string, error) {
	if err := w.check(id); err != nil {
		return "", err
	}
	return w.store.Get(ctx, id)
}

// Put implements Store.
func (w within) Put(ctx context.Context, id ID, value string) error {
	if err := w.check(id); err != nil {
		return err
	}
	return w.store.Put(ctx, id, value)
}

// Delete implements Store.
func (w within) Delete(ctx context.Context, id ID) error {
	if err := w.check(id); err != nil {
		return err
	}
	return w.store.Delete(ctx, id)
}

// Lasting is a store for who must take nothing away: Delete says ErrDenied.
func Lasting(s Store) Store { return lasting{s} }

type lasting struct{ Store }

// Delete implements Store.
func (lasting) Delete(_ context.Context, id ID) error {
	return fmt.Errorf("secret %s: %w", id, ErrDenied)
}
