package realtime

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestHandshakesOfAllClients(t *testing.T) {
	f := serve(t, nil)
	header := `{"Authorization":"t1","host":"localhost:1?~ÿ"}` // its base64 has characters in which the alphabets differ
	for name, c := range map[string]*client{
		"subprotocol":               f.dial("", "graphql-ws", "header-"+encoded(header)),
		"subprotocol first":         f.dial("", "header-"+encoded(header), "graphql-ws"),
		"bearer":                    f.dial("", "graphql-ws", "header-"+encoded(`{"Authorization":"Bearer t1"}`)),
		"lower case":                f.dial("", "graphql-ws", "header-"+encoded(`{"authorization":"t1"}`)),
		"query":                     f.dial("?header="+url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(header)))+"&payload=e30=", "graphql-ws"),
		"query, base64url":          f.dial("?payload=e30&header="+encoded(header), "graphql-ws"),
		"other parameters, ignored": f.dial("?x-amz-user-agent=amplify&header="+encoded(header), "graphql-ws"),
	} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			require.Equal(t, "graphql-ws", c.socket.Subprotocol())
			c.send(`{"type":"connection_init","payload":{}}`)
			c.expect(`{"type":"connection_ack","payload":{"connectionTimeoutMs":300000}}`)
			c.expect(`{"type":"ka"}`)
			require.NoError(t, c.socket.Close(websocket.StatusNormalClosure, ""))
		})
	}
}

func TestHandshakesThatAreRefused(t *testing.T) {
	f := serve(t, nil)
	for name, test := range map[string]struct {
		query     string
		protocols []string
		errorType string
		code      int
	}{
		"no token":             {"", []string{"graphql-ws"}, "UnauthorizedException", 401},
		"wrong token":          {"", []string{"graphql-ws", "header-" + encoded(`{"Authorization":"forged"}`)}, "UnauthorizedException", 401},
		"no Authorization":     {"", []string{"graphql-ws", "header-" + encoded(`{"host":"x"}`)}, "UnauthorizedException", 401},
		"Authorization is 7":   {"", []string{"graphql-ws", "header-" + encoded(`{"Authorization":7}`)}, "UnauthorizedException", 401},
		"not base64":           {"?header=%25%25", []string{"graphql-ws"}, "UnauthorizedException", 401},
		"not an object":        {"?header=" + encoded(`"t1"`), []string{"graphql-ws"}, "UnauthorizedException", 401},
		"no subprotocol":       {"?header=" + encoded(`{"Authorization":"t1"}`), nil, "BadRequestException", 400},
		"verifier unavailable": {"", []string{"graphql-ws", "header-" + encoded(`{"Authorization":"unavailable"}`)}, "InternalError", 500},
	} {
		t.Run(name, func(t *testing.T) {
			c := f.dial(test.query, test.protocols...)
			c.T = t
			c.send(`{"type":"connection_init"}`)
			p := c.expectError("connection_error", "", test.errorType)
			require.Equal(t, test.code, p.ErrorCode)
			require.NotContains(t, p.Message, "10.0.0.1")
			require.Empty(t, c.expectClose(closedUnauthorized))
		})
	}
}

func TestARefusedConnectionStartsNothing(t *testing.T) {
	f := serve(t, nil)
	c := f.dial("", "graphql-ws")
	c.send(startMessage("1", "t1", onThread, "CHAT-1"))
	c.send(startMessage("2", "t1", onThread, "CHAT-1"))
	c.expectError("connection_error", "", "UnauthorizedException")
	require.Empty(t, c.expectClose(closedUnauthorized))
	require.Zero(t, addresses(f.hub))
}

func TestASilentConnectionIsClosed(t *testing.T) {
	f := serve(t, func(c *Config) { c.InitTimeout = 20 * time.Millisecond })
	for _, protocols := range [][]string{{"graphql-ws", "header-" + encoded(`{"Authorization":"t1"}`)}, {"graphql-ws"}} {
		require.Empty(t, f.dial("", protocols...).expectClose(websocket.StatusPolicyViolation))
	}
}

func TestKeepAlive(t *testing.T) {
	f := serve(t, func(c *Config) { c.KeepAlive = 5 * time.Millisecond })
	c := f.connect("t1")
	for range 3 {
		c.expect(`{"type":"ka"}`)
	}
}

func TestAConnectionOfGreatAgeIsClosed(t *testing.T) {
	f := serve(t, func(c *Config) { c.MaxAge = 20 * time.Millisecond })
	require.Empty(t, f.dial("", "graphql-ws").expectClose(closedTooOld))
}

func TestPlainHTTP(t *testing.T) {
	f := serve(t, nil)
	response, err := http.Get("http" + strings.TrimPrefix(f.url, "ws"))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUpgradeRequired, response.StatusCode)

	upgrade := httptest.NewRequest(http.MethodGet, "/graphql", nil)
	require.False(t, Wanted(upgrade))
	upgrade.Header.Set("Upgrade", "WebSocket")
	require.True(t, Wanted(upgrade))
	upgrade.Method = http.MethodPost
	require.False(t, Wanted(upgrade))
}

func TestConfigMustBeComplete(t *testing.T) {
	_, err := New(Config{Hub: NewHub()})
	require.Error(t, err)
}
