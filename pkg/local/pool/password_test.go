package pool_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/pool"
)

func TestTooManyWrongPasswords(t *testing.T) {
	l := start(t, nil)
	frozen := time.Now()
	l.config.Clock = func() time.Time { return frozen.Add(time.Duration(l.shift.Load())) }
	require.NoError(t, l.Close())
	l.open(t)
	message := func(username, password string) string {
		_, err := l.signIn(t.Context(), username, password)
		var refused *types.NotAuthorizedException
		if err == nil {
			return ""
		}
		require.ErrorAs(t, err, &refused)
		return *refused.Message
	}
	const wrong, wait = "Incorrect username or password.", "Password attempts exceeded"
	for _, username := range []string{"alice@acme.test", "nobody@acme.test"} { // who exists and who does not look the same
		for range 5 {
			require.Equal(t, wrong, message(username, "x"))
		}
		require.Equal(t, wait, message(username, "x"))
	}
	require.Equal(t, wait, message(" ALICE@acme.test", password), "another spelling is the same user")
	require.Empty(t, message("stray@nowhere.test", password), "nobody else waits")

	l.advance(time.Second)
	require.Equal(t, wrong, message("alice@acme.test", "x"))
	l.advance(time.Second)
	require.Equal(t, wait, message("alice@acme.test", password), "the second wait is two seconds")
	l.advance(time.Second)
	require.Empty(t, message("alice@acme.test", password))
	require.Equal(t, wrong, message("alice@acme.test", "x"), "a sign-in starts the count anew")
	for range 12 {
		message("alice@acme.test", "x")
		l.advance(30 * time.Second)
	}
	require.Empty(t, message("alice@acme.test", password), "no wait is longer than 30 seconds")
}

func TestWaitsCanBeTurnedOff(t *testing.T) {
	l := start(t, func(c *pool.Config) { c.MaxFailures = -1 })
	for range 8 {
		_, err := l.signIn(t.Context(), "alice@acme.test", "x")
		require.ErrorContains(t, err, "Incorrect username or password.")
	}
}

func BenchmarkSignIn(b *testing.B) {
	l := start(b, nil)
	for b.Loop() {
		if _, err := l.signIn(b.Context(), "alice@acme.test", password); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a start on a directory that is there already, with two users.
func BenchmarkStart(b *testing.B) {
	l := start(b, nil)
	for b.Loop() {
		l.Close()
		l.open(b)
	}
}
