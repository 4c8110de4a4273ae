package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

// Discover finds the token endpoint of a resource's authorization server: the resource says which server that is (RFC 9728), where the answer to a request
// without a token says, or at its well-known place; the server says where its token endpoint is (RFC 8414, or OpenID Connect's place for the same). A resource
// that does not say is taken for its own authorization server, as MCP 2025-03-26 had it.
func Discover(ctx context.Context, c *http.Client, resource string) (tokenURL string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*timeLimit)
	defer cancel()
	u, err := url.Parse(resource)
	if err != nil {
		return "", &Error{Reason: "the URL cannot be understood"}
	}
	d := discovery{c, u}
	issuer, err := d.issuer(ctx)
	if err != nil {
		return "", err
	}
	return d.endpoint(ctx, issuer)
}

type discovery struct {
	client   *http.Client
	resource *url.URL
}

// issuer is the resource's authorization server.
func (d discovery) issuer(ctx context.Context) (string, error) {
	places := []string{wellKnown(d.resource, "oauth-protected-resource", d.resource.EscapedPath()), wellKnown(d.resource, "oauth-protected-resource", "")}
	named, err := d.challenge(ctx)
	if err != nil {
		return "", err
	}
	if named != "" {
		places = []string{named}
	}
	for _, place := range places {
		var said struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		found, err := d.get(ctx, place, &said)
		if err != nil {
			return "", err
		}
		if !found {
			continue
		}
		of, err := url.Parse(said.Resource)
		if err != nil || !egress.SameOrigin(of, d.resource) || !strings.HasPrefix(d.resource.Path, strings.TrimSuffix(of.Path, "/")) {
			return "", &Error{Reason: "the server describes the authorization of another resource than itself"} // RFC 9728 §3.3
		}
		if len(said.Servers) == 0 {
			return "", &Error{Reason: "the server names no authorization server"}
		}
		return said.Servers[0], nil
	}
	return d.resource.Scheme + "://" + d.resource.Host, nil
}

// challenge is where the resource says that it describes itself; empty: it does not say.
func (d discovery) challenge(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.resource.String(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return "", &Error{Reason: "the URL cannot be understood"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := d.client.Do(r)
	if err != nil {
		return "", explain(ctx, "", err)
	}
	response.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return "", nil //nolint:nilerr // a header that says nothing
	}
	for _, c := range challenges {
		if place := c.Params["resource_metadata"]; c.Scheme == "bearer" && place != "" {
			return place, nil
		}
	}
	return "", nil
}

// endpoint is the token endpoint of an authorization server.
func (d discovery) endpoint(ctx context.Context, issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", &Error{Reason: "the name of the authorization server cannot be understood"}
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{wellKnown(u, "oauth-authorization-server", path), wellKnown(u, "openid-configuration", path)}
	if path != "" {
		places = append(places, u.Scheme+"://"+u.Host+path+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var said struct {
			Issuer        string `json:"issuer"`
			TokenEndpoint string `json:"token_endpoint"`
		}
		found, err := d.get(ctx, place, &said)
		if err != nil {
			return "", err
		}
		if !found {
			continue
		}
		if strings.TrimSuffix(said.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return "", &Error{Reason: "the authorization server says that it is another one"} // RFC 8414 §3.3
		}
		if e, err := url.Parse(said.TokenEndpoint); err != nil || e.Host == "" || e.User != nil || e.Scheme != "https" && e.Scheme != u.Scheme {
			return "", &Error{Reason: "the authorization server names no token endpoint"}
		}
		return said.TokenEndpoint, nil
	}
	return "", &Error{Reason: "the authorization server does not say where its token endpoint is: give its URL"}
}

// get reads a document; false: there is none.
func (d discovery) get(ctx context.Context, place string, to any) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, &Error{Reason: "the place of the authorization server's description cannot be understood"}
	}
	r.Header.Set("Accept", "application/json")
	status, body, err := exchange(d.client, r)
	if err != nil {
		return false, explain(ctx, "the authorization server's description: ", err)
	}
	return status == http.StatusOK && json.Unmarshal(body, to) == nil, nil // one that answers everything with a page does not say
}

// wellKnown is a place of RFC 8615: the name before the path.
func wellKnown(of *url.URL, name, path string) string {
	return of.Scheme + "://" + of.Host + "/.well-known/" + name + strings.TrimSuffix(path, "/")
}
