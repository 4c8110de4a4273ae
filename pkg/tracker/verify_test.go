package tracker_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/tracker"
)

const secret = "It's a Secret to Everybody"

// signature is how each tracker says who has sent a body, written here once more after its documentation.
func signature(provider, secret string, body []byte) (name, value string) {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	mac := hex.EncodeToString(h.Sum(nil))
	switch provider {
	case "linear":
		return "Linear-Signature", mac
	case "jira":
		return "X-Hub-Signature", "sha256=" + mac
	}
	return "X-Hook-Signature", mac
}

// sent is a body that was sent at that time.
func sent(provider string, at time.Time) []byte {
	switch provider {
	case "linear":
		return fmt.Appendf(nil, `{"type":"Issue","webhookTimestamp":%d}`, at.UnixMilli())
	case "jira":
		return fmt.Appendf(nil, `{"webhookEvent":"x","timestamp":%d}`, at.UnixMilli())
	}
	return fmt.Appendf(nil, `{"events":[{"created_at":"2001-01-01T00:00:00Z"},{"created_at":%q}]}`, at.UTC().Format(time.RFC3339Nano))
}

func inbound(now time.Time, body []byte, headers ...string) tracker.Inbound {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return tracker.Inbound{Header: h.Get, Body: body, Now: now}
}

func TestVerify(t *testing.T) {
	now := time.Now()
	for _, provider := range tracker.Names() {
		p := of(t, provider)
		body := sent(provider, now)
		name, value := signature(provider, secret, body)
		require.NoError(t, p.Verify(inbound(now, body, name, value), secret), provider)
		require.NoError(t, p.Verify(inbound(now, body, name, strings.Replace(strings.ToUpper(value), "SHA256=", "sha256=", 1)), secret), provider)

		_, other := signature(provider, "another secret", body)
		_, empty := signature(provider, "", body)
		for what, wrong := range map[string]string{"missing": "", "another secret": other, "no secret": empty, "cut": value[:len(value)-2], "longer": value + "00", "no digits": strings.Repeat("zz", 32),
			"of another byte": flip(value)} {
			require.ErrorIs(t, p.Verify(inbound(now, body, name, wrong), secret), tracker.ErrUnverified, "%s: %s", provider, what)
		}
		for i := range body { // each byte counts
			tampered := append([]byte{}, body...)
			tampered[i] ^= 1
			require.ErrorIs(t, p.Verify(inbound(now, tampered, name, value), secret), tracker.ErrUnverified)
		}
		require.ErrorIs(t, p.Verify(inbound(now, append(body, ' '), name, value), secret), tracker.ErrUnverified)
	}
	// As Jira's documentation has it.
	body := []byte("Hello World!")
	name, value := signature("jira", secret, body)
	require.Equal(t, "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9", value)
	require.ErrorIs(t, of(t, "jira").Verify(inbound(now, body, name, value), secret), tracker.ErrUnverified, "signed, but it does not say when")
	require.ErrorIs(t, of(t, "jira").Verify(inbound(now, sent("jira", now), name, strings.TrimPrefix(value, "sha256=")), secret), tracker.ErrUnverified)
}

func flip(value string) string {
	last := "0"
	if strings.HasSuffix(value, "0") {
		last = "1"
	}
	return value[:len(value)-1] + last
}

func TestVerifyRefusesWhatIsOld(t *testing.T) {
	now := time.Now()
	for provider, age := range map[string]time.Duration{"linear": 7*time.Hour + 30*time.Minute, "jira": 24 * time.Hour, "asana": 25 * time.Hour} {
		for at, good := range map[time.Duration]bool{
			time.Minute - age: true, -age - time.Minute: false, 4 * time.Minute: true, 6 * time.Minute: false, -30 * 24 * time.Hour: false, 1000 * time.Hour: false,
		} {
			body := sent(provider, now.Add(at))
			name, value := signature(provider, secret, body)
			err := of(t, provider).Verify(inbound(now, body, name, value), secret)
			if good {
				require.NoError(t, err, "%s %s", provider, at)
			} else {
				require.ErrorIs(t, err, tracker.ErrUnverified, "%s %s", provider, at)
			}
		}
	}
	body := []byte(`{"type":"Issue"}`)
	name, value := signature("linear", secret, body)
	in := inbound(now, body, name, value, "Linear-Timestamp", fmt.Sprint(now.UnixMilli()))
	require.ErrorIs(t, of(t, "linear").Verify(in, secret), tracker.ErrUnverified, "a time that is not signed does not count")
	body = fixtures(t, "asana")["heartbeat"]
	name, value = signature("asana", secret, body)
	require.NoError(t, of(t, "asana").Verify(inbound(now, body, name, value), secret), "a heartbeat has no time, and does nothing")
}

// The captured deliveries verify when they come, once they are signed.
func TestVerifyFixtures(t *testing.T) {
	for _, provider := range tracker.Names() {
		for name, body := range fixtures(t, provider) {
			var said struct {
				WebhookTimestamp, Timestamp int64
				Events                      []struct {
					At time.Time `json:"created_at"`
				}
			}
			require.NoError(t, json.Unmarshal(body, &said))
			then := time.UnixMilli(max(said.WebhookTimestamp, said.Timestamp))
			for _, e := range said.Events {
				then = e.At
			}
			header, value := signature(provider, secret, body)
			require.NoError(t, of(t, provider).Verify(inbound(then.Add(time.Minute), body, header, value), secret), "%s %s", provider, name)
		}
	}
}

func TestHandshake(t *testing.T) {
	const named = "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"
	for _, body := range []string{"", "{}"} {
		h, is := of(t, "asana").Handshake(inbound(time.Now(), []byte(body), "X-Hook-Secret", named))
		require.True(t, is)
		require.Equal(t, tracker.Handshake{Secret: named, Answer: http.Header{"X-Hook-Secret": {named}}}, h)
	}
	for _, headers := range [][]string{{}, {"X-Hook-Secret", "short"}, {"X-Hook-Secret", strings.Repeat("x", 300)}, {"X-Hook-Secret", "with a space in it"},
		{"X-Hook-Secret", named, "X-Hook-Signature", named}} {
		_, is := of(t, "asana").Handshake(inbound(time.Now(), nil, headers...))
		require.False(t, is, headers)
	}
	for _, other := range []string{"linear", "jira"} {
		_, is := of(t, other).Handshake(inbound(time.Now(), nil, "X-Hook-Secret", named))
		require.False(t, is)
	}
}

func TestDeliveryID(t *testing.T) {
	require.Equal(t, "234d1a4e", of(t, "linear").DeliveryID(inbound(time.Now(), nil, "Linear-Delivery", "234d1a4e")))
	require.Equal(t, "7", of(t, "jira").DeliveryID(inbound(time.Now(), nil, "x-atlassian-webhook-identifier", "7")))
	require.Empty(t, of(t, "asana").DeliveryID(inbound(time.Now(), nil, "Linear-Delivery", "234d1a4e")))
	for _, wrong := range []string{"", "a b", "é", strings.Repeat("a", 201)} {
		require.Empty(t, of(t, "linear").DeliveryID(inbound(time.Now(), nil, "Linear-Delivery", wrong)))
	}
	_, is := tracker.Of("trello")
	require.False(t, is)
}
