package integration

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Client is the OAuth client of a task tracker's integration, without its secret.
type Client struct {
	ClientID     string   `json:"clientId"`
	Scopes       []string `json:"scopes,omitempty"`       // that users are asked for; none: the provider's usual ones
	RedirectURIs []string `json:"redirectUris,omitempty"` // where users may come back to: nowhere else, so at least one
	APIURL       string   `json:"apiUrl,omitempty"`       // origin of the API, if it is not the provider's own
	AuthURL      string   `json:"authUrl,omitempty"`      // origin of the authorization server, if it is not the provider's own
}

// Client is the integration's OAuth client.
func (i Integration) Client() (c Client, err error) {
	err = json.Unmarshal([]byte(i.Config), &c)
	return c, err
}

var scopeTokens = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,200}$`) // RFC 6749 §3.3

// checkClient takes what the users' connections are made with.
func (i *Integration) checkClient() error {
	var c Client
	if err := members(i.Config, &c); err != nil {
		return err
	}
	if err := text.Check("config.clientId", c.ClientID, 1, 500); err != nil {
		return err
	}
	if len(c.Scopes) > 50 || slices.ContainsFunc(c.Scopes, func(s string) bool { return !scopeTokens.MatchString(s) }) {
		return fault.Invalid("config.scopes must be at most 50 OAuth scopes of 1 to 200 characters")
	}
	if len(c.RedirectURIs) < 1 || len(c.RedirectURIs) > 20 {
		return fault.Invalid("config.redirectUris must be 1 to 20 addresses that users may come back to")
	}
	for _, u := range c.RedirectURIs {
		if err := text.CheckURL("config.redirectUris", u); err != nil {
			return err
		}
	}
	for field, u := range map[string]string{"config.apiUrl": c.APIURL, "config.authUrl": c.AuthURL} {
		if u == "" {
			continue
		}
		if err := text.CheckURL(field, u); err != nil {
			return err
		}
	}
	stored, err := json.Marshal(c)
	i.Config = string(stored)
	return err
}

// places are where the integration's secret goes, if it is not to the provider's own.
func (i Integration) places() (p struct {
	APIURL  string `json:"apiUrl"`
	AuthURL string `json:"authUrl"`
}) {
	_ = json.Unmarshal([]byte(i.Config), &p) // it was checked when it was stored
	return p
}

// moved reports whether the secret would go elsewhere than to where it was given for.
func moved(before, after Integration) bool {
	a, b := before.places(), after.places()
	return !sameOrigin(a.APIURL, b.APIURL) || !sameOrigin(a.AuthURL, b.AuthURL)
}

func sameOrigin(a, b string) bool {
	ua, errA := url.Parse(a)
	ub, errB := url.Parse(b)
	return errA == nil && errB == nil && egress.SameOrigin(ua, ub)
}
