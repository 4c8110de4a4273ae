package sns_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// A function sends to the platforms whose applications it is told, and does not start with what is none.
func TestAdapter(t *testing.T) {
	_, s := answering(t, nil)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": s.URL,
		"PUSH_APPLICATIONS": "fcm=" + applications + "GCM/app,apns=" + applications + "APNS/app"} {
		t.Setenv(name, value)
	}
	open := func() *push.Pusher {
		p, err := cloud.Ports(t.Context(), cloud.Environment, sns.Push)
		require.NoError(t, err)
		return p.Push()
	}
	endpoint, err := open().Register(t.Context(), push.FCM, "token", "")
	require.NoError(t, err)
	require.Equal(t, endpoints+"GCM/app/1", endpoint)
	require.Equal(t, applications+"GCM/app", s.asked[0].Get("PlatformApplicationArn"))
	_, err = open().Register(t.Context(), push.APNSSandbox, "aa", "")
	require.ErrorIs(t, err, push.ErrInvalid, "not served")

	t.Setenv("PUSH_APPLICATIONS", "")
	_, err = open().Register(t.Context(), push.FCM, "token", "")
	require.ErrorIs(t, err, push.ErrInvalid, "nobody is")

	for _, wrong := range []string{"fcm", "fcm=", "GCM=" + applications + "GCM/app", "fcm=" + applications + "APNS/app", "fcm=" + endpoints + "GCM/app/1", applications + "GCM/app"} {
		t.Setenv("PUSH_APPLICATIONS", wrong)
		func() {
			defer func() {
				err, _ := recover().(error)
				require.ErrorContains(t, err, "PUSH_APPLICATIONS", wrong)
			}()
			open()
		}()
	}
}
