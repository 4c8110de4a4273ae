package toolserver

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/mcp"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// The time of one call, connecting included.
const (
	DefaultTimeout = 60 * time.Second
	MaxTimeout     = 8 * time.Minute
)

// Settings are what a caller says of a server. An update leaves what it does not give as it is.
type Settings struct {
	URL       text.Patch[string]        `json:"url,omitzero"`
	Scopes    text.Patch[[]string]      `json:"scopes,omitzero"`
	Transport text.Patch[mcp.Transport] `json:"transport,omitzero"`
	Auth      text.Patch[Credential]    `json:"auth,omitzero"`
	Timeout   text.Patch[int]           `json:"timeoutSeconds,omitzero"`
}

// NewServer is what a caller registers.
type NewServer struct {
	Name string `json:"name"`
	Settings
}

// Credential is how to sign in to a server, with the secret. It is never given back.
type Credential struct {
	Type         AuthType `json:"type"`
	Token        string   `json:"token"`  // BEARER
	Header       string   `json:"header"` // API_KEY: the header's name
	Key          string   `json:"key"`    // API_KEY: its value
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	RefreshToken string   `json:"refreshToken"`
	TokenURL     string   `json:"tokenUrl"` // empty: it is looked for
}

// names begin tools' names. One underscore at a time and none at the end: up to the first two of them a tool's name is its server's.
var names = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

const maxName = 40

func checkName(name string) error {
	if len(name) > maxName || !names.MatchString(name) {
		return fault.Invalid("name must be 1 to %d letters, digits, hyphens and single underscores, none of them at an end", maxName)
	}
	return nil
}

// apply changes the server by the settings and checks it.
func (n Settings) apply(s *Server) error {
	before := s.URL
	if err := given("url", n.URL, &s.URL); err != nil {
		return err
	}
	if err := given("transport", n.Transport, &s.Transport); err != nil {
		return err
	}
	if err := given("timeoutSeconds", n.Timeout, &s.Timeout); err != nil {
		return err
	}
	if n.Scopes.Set {
		s.Scopes = []string{}
		if n.Scopes.Value != nil {
			s.Scopes = *n.Scopes.Value
		}
	}
	if n.Auth.Set {
		credential := Credential{Type: NoAuth}
		if n.Auth.Value != nil {
			credential = *n.Auth.Value
		}
		if err := credential.check(); err != nil {
			return err
		}
		s.Auth = credential.shown()
	} else if before != "" && s.Auth.Type != NoAuth && !sameOrigin(before, s.URL) {
		return fault.Invalid("auth must be given again with a URL of another origin: what was given for the one is not sent to the other")
	}
	return s.check()
}

// given writes a setting that was given; null is none.
func given[T any](field string, p text.Patch[T], to *T) error {
	if !p.Set {
		return nil
	}
	if p.Value == nil {
		return fault.Invalid("%s must not be null", field)
	}
	*to = *p.Value
	return nil
}

func sameOrigin(a, b string) bool {
	ua, erra := url.Parse(a)
	ub, errb := url.Parse(b)
	return erra == nil && errb == nil && egress.SameOrigin(ua, ub)
}

var scopeTokens = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`) // RFC 6749 §3.3

func (s *Server) check() error {
	if err := text.CheckURL("url", s.URL); err != nil {
		return err
	}
	if !slices.Contains([]mcp.Transport{mcp.Auto, mcp.Streamable, mcp.SSE}, s.Transport) {
		return fault.Invalid("transport must be AUTO, STREAMABLE_HTTP or SSE")
	}
	if limit := int(MaxTimeout.Seconds()); s.Timeout < 1 || s.Timeout > limit {
		return fault.Invalid("timeoutSeconds must be from 1 to %d seconds", limit)
	}
	if len(s.Scopes) > 50 {
		return fault.Invalid("scopes holds more than 50 entries")
	}
	for _, scope := range s.Scopes {
		if len(scope) > 200 || !scopeTokens.MatchString(scope) {
			return fault.Invalid("scopes holds %q, which is no OAuth scope of 1 to 200 characters", scope)
		}
	}
	return nil
}

var (
	headerNames = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110 §5.1
	values      = regexp.MustCompile(`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`)
)

// taken are headers that are not for a credential.
var taken = []string{"accept", "accept-encoding", "connection", "content-length", "content-type", "content-encoding", "expect", "host", "keep-alive", "last-event-id", "proxy-authorization",
	"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}

const maxSecret = 2048 // bytes of one; a store keeps 8192 of all that belongs together

func (c Credential) check() error {
	secrets := map[string]string{}
	switch c.Type {
	case NoAuth:
	case Bearer:
		secrets["auth.token"] = c.Token
	case APIKey:
		secrets["auth.key"] = c.Key
		if len(c.Header) > 100 || !headerNames.MatchString(c.Header) || slices.Contains(taken, strings.ToLower(c.Header)) || strings.HasPrefix(strings.ToLower(c.Header), "mcp-") {
			return fault.Invalid("auth.header must be the name of a header that is for a key")
		}
	case OAuth:
		if err := text.Check("auth.clientId", c.ClientID, 1, 500); err != nil {
			return err
		}
		if c.ClientSecret == "" && c.RefreshToken == "" {
			return fault.Invalid("auth needs a clientSecret, a refreshToken or both")
		}
		if c.ClientSecret != "" {
			secrets["auth.clientSecret"] = c.ClientSecret
		}
		if c.RefreshToken != "" {
			secrets["auth.refreshToken"] = c.RefreshToken
		}
		if c.TokenURL != "" {
			if err := text.CheckURL("auth.tokenUrl", c.TokenURL); err != nil {
				return err
			}
		}
	default:
		return fault.Invalid("auth.type must be NONE, BEARER, API_KEY or OAUTH")
	}
	for field, s := range secrets {
		if len(s) > maxSecret || c.Type != OAuth && !values.MatchString(s) || text.Check(field, s, 1, maxSecret) != nil {
			return fault.Invalid("%s must be 1 to %d bytes that a header can carry", field, maxSecret)
		}
	}
	return nil
}

// shown is what may be shown of the credential.
func (c Credential) shown() Auth {
	a := Auth{Type: c.Type}
	switch c.Type {
	case APIKey:
		a.Header = &c.Header
	case OAuth:
		a.ClientID = &c.ClientID
		if c.TokenURL != "" {
			a.TokenURL = &c.TokenURL
		}
	}
	return a
}
