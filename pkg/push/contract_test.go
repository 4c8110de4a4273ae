package push_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// adapter is a push.Carrier under the contract. It serves APNs and FCM, and not APNs' sandbox unless all is true.
type adapter struct {
	push.Carrier
	all     bool
	sent    func(t *testing.T, endpoint string) []string // payloads, oldest first
	data    func(t *testing.T, endpoint string) string   // the user data that is kept with it
	disable func(t *testing.T, endpoint string)          // as the push service does when the platform refuses the token
}

const apple, google = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", "dEviCe_1:APA91b-token"

func testContract(t *testing.T, a adapter) {
	p := push.New(a)
	register := func(t *testing.T, platform push.Platform, token, userData string) string {
		t.Helper()
		endpoint, err := p.Register(t.Context(), platform, token, userData)
		require.NoError(t, err)
		require.NotEmpty(t, endpoint)
		return endpoint
	}
	t.Run("a token is one endpoint", func(t *testing.T) {
		first := register(t, push.APNS, apple, "user-1")
		require.Equal(t, first, register(t, push.APNS, apple, "user-1"))
		require.Equal(t, first, register(t, push.APNS, strings.ToUpper(apple), "user-1"))
		require.Equal(t, "user-1", a.data(t, first))
		require.Equal(t, first, register(t, push.APNS, apple, "user-2 ü"), "another person's now")
		require.Equal(t, "user-2 ü", a.data(t, first))
		require.Equal(t, first, register(t, push.APNS, apple, ""))
		require.Empty(t, a.data(t, first))
		require.NotEqual(t, first, register(t, push.APNS, apple[2:], "user-1"))
		require.NotEqual(t, first, register(t, push.FCM, google, "user-1"))
	})
	t.Run("each platform gets its payload", func(t *testing.T) {
		for platform, token := range map[push.Platform]string{push.APNS: apple, push.FCM: google} {
			endpoint := register(t, platform, token, "")
			before := a.sent(t, endpoint)
			n := notification()
			n.Body = "Grüße 👋"
			require.NoError(t, p.Send(t.Context(), endpoint, n))
			require.NoError(t, p.Send(t.Context(), endpoint, push.Notification{Title: "second"}))
			require.Equal(t, append(before, string(push.Payload(platform, n)), string(push.Payload(platform, push.Notification{Title: "second"}))), a.sent(t, endpoint))
		}
	})
	t.Run("what is too long is cut", func(t *testing.T) {
		endpoint := register(t, push.FCM, google, "")
		n := notification()
		n.Body = strings.Repeat("é", push.MaxPayload)
		require.NoError(t, p.Send(t.Context(), endpoint, n))
		all := a.sent(t, endpoint)
		require.Contains(t, all[len(all)-1], `é…"`)
		require.LessOrEqual(t, len(all[len(all)-1]), push.MaxPayload)
	})
	t.Run("gone", func(t *testing.T) {
		endpoint := register(t, push.APNS, "aa01", "user-1")
		a.disable(t, endpoint)
		require.ErrorIs(t, p.Send(t.Context(), endpoint, notification()), push.ErrGone, "disabled")
		again := register(t, push.APNS, "aa01", "user-1")
		require.NoError(t, p.Send(t.Context(), again, notification()), "registered again")
		require.NoError(t, p.Unregister(t.Context(), again))
		require.ErrorIs(t, p.Send(t.Context(), again, notification()), push.ErrGone, "unregistered")
		require.NoError(t, p.Unregister(t.Context(), again), "twice")
		again = register(t, push.APNS, "aa01", "user-1")
		require.NoError(t, p.Send(t.Context(), again, notification()))
		for _, never := range []string{"", "none", "../../secrets.env", again + "x", "arn:aws:sns:us-east-1:123456789012:endpoint/GCM/other/1", "arn:aws:sns:us-east-1:123456789012:topic"} {
			require.ErrorIs(t, p.Send(t.Context(), never, notification()), push.ErrGone, never)
			require.NoError(t, p.Unregister(t.Context(), never), never)
		}
	})
	t.Run("by many at once", func(t *testing.T) {
		const callers = 8
		endpoints, errs := make([]string, callers), make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if endpoints[i], errs[i] = p.Register(t.Context(), push.FCM, fmt.Sprint("device-", i), ""); errs[i] == nil {
					errs[i] = p.Send(t.Context(), endpoints[i], push.Notification{Title: fmt.Sprint(i)})
				}
			})
		}
		wg.Wait()
		for i := range callers {
			require.NoError(t, errs[i])
			require.Equal(t, []string{string(push.Payload(push.FCM, push.Notification{Title: fmt.Sprint(i)}))}, a.sent(t, endpoints[i]))
		}
	})
	t.Run("a cancelled call", func(t *testing.T) {
		endpoint := register(t, push.FCM, google, "")
		before := a.sent(t, endpoint)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Register(ctx, push.FCM, google, "")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, p.Send(ctx, endpoint, notification()), context.Canceled)
		require.ErrorIs(t, p.Unregister(ctx, endpoint), context.Canceled)
		require.Equal(t, before, a.sent(t, endpoint))
		require.NoError(t, p.Send(t.Context(), endpoint, notification()), "still there")
	})
	t.Run("a platform that is not served", func(t *testing.T) {
		_, err := p.Register(t.Context(), push.APNSSandbox, apple, "")
		if a.all {
			require.NoError(t, err)
			return
		}
		refused(t, err, "this deployment sends no notifications to apns-sandbox")
	})
	t.Run("what is refused is not sent", func(t *testing.T) { testRefusals(t, a, p) })
}

func testRefusals(t *testing.T, a adapter, p *push.Pusher) {
	for _, d := range []struct{ platform, token, userData, says string }{
		{"", google, "", `"" is not a platform: apns, apns-sandbox or fcm`},
		{"GCM", google, "", `"GCM" is not a platform`},
		{"apns", "", "", "at most 400 hexadecimal digits"},
		{"apns", google, "", "at most 400 hexadecimal digits"},
		{"apns", strings.Repeat("a", 401), "", "at most 400 hexadecimal digits"},
		{"fcm", "", "", "at most 4096 printable ASCII characters"},
		{"fcm", "a b", "", "at most 4096 printable ASCII characters"},
		{"fcm", "a\n", "", "at most 4096 printable ASCII characters"},
		{"fcm", strings.Repeat("a", 4097), "", "at most 4096 printable ASCII characters"},
		{"fcm", google, strings.Repeat("é", 1025), "user data is at most 2048 bytes"},
		{"fcm", google, "\xff", "user data is at most 2048 bytes of UTF-8"},
	} {
		_, err := p.Register(t.Context(), push.Platform(d.platform), d.token, d.userData)
		refused(t, err, d.says)
		if d.token != "" {
			require.NotContains(t, err.Error(), d.token, "a device's token is nobody else's")
		}
	}
	endpoint, err := p.Register(t.Context(), push.FCM, google, strings.Repeat("é", 1024))
	require.NoError(t, err)
	before := a.sent(t, endpoint)
	data := func(name, value string) push.Notification {
		return push.Notification{Title: "t", Data: map[string]string{"ok": "", name: value}}
	}
	for says, all := range map[string][]push.Notification{
		"has a title":                      {{}, {Title: " ", Body: "b"}},
		"title and body are UTF-8":         {{Title: "\xff"}, {Title: "t", Body: "\xff"}},
		"id is at most 64":                 {{Title: "t", DedupeID: strings.Repeat("a", 65)}, {Title: "t", DedupeID: "a b"}, {Title: "t", DedupeID: "é"}},
		"cannot be the name":               {data("", ""), data("a b", ""), data("é", ""), data("aps", ""), data("from", ""), data("message_type", ""), data("google_x", ""), data("GCM-x", ""), data(strings.Repeat("a", 65), "")},
		"data is UTF-8: x":                 {data("x", "\xff")},
		"at most 4096 bytes beside its bo": {{Title: strings.Repeat("t", 4096)}, data("x", strings.Repeat("x", 4096))},
	} {
		for _, n := range all {
			refused(t, p.Send(t.Context(), endpoint, n), says)
		}
	}
	require.Equal(t, before, a.sent(t, endpoint))
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	require.ErrorIs(t, err, push.ErrInvalid)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
	require.ErrorContains(t, err, says)
}
