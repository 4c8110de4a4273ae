package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// state is pool.json.
type state struct {
	path     string
	PoolID   string `json:"pool_id"`
	ClientID string `json:"client_id"`
	Users    []User `json:"users"`
}

// User is one who can sign in.
type User struct {
	Sub      string `json:"sub"` // the pool's id of the user, also its username
	Email    string `json:"email"`
	Verified bool   `json:"email_verified"`
	Disabled bool   `json:"disabled,omitempty"` // signs in no more
}

var (
	poolIDs   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]_[0-9A-Za-z]{9}$`)
	clientIDs = regexp.MustCompile(`^[0-9a-z]{26}$`)
)

func openState(path, region string) (state, error) {
	s := state{path: path}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.PoolID = region + "_" + randomText(9, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
		s.ClientID = randomText(26, "abcdefghijklmnopqrstuvwxyz0123456789")
		if !poolIDs.MatchString(s.PoolID) {
			return state{}, fmt.Errorf("identity pool: region %q is not an AWS region name", region)
		}
		return s, s.save()
	}
	if err != nil {
		return state{}, fmt.Errorf("identity pool: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil || !poolIDs.MatchString(s.PoolID) || !clientIDs.MatchString(s.ClientID) {
		return state{}, fmt.Errorf("identity pool: %s is damaged: remove it to start with a new pool id", path)
	}
	return s, nil
}

func (s *state) save() error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path, append(raw, '\n'), 0o600)
}

// AddUser adds a user with the pool's password; sub may be empty and is then chosen. For an e-mail address that is there already it
// changes nothing but verified, and fails when sub is another one: a sub never changes, tokens and rows name it.
func (p *Pool) AddUser(email, sub string, verified bool) (User, error) {
	email = normalize(email)
	if at := strings.IndexByte(email, '@'); at < 1 || at == len(email)-1 || strings.ContainsAny(email, " \t\r\n\x00") {
		return User{}, fmt.Errorf("identity pool: %q is not an e-mail address", email)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.copyState()
	i := slices.IndexFunc(next.Users, func(u User) bool { return u.Email == email })
	if sub != "" && slices.ContainsFunc(next.Users, func(u User) bool { return u.Sub == sub && u.Email != email }) {
		return User{}, fmt.Errorf("identity pool: sub %s is another user's", sub)
	}
	switch {
	case i < 0:
		if sub == "" {
			sub = ident.New()
		}
		next.Users = append(next.Users, User{Sub: sub, Email: email, Verified: verified})
		i = len(next.Users) - 1
	case sub != "" && sub != next.Users[i].Sub:
		return User{}, fmt.Errorf("identity pool: %s has the sub %s already", email, next.Users[i].Sub)
	case next.Users[i].Verified == verified:
		return next.Users[i], nil
	default:
		next.Users[i].Verified = verified
	}
	return next.Users[i], p.replaceState(next)
}

// copyState is the state, to be changed and given to replaceState while p.mu stays locked.
func (p *Pool) copyState() state {
	next := p.state
	next.Users = slices.Clone(p.state.Users)
	return next
}

// replaceState makes next the state, on disk first.
func (p *Pool) replaceState(next state) error {
	if err := next.save(); err != nil {
		return err
	}
	p.state = next
	return nil
}

// find is the user that signs in under this name: its e-mail address in any case, or its sub.
func (p *Pool) find(username string) (User, bool) {
	username = normalize(username)
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, u := range p.state.Users {
		if u.Email == username || normalize(u.Sub) == username {
			return u, true
		}
	}
	return User{}, false
}

func normalize(username string) string { return strings.ToLower(strings.TrimSpace(username)) }
