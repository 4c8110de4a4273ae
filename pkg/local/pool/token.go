package pool

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/golang-jwt/jwt/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// adminScope is what the wire API's sign-in grants, and what its operations on the user need.
const adminScope = "aws.cognito.signin.user.admin"

// Trigger sources, as Cognito names them.
const (
	sourceSignIn  = "TokenGeneration_Authentication"
	sourceHosted  = "TokenGeneration_HostedAuth"
	sourceRefresh = "TokenGeneration_RefreshTokens"
)

// tokens are one answer's tokens; ID and access end after tokenLife.
type tokens struct{ ID, Access, Refresh string }

// signIn makes tokens for a user who has just proven who they are, and begins the session that the refresh token stands for.
func (p *Pool) signIn(ctx context.Context, u User, source, scope, nonce string, authTime int64) (tokens, session, error) {
	x := session{Origin: ident.New(), Sub: u.Sub, EventID: ident.New(), Scope: scope, Hosted: source == sourceHosted,
		AuthTime: authTime, Expires: p.config.Clock().Add(refreshLife).Unix()}
	t, err := p.mint(ctx, u, x, source, nonce)
	if err != nil {
		return tokens{}, session{}, err
	}
	if t.Refresh, err = p.sessions.begin(x); err != nil {
		return tokens{}, session{}, fmt.Errorf("store session: %w", err)
	}
	// Whoever disables or deletes the user says so first and ends its sessions then: either that finds this session, or this finds that.
	if err := p.mayStay(u.Sub); err != nil {
		return tokens{}, session{}, errors.Join(err, p.sessions.end(func(y session) bool { return y.Origin == x.Origin }))
	}
	return t, x, nil
}

// mayStay refuses a user that is gone or disabled.
func (p *Pool) mayStay(sub string) error {
	u, ok := p.find(sub)
	switch {
	case !ok:
		return notAuthorized("User does not exist.")
	case u.Disabled:
		return notAuthorized("User is disabled.")
	}
	return nil
}

// refresh makes new ID and access tokens in the session of a refresh token; the refresh token stays as it is.
func (p *Pool) refresh(ctx context.Context, refreshToken string) (tokens, session, error) {
	x, ok := p.sessions.byToken(refreshToken)
	if !ok {
		return tokens{}, session{}, notAuthorized("Invalid Refresh Token")
	}
	if p.config.Clock().Unix() >= x.Expires {
		return tokens{}, session{}, notAuthorized("Refresh Token has expired")
	}
	u, ok := p.find(x.Sub)
	if !ok {
		return tokens{}, session{}, notAuthorized("Invalid Refresh Token")
	}
	if u.Disabled {
		return tokens{}, session{}, notAuthorized("User is disabled.")
	}
	t, err := p.mint(ctx, u, x, sourceRefresh, "")
	return t, x, err
}

// mint asks the trigger, then signs an ID and an access token.
func (p *Pool) mint(ctx context.Context, u User, x session, source, nonce string) (tokens, error) {
	change, err := p.trigger(ctx, u, source, x.Scope)
	if err != nil {
		return tokens{}, err
	}
	now := p.config.Clock()
	member := func(use string) jwt.MapClaims {
		return jwt.MapClaims{"iss": p.Issuer(), "sub": u.Sub, "token_use": use, "auth_time": x.AuthTime, "iat": now.Unix(),
			"exp": now.Add(tokenLife).Unix(), "jti": ident.New(), "origin_jti": x.Origin, "event_id": x.EventID}
	}
	access := member("access")
	access["client_id"], access["username"], access["version"] = p.clientID, u.Sub, 2
	access["scope"] = changeScopes(x.Scope, change.AccessTokenGeneration)
	apply(access, change.AccessTokenGeneration.ClaimsToAddOrOverride, change.AccessTokenGeneration.ClaimsToSuppress)
	id := member("id")
	id["aud"], id["cognito:username"], id["email"], id["email_verified"] = p.clientID, u.Sub, u.Email, u.Verified
	apply(id, change.IDTokenGeneration.ClaimsToAddOrOverride, change.IDTokenGeneration.ClaimsToSuppress)
	if groups := change.GroupOverrideDetails.GroupsToOverride; len(groups) > 0 {
		id["cognito:groups"], access["cognito:groups"] = groups, groups
	}

	var t tokens
	if t.Access, err = p.sign(access); err != nil {
		return tokens{}, err
	}
	if source == sourceHosted {
		half := sha256.Sum256([]byte(t.Access))
		id["at_hash"] = base64.RawURLEncoding.EncodeToString(half[:16]) // OpenID Connect Core §3.1.3.6
		if nonce != "" {
			id["nonce"] = nonce
		}
	}
	t.ID, err = p.sign(id)
	return t, err
}

func (p *Pool) sign(claims jwt.MapClaims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header = map[string]any{"alg": "RS256", "kid": p.kid}
	return t.SignedString(p.key)
}

// trigger asks the pre-token-generation trigger what to change.
func (p *Pool) trigger(ctx context.Context, u User, source, scope string) (events.ClaimsAndScopeOverrideDetailsV2_0, error) {
	if p.config.PreToken == nil {
		return events.ClaimsAndScopeOverrideDetailsV2_0{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, triggerTime)
	defer cancel()
	out, err := p.config.PreToken(ctx, events.CognitoEventUserPoolsPreTokenGenV2_0{
		CognitoEventUserPoolsHeader: p.header("2", source, u),
		Request: events.CognitoEventUserPoolsPreTokenGenRequestV2_0{
			UserAttributes:     attributes(u),
			GroupConfiguration: events.GroupConfigurationV2_0{GroupsToOverride: []string{}, IAMRolesToOverride: []string{}},
			Scopes:             strings.Fields(scope),
		},
	})
	if err != nil {
		p.config.Log.ErrorContext(ctx, "pre-token-generation trigger failed", "sub", u.Sub, "source", source, "error", err)
		return events.ClaimsAndScopeOverrideDetailsV2_0{}, failed("UserLambdaValidationException", "PreTokenGeneration failed with error %s.", fault.From(err).Message)
	}
	return out.Response.ClaimsAndScopeOverrideDetails, nil
}

// header is what every trigger's event begins with.
func (p *Pool) header(version, source string, u User) events.CognitoEventUserPoolsHeader {
	region, _, _ := strings.Cut(p.id, "_")
	return events.CognitoEventUserPoolsHeader{Version: version, TriggerSource: source, Region: region, UserPoolID: p.id, UserName: u.Sub,
		CallerContext: events.CognitoEventUserPoolsCallerContext{AWSSDKVersion: "aws-sdk-unknown-unknown", ClientID: p.clientID}}
}

// attributes are a user's, as triggers get them.
func attributes(u User) map[string]string {
	return map[string]string{"sub": u.Sub, "email": u.Email, "email_verified": strconv.FormatBool(u.Verified), "cognito:user_status": "CONFIRMED"}
}

// kept are the claims that a trigger can neither change nor take away; like Cognito, its wish is passed over.
var kept = []string{"acr", "amr", "at_hash", "aud", "auth_time", "azp", "client_id", "cognito:username", "event_id", "exp", "iat", "iss", "jti", "nbf",
	"nonce", "origin_jti", "scope", "sub", "token_use", "username", "version"}

func apply(claims jwt.MapClaims, add map[string]any, suppress []string) {
	for _, name := range suppress {
		if !slices.Contains(kept, name) {
			delete(claims, name)
		}
	}
	for name, value := range add {
		if !slices.Contains(kept, name) {
			claims[name] = value
		}
	}
}

func changeScopes(scope string, change events.AccessTokenGenerationV2_0) string {
	scopes := slices.DeleteFunc(strings.Fields(scope), func(s string) bool { return slices.Contains(change.ScopesToSuppress, s) })
	for _, s := range change.ScopesToAdd {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return strings.Join(scopes, " ")
}

// bearer is what an access token of this pool says, when it is good and its session still is.
type bearer struct {
	user   User
	origin string
	scopes []string
}

// readAccess checks an access token as the wire API and userInfo do. Its errors have Cognito's texts.
func (p *Pool) readAccess(token string) (bearer, error) {
	claims := jwt.MapClaims{}
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(p.Issuer()), jwt.WithExpirationRequired(),
		jwt.WithTimeFunc(p.config.Clock), jwt.WithStrictDecoding()).
		ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return &p.key.PublicKey, nil })
	if err != nil {
		if expired(err) {
			return bearer{}, notAuthorized("Access Token has expired")
		}
		return bearer{}, notAuthorized("Invalid Access Token")
	}
	text := func(name string) string { s, _ := claims[name].(string); return s }
	if text("token_use") != "access" || text("client_id") != p.clientID {
		return bearer{}, notAuthorized("Invalid Access Token")
	}
	u, ok := p.find(text("sub"))
	if !ok || !p.sessions.live(text("origin_jti")) {
		return bearer{}, notAuthorized("Access Token has been revoked")
	}
	return bearer{u, text("origin_jti"), strings.Fields(text("scope"))}, nil
}
