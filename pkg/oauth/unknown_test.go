package oauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/oauth"
)

// Whether a refresh token was used up is known of an answer that the server meant, and of no other.
func TestWhatIsUnknown(t *testing.T) {
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	ask := func() error {
		_, err := oauth.Grant{TokenURL: server.URL, ClientID: "c", RefreshToken: "r"}.Token(t.Context(), server.Client())
		require.Error(t, err)
		return err
	}
	for _, c := range []struct {
		status  int
		body    string
		unknown bool
	}{
		{500, "", true}, {502, "<html>", true}, {503, `{"error":"temporarily_unavailable"}`, true}, {400, "", false}, {429, "", false}, {404, "", false},
		{400, `{"error":"invalid_grant"}`, false}, {500, `{"error":"invalid_grant"}`, false}, {401, `{"error":"invalid_client"}`, false},
		{200, "{}", false}, {200, `{"error":"invalid_request"}`, false},
	} {
		status, body = c.status, c.body
		err := ask()
		require.Equal(t, c.unknown, oauth.Unknown(err), c)
		var e *oauth.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.status, e.Status)
	}
	server.Close()
	require.True(t, oauth.Unknown(ask()), "no answer")
	require.False(t, oauth.Unknown(nil))
	require.False(t, oauth.Unknown(errors.New("not of a server")))
}
