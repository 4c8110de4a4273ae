package identity

import (
	"context"
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

// check is the full check of a token: signature, times, issuer, kind and audience. It also gives the key set that verified it.
func (v *Verifier) check(ctx context.Context, token string, set *keySet) (jwt.MapClaims, *keySet, error) {
	claims := jwt.MapClaims{}
	var unavailable error
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("critical header extensions are not understood") // RFC 7515 §4.1.11
		}
		kid, _ := t.Header["kid"].(string)
		if kid == "" {
			return nil, errors.New("no key id")
		}
		found, err := v.keys.holding(ctx, kid, set)
		if err != nil {
			unavailable = err
			return nil, err
		}
		set = found
		key, ok := set.byID[kid]
		if !ok {
			return nil, errors.New("unknown key id")
		}
		return key, nil
	})
	if unavailable != nil {
		return nil, nil, unavailable
	}
	if err != nil {
		return nil, nil, refusal{err}
	}
	if err := v.checkAudience(claims); err != nil {
		return nil, nil, err
	}
	return claims, set, nil
}

// checkAudience holds what the JWT library has no option for: the two kinds of token name their audience in different members.
func (v *Verifier) checkAudience(claims jwt.MapClaims) error {
	if iat, err := claims.GetIssuedAt(); err != nil || iat == nil {
		return refuse("no iat")
	}
	if sub, _ := claims["sub"].(string); sub == "" {
		return refuse("no sub")
	}
	switch use, _ := claims["token_use"].(string); use {
	case "id":
		if aud, err := claims.GetAudience(); err != nil || len(aud) != 1 || aud[0] != v.clientID {
			return refuse("aud is %v", claims["aud"])
		}
	case "access":
		if id, _ := claims["client_id"].(string); id != v.clientID {
			return refuse("client_id is %v", claims["client_id"])
		}
	default:
		return refuse("token_use is %v", claims["token_use"])
	}
	return nil
}
