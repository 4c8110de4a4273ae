package pool

import (
	"context"
	"slices"
	"strings"
)

type authResult struct {
	AuthenticationResult struct {
		AccessToken  string
		ExpiresIn    int // seconds
		IdToken      string
		RefreshToken string `json:",omitempty"`
		TokenType    string
	}
	ChallengeParameters map[string]string
}

func result(t tokens) authResult {
	var r authResult
	a := &r.AuthenticationResult
	a.AccessToken, a.IdToken, a.RefreshToken, a.ExpiresIn, a.TokenType = t.Access, t.ID, t.Refresh, int(tokenLife.Seconds()), "Bearer"
	r.ChallengeParameters = map[string]string{}
	return r
}

// authFlows are the flows that the API knows; the client has two of them enabled.
var authFlows = []string{"USER_SRP_AUTH", "REFRESH_TOKEN_AUTH", "REFRESH_TOKEN", "CUSTOM_AUTH", "ADMIN_NO_SRP_AUTH", "USER_PASSWORD_AUTH", "ADMIN_USER_PASSWORD_AUTH", "USER_AUTH"}

// initiateAuth signs in with a name and a password, or renews with a refresh token.
func (p *Pool) initiateAuth(ctx context.Context, body []byte) (any, error) {
	var in struct {
		AuthFlow, ClientId string
		AuthParameters     map[string]string
	}
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if in.AuthFlow == "" {
		return nil, missing("AuthFlow")
	}
	if err := p.checkClient(in.ClientId); err != nil {
		return nil, err
	}
	switch in.AuthFlow {
	case "USER_PASSWORD_AUTH":
		return p.passwordAuth(ctx, in.AuthParameters["USERNAME"], in.AuthParameters["PASSWORD"])
	case "REFRESH_TOKEN_AUTH", "REFRESH_TOKEN":
		return p.refreshAuth(ctx, in.AuthParameters["REFRESH_TOKEN"], "REFRESH_TOKEN")
	}
	if slices.Contains(authFlows, in.AuthFlow) {
		return nil, failed("InvalidParameterException", "%s flow is not enabled for this client", in.AuthFlow)
	}
	return nil, failed("InvalidParameterException", "1 validation error detected: Value '%.64s' at 'authFlow' failed to satisfy constraint: "+
		"Member must satisfy enum value set: [%s]", in.AuthFlow, strings.Join(authFlows, ", "))
}

func (p *Pool) passwordAuth(ctx context.Context, username, password string) (any, error) {
	if username == "" {
		return nil, missing("USERNAME")
	}
	if password == "" {
		return nil, missing("PASSWORD")
	}
	u, err := p.authenticate(ctx, username, password)
	if err != nil {
		return nil, err
	}
	t, _, err := p.signIn(ctx, u, sourceSignIn, adminScope, "", p.config.Clock().Unix())
	if err != nil {
		return nil, err
	}
	return result(t), nil
}

func (p *Pool) refreshAuth(ctx context.Context, token, parameter string) (any, error) {
	if token == "" {
		return nil, missing(parameter)
	}
	t, _, err := p.refresh(ctx, token)
	if err != nil {
		return nil, err
	}
	return result(t), nil
}

// getTokensFromRefreshToken renews; what newer clients call in place of InitiateAuth. The refresh token is not rotated.
func (p *Pool) getTokensFromRefreshToken(ctx context.Context, body []byte) (any, error) {
	var in struct{ ClientId, RefreshToken string }
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := p.checkClient(in.ClientId); err != nil {
		return nil, err
	}
	return p.refreshAuth(ctx, in.RefreshToken, "RefreshToken")
}

// respondToAuthChallenge always refuses: no flow here asks anything back, so no session to answer exists.
func (p *Pool) respondToAuthChallenge(_ context.Context, body []byte) (any, error) {
	var in struct{ ClientId, ChallengeName, Session string }
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if in.ChallengeName == "" {
		return nil, missing("ChallengeName")
	}
	if err := p.checkClient(in.ClientId); err != nil {
		return nil, err
	}
	if in.Session == "" {
		return nil, missing("Session")
	}
	return nil, notAuthorized("Invalid session for the user.")
}

// byAccessToken reads an input of one member AccessToken.
func (p *Pool) byAccessToken(body []byte) (bearer, error) {
	var in struct{ AccessToken string }
	if err := decode(body, &in); err != nil {
		return bearer{}, err
	}
	if in.AccessToken == "" {
		return bearer{}, missing("AccessToken")
	}
	b, err := p.readAccess(in.AccessToken)
	if err == nil && !slices.Contains(b.scopes, adminScope) {
		return bearer{}, notAuthorized("Access Token does not have required scopes")
	}
	return b, err
}

// getUser is the attributes of the token's user.
func (p *Pool) getUser(_ context.Context, body []byte) (any, error) {
	b, err := p.byAccessToken(body)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Username": b.user.Sub, "UserAttributes": b.user.list()}, nil
}

// globalSignOut ends all sessions of the token's user: their refresh tokens, and their access tokens at this pool. Who
// verifies tokens by signature alone accepts them until exp, as with the real service.
func (p *Pool) globalSignOut(_ context.Context, body []byte) (any, error) {
	b, err := p.byAccessToken(body)
	if err != nil {
		return nil, err
	}
	return struct{}{}, p.sessions.end(func(x session) bool { return x.Sub == b.user.Sub })
}

// revokeToken ends the session of a refresh token. One that is unknown is as good as revoked (RFC 7009 §2.2).
func (p *Pool) revokeToken(_ context.Context, body []byte) (any, error) {
	var in struct{ ClientId, Token string }
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := p.checkClient(in.ClientId); err != nil {
		return nil, err
	}
	if in.Token == "" {
		return nil, missing("Token")
	}
	if isJWT(in.Token) {
		return nil, failed("UnsupportedTokenTypeException", "Only refresh tokens can be revoked")
	}
	return struct{}{}, p.endSession(in.Token)
}

// isJWT tells ID and access tokens from refresh tokens, which have no dots here.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

func (p *Pool) endSession(refreshToken string) error {
	found, ok := p.sessions.byToken(refreshToken)
	if !ok {
		return nil
	}
	return p.sessions.end(func(x session) bool { return x.Origin == found.Origin })
}
