package push_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/push"
)

func notification() push.Notification {
	return push.Notification{Title: "Fix <login> is yours", Body: "Ann assigned it to you", Data: map[string]string{"threadId": "TASK-7", "kind": "assignment"}, DedupeID: "task-7.assignment"}
}

func TestPayloadsAreThePlatformsOwn(t *testing.T) {
	require.JSONEq(t, `{"aps": {"alert": {"title": "Fix <login> is yours", "body": "Ann assigned it to you"}, "sound": "default"}, "threadId": "TASK-7", "kind": "assignment"}`,
		string(push.Payload(push.APNS, notification())))
	require.Equal(t, push.Payload(push.APNS, notification()), push.Payload(push.APNSSandbox, notification()))
	require.JSONEq(t, `{"fcmV1Message": {"message": {"notification": {"title": "Fix <login> is yours", "body": "Ann assigned it to you"},
		"data": {"threadId": "TASK-7", "kind": "assignment"}, "android": {"notification": {"tag": "task-7.assignment"}}}}}`, string(push.Payload(push.FCM, notification())))
	least := push.Notification{Title: "t"}
	require.JSONEq(t, `{"aps": {"alert": {"title": "t"}, "sound": "default"}}`, string(push.Payload(push.APNS, least)))
	require.JSONEq(t, `{"fcmV1Message": {"message": {"notification": {"title": "t"}}}}`, string(push.Payload(push.FCM, least)))
}

// last keeps what a carrier was given.
type last struct {
	push.Carrier
	n push.Notification
}

func (l *last) Send(_ context.Context, _ string, n push.Notification) error {
	l.n = n
	return nil
}

func TestABodyIsCutToWhatFits(t *testing.T) {
	for _, body := range []string{strings.Repeat("x", 5000), strings.Repeat("x", 1<<20), strings.Repeat("👋", 3000), strings.Repeat("\"\n", 3000), strings.Repeat("é", 5000) + "x"} {
		var got last
		n := notification()
		n.Body = body
		require.NoError(t, push.New(&got).Send(t.Context(), "any", n))
		kept, cut := strings.CutSuffix(got.n.Body, "…")
		require.True(t, cut)
		require.True(t, strings.HasPrefix(body, kept))
		require.True(t, utf8.ValidString(kept))
		apple, google := push.Payload(push.APNS, got.n), push.Payload(push.FCM, got.n)
		require.LessOrEqual(t, max(len(apple), len(google)), push.MaxPayload)
		require.Greater(t, max(len(apple), len(google)), push.MaxPayload-8, "no more is cut than must be")
		require.True(t, json.Valid(apple) && json.Valid(google))
		got.n.Body = n.Body
		require.Equal(t, n, got.n, "nothing else is cut")
	}
	var got last
	n := notification()
	n.Data = map[string]string{"x": ""}
	n.Body = strings.Repeat("x", push.MaxPayload-len(push.Payload(push.FCM, n))+len(n.Body))
	require.Len(t, push.Payload(push.FCM, n), push.MaxPayload)
	require.NoError(t, push.New(&got).Send(t.Context(), "any", n))
	require.Equal(t, n, got.n, "just as large as it may be")
}
