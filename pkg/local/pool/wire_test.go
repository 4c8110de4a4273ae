package pool_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const amzJSON = "application/x-amz-json-1.1"

func (l *local) post(t testing.TB, path, contentType, target, body string) (*http.Response, string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	if target != "" {
		req.Header.Set("X-Amz-Target", target)
	}
	return do(t, http.DefaultClient, req)
}

func do(t testing.TB, c *http.Client, req *http.Request) (*http.Response, string) {
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestWireErrors(t *testing.T) {
	l := start(t, nil)
	auth := "AWSCognitoIdentityProviderService.InitiateAuth"
	client := `"ClientId":"` + l.ClientID() + `"`
	for name, c := range map[string]struct{ target, contentType, body, kind, message string }{
		"no target":             {"", amzJSON, `{}`, "UnknownOperationException", "operation"},
		"other service":         {"AWSCognitoIdentityService.GetId", amzJSON, `{}`, "UnknownOperationException", "GetId"},
		"unsupported operation": {"AWSCognitoIdentityProviderService.SignUp", amzJSON, `{}`, "UnknownOperationException", "SignUp"},
		"form":                  {auth, "application/x-www-form-urlencoded", `{}`, "SerializationException", "Content-Type"},
		"empty":                 {auth, amzJSON, ``, "SerializationException", "JSON"},
		"broken JSON":           {auth, amzJSON, `{"AuthFlow":`, "SerializationException", "JSON"},
		"list":                  {auth, amzJSON, `[]`, "SerializationException", "JSON"},
		"wrong type":            {auth, amzJSON, `{"AuthFlow":1}`, "SerializationException", "JSON"},
		"number as parameter":   {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH","AuthParameters":{"USERNAME":1}}`, "SerializationException", "JSON"},
		"invalid UTF-8":         {auth, amzJSON, "{\"AuthFlow\":\"\xff\"}", "SerializationException", "UTF-8"},
		"oversized":             {auth, amzJSON, `{"x":"` + strings.Repeat("a", 70<<10) + `"}`, "SerializationException", "longer"},
		"null":                  {auth, amzJSON, `null`, "InvalidParameterException", "AuthFlow"},
		"no flow":               {auth, amzJSON, `{` + client + `}`, "InvalidParameterException", "Missing required parameter AuthFlow"},
		"no client":             {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH"}`, "InvalidParameterException", "Missing required parameter ClientId"},
		"unknown client":        {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH","ClientId":"abc"}`, "ResourceNotFoundException", "User pool client abc does not exist."},
		"no username":           {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH",` + client + `}`, "InvalidParameterException", "Missing required parameter USERNAME"},
		"no password":           {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH",` + client + `,"AuthParameters":{"USERNAME":"a"}}`, "InvalidParameterException", "Missing required parameter PASSWORD"},
		"no refresh token":      {auth, amzJSON, `{"AuthFlow":"REFRESH_TOKEN_AUTH",` + client + `}`, "InvalidParameterException", "Missing required parameter REFRESH_TOKEN"},
		"SRP":                   {auth, amzJSON, `{"AuthFlow":"USER_SRP_AUTH",` + client + `}`, "InvalidParameterException", "USER_SRP_AUTH flow is not enabled for this client"},
		"no such flow":          {auth, amzJSON, `{"AuthFlow":"MAGIC",` + client + `}`, "InvalidParameterException", "Value 'MAGIC' at 'authFlow'"},
		"NUL in the name":       {auth, amzJSON, `{"AuthFlow":"USER_PASSWORD_AUTH",` + client + `,"AuthParameters":{"USERNAME":"a\u0000b","PASSWORD":"x"}}`, "NotAuthorizedException", "Incorrect username or password."},
		"challenge":             {"AWSCognitoIdentityProviderService.RespondToAuthChallenge", amzJSON, `{"ChallengeName":"SMS_MFA","Session":"x",` + client + `}`, "NotAuthorizedException", "Invalid session for the user."},
		"challenge, no name":    {"AWSCognitoIdentityProviderService.RespondToAuthChallenge", amzJSON, `{` + client + `}`, "InvalidParameterException", "ChallengeName"},
		"no access token":       {"AWSCognitoIdentityProviderService.GetUser", amzJSON, `{}`, "InvalidParameterException", "AccessToken"},
		"renew without token":   {"AWSCognitoIdentityProviderService.GetTokensFromRefreshToken", amzJSON, `{` + client + `}`, "InvalidParameterException", "RefreshToken"},
		"revoke without token":  {"AWSCognitoIdentityProviderService.RevokeToken", amzJSON, `{` + client + `}`, "InvalidParameterException", "Token"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := l.post(t, "/", c.contentType, c.target, c.body)
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			require.Equal(t, amzJSON, resp.Header.Get("Content-Type"))
			require.Equal(t, c.kind, resp.Header.Get("x-amzn-ErrorType"))
			require.NotEmpty(t, resp.Header.Get("x-amzn-RequestId"))
			require.Equal(t, "*", resp.Header.Get("Access-Control-Allow-Origin"))
			var e struct {
				Type    string `json:"__type"`
				Message string `json:"message"`
			}
			require.NoError(t, json.Unmarshal([]byte(body), &e))
			require.Equal(t, c.kind, e.Type)
			require.Contains(t, e.Message, c.message)
		})
	}
}

func TestPreflight(t *testing.T) {
	l := start(t, nil)
	for path, methods := range map[string]string{"/": "POST", "/oauth2/token": "POST", "/oauth2/userInfo": "GET,POST", "/" + l.ID() + "/.well-known/jwks.json": "GET"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, l.url+path, nil)
		require.NoError(t, err)
		req.Header.Set("Access-Control-Request-Headers", "x-amz-target,content-type,x-amz-user-agent")
		resp, _ := do(t, http.DefaultClient, req)
		require.Equal(t, http.StatusNoContent, resp.StatusCode, path)
		require.Equal(t, "*", resp.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, methods, resp.Header.Get("Access-Control-Allow-Methods"))
		require.Equal(t, "x-amz-target,content-type,x-amz-user-agent", resp.Header.Get("Access-Control-Allow-Headers"))
	}
	require.Contains(t, l.Patterns(), "OPTIONS /{$}")
	require.Contains(t, l.Patterns(), "POST /login")
	resp, _ := l.post(t, "/elsewhere", amzJSON, "", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}
