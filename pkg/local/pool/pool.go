// Package pool is the identity pool of local mode: it speaks the Amazon Cognito wire API and the hosted UI's code flow with
// PKCE, so that the real SDK, the real `aws` CLI, Amplify and any OAuth client sign in to one machine as they do to the cloud.
//
// Invariants:
//   - Pool id, client id, signing key, users and refresh tokens outlive restarts (Config.Dir). Of a refresh token only its SHA-256 is kept.
//   - No token is signed before the pre-token-generation trigger has answered; when it fails, there is no token. Nor is there one for a
//     sign-in (by password; a renewal is none) that the post-authentication trigger did not take.
//   - An unknown user and a wrong password have the same answer after the same work.
//   - The password is in memory only, as a salted slow hash; nothing of it is in Dir.
//   - Redirects go to loopback addresses, the pool's own base URL and Config.RedirectURLs; to anything else the answer is a page.
//
// What is authoritative: pool.json for the pool and its users, sessions.ndjson for who is signed in. Both survive a crash at any
// line: the first is replaced in one rename, the second is only ever appended to, and a torn last line is dropped at the next start.
//
// Not there, on purpose: sign-up, password change, SRP, MFA, a sign-in cookie (each authorize asks for the password). They answer
// with a typed error.
package pool

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const (
	tokenLife   = time.Hour           // of ID and access tokens
	refreshLife = 30 * 24 * time.Hour // of refresh tokens, from sign-in
	codeLife    = 5 * time.Minute     // of authorization codes
	triggerTime = 5 * time.Second     // the longest a trigger may take
)

// PreToken is the pre-token-generation trigger, version 2: it gets the event and returns it with the response filled in.
type PreToken func(ctx context.Context, event events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error)

// Config says where the pool lives and who signs in to it.
type Config struct {
	Dir      string   // state: signing-key.pem (0600), pool.json, sessions.ndjson; made when missing. Required
	BaseURL  string   // where Handler is reached, without a slash at the end, e.g. http://127.0.0.1:8787. Required
	Region   string   // first part of the pool id, used when the pool is made; default us-east-1
	Password string   // of every user, invited ones too. Required
	PreToken PreToken // adds the tenant's claims to the tokens; nil = none

	PostAuthentication PostAuthentication // told of each sign-in before there is a code or a token; nil = nobody
	SignInFailed       SignInFailed       // told of each sign-in that was refused; nil = nobody

	RedirectURLs []string         // exact redirect_uri and logout_uri values allowed beside loopback addresses; default none
	MaxFailures  int              // wrong passwords in a row before a user waits 1 s, then 2 s, 4 s … 30 s; default 5, negative = never
	Clock        func() time.Time // default time.Now
	Log          *slog.Logger     // default slog.Default()
}

// Pool is the identity pool. It is safe for concurrent use.
type Pool struct {
	config   Config
	id       string
	clientID string
	base     *url.URL
	key      *rsa.PrivateKey
	kid      string
	password hashed
	sessions *sessions
	codes    *codes
	failures *failures
	formKey  [32]byte // signs the sign-in form; new at each start

	mu    sync.RWMutex
	state state
}

// New opens the pool in c.Dir, or makes it there. It fails with one line that says what to do.
func New(c Config) (*Pool, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || strings.HasSuffix(c.BaseURL, "/") {
		return nil, fmt.Errorf("identity pool: base URL %q must be an absolute URL without a slash at the end", c.BaseURL)
	}
	if c.Dir == "" || c.Password == "" {
		return nil, errors.New("identity pool: Dir and Password are required")
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.MaxFailures == 0 {
		c.MaxFailures = 5
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("identity pool: %w", err)
	}
	p := &Pool{config: c, base: base, codes: newCodes(c.Clock), failures: newFailures(c.MaxFailures, c.Clock), formKey: [32]byte(randomBytes(32))}
	if p.key, p.kid, err = openKey(filepath.Join(c.Dir, "signing-key.pem")); err != nil {
		return nil, err
	}
	if p.state, err = openState(filepath.Join(c.Dir, "pool.json"), c.Region); err != nil {
		return nil, err
	}
	p.id, p.clientID = p.state.PoolID, p.state.ClientID
	if p.sessions, err = openSessions(filepath.Join(c.Dir, "sessions.ndjson"), c.Clock()); err != nil {
		return nil, err
	}
	p.password = hash(c.Password)
	return p, nil
}

// Close closes the pool's files.
func (p *Pool) Close() error { return p.sessions.close() }

// ID is the pool id, e.g. us-east-1_a1B2c3D4e.
func (p *Pool) ID() string { return p.id }

// ClientID is the id of the pool's one app client: 26 lower-case letters and digits; it has no secret.
func (p *Pool) ClientID() string { return p.clientID }

// Issuer is the iss of the pool's tokens.
func (p *Pool) Issuer() string { return p.config.BaseURL + "/" + p.id }

// JWKSURL is where the pool's public key is.
func (p *Pool) JWKSURL() string { return p.Issuer() + "/.well-known/jwks.json" }
