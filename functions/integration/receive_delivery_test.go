package integration_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// front is where providers deliver.
type front struct {
	desk
	api         *handlertest.REST
	integration integration.Integration
}

func newFront(t testing.TB, operators ...string) *front {
	t.Helper()
	p := handlertest.New(t, operators...)
	api := p.REST(t, map[string]handler.Constructor{"receive-delivery": functions.ReceiveDelivery})
	d := desk{p.DB.World(t, "acme"), t, p}
	return &front{d, api, d.made(d.generic("Orders"))}
}

// said is what a delivery is answered.
type said struct {
	Outcome    string  `json:"outcome"`
	DeliveryID string  `json:"delivery_id"`
	ThreadID   *string `json:"thread_id"`
}

func (f *front) deliver(to, secret, id string, body any) handlertest.Answer {
	f.t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		raw, _ = json.Marshal(body)
	}
	seconds := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(raw)
	return f.api.Do(f.t, handlertest.RESTCall{Method: http.MethodPost, Path: "/integrations/" + to + "/webhook", Body: raw,
		Header: map[string]string{"X-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)), "X-Signature-Timestamp": seconds, "X-Delivery-Id": id}})
}

func order(n int, message string) args {
	return args{"conversation": "order-" + strconv.Itoa(n), "message": message, "id": message, "sender": args{"id": "c4"}}
}

func TestADelivery(t *testing.T) {
	f := newFront(t)
	var got said
	answer := f.deliver(f.integration.ID, signing, "1", order(17, "Where is it?"))
	require.Equal(t, http.StatusOK, answer.Status)
	answer.Into(t, &got)
	require.Equal(t, "ok", got.Outcome)
	require.Equal(t, "AUTO-1", *got.ThreadID)
	require.Equal(t, []string{"dispatch-turn"}, f.p.Invoked())
	require.Empty(t, f.p.Published(), "nobody follows a new thread")

	answer = f.deliver(strings.ToUpper(f.integration.ID), signing, "1", order(17, "Where is it?"))
	answer.Into(t, &got)
	require.Equal(t, "duplicate", got.Outcome)
	require.Len(t, f.p.Invoked(), 1)

	f.deliver(f.integration.ID, signing, "2", order(17, "Hello?")).Into(t, &got)
	require.Equal(t, "AUTO-1", *got.ThreadID)
	require.Len(t, f.p.Published(), 1)
	require.Len(t, f.p.Invoked(), 2)
}

func TestADeliveryThatIsRefused(t *testing.T) {
	f := newFront(t)
	for name, c := range map[string]struct {
		to, secret string
		body       any
		status     int
	}{
		"unknown":     {ident.New(), signing, order(1, "a"), http.StatusUnauthorized},
		"no id":       {"no-id", signing, order(1, "a"), http.StatusUnauthorized},
		"unsigned":    {f.integration.ID, "wrong", order(1, "a"), http.StatusUnauthorized},
		"not JSON":    {f.integration.ID, signing, []byte(`{`), http.StatusBadRequest},
		"no message":  {f.integration.ID, signing, args{"conversation": "a"}, http.StatusBadRequest},
		"large":       {f.integration.ID, signing, []byte(`{"message":"` + strings.Repeat("x", handler.MaxBody) + `"}`), http.StatusRequestEntityTooLarge},
		"large, lost": {ident.New(), signing, []byte(`{"message":"` + strings.Repeat("x", handler.MaxBody) + `"}`), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			answer := f.deliver(c.to, c.secret, "1", c.body)
			require.Equal(t, c.status, answer.Status, "%s", answer.Body)
			if c.status == http.StatusUnauthorized {
				require.Contains(t, string(answer.Body), integration.ErrSignature.Message)
			}
		})
	}
	require.Empty(t, f.p.Invoked())

	_, err := f.update(tenant.Owner, f.integration.ID, args{"enabled": false})
	require.Nil(t, err)
	answer := f.deliver(f.integration.ID, signing, "1", order(1, "a"))
	require.Equal(t, http.StatusOK, answer.Status, "a provider that is refused for hours never delivers again")
	var got said
	answer.Into(t, &got)
	require.Equal(t, "error", got.Outcome)
	require.Equal(t, http.StatusUnauthorized, f.deliver(f.integration.ID, "wrong", "1", order(1, "a")).Status)
	require.Empty(t, f.p.Invoked())
	_, err = f.update(tenant.Owner, f.integration.ID, args{"enabled": true, "rateLimit": 3})
	require.Nil(t, err)
	require.Equal(t, http.StatusOK, f.deliver(f.integration.ID, signing, "1", order(1, "a")).Status)
	answer = f.deliver(f.integration.ID, signing, "2", order(1, "b"))
	require.Equal(t, http.StatusTooManyRequests, answer.Status)
	seconds, wrong := strconv.Atoi(answer.Header.Get("Retry-After"))
	require.NoError(t, wrong)
	require.Positive(t, seconds)
}

// The provider is not told to send again what would be refused again; the conversation is told.
func TestADeliveryThatTheAgentRefuses(t *testing.T) {
	f := newFront(t)
	_, wrong := f.p.DB.Superuser(t).Exec(t.Context(), `update agents set status = 'suspended'`)
	require.NoError(t, wrong)
	var got said
	answer := f.deliver(f.integration.ID, signing, "1", order(1, "a"))
	require.Equal(t, http.StatusOK, answer.Status)
	answer.Into(t, &got)
	require.Equal(t, "error", got.Outcome)
	require.Equal(t, []string{"deliver-replies"}, f.p.Invoked())
}

func TestReplayDelivery(t *testing.T) {
	f := newFront(t, "root@platform.test")
	var got said
	f.deliver(f.integration.ID, signing, "1", order(17, "Where is it?")).Into(t, &got)
	replay := func(by tenant.Claims, id string) (integration.Delivery, *fault.Error) {
		return handlertest.Call[integration.Delivery](t, f.p, "replay-delivery", functions.ReplayDelivery, by, args{"id": id})
	}
	_, err := replay(f.as(tenant.Owner), got.DeliveryID)
	require.Equal(t, fault.Forbidden, err.Type)
	operator := tenant.Claims{"sub": ident.New(), "email": "root@platform.test", "email_verified": true}
	again, err := replay(operator, got.DeliveryID)
	require.Nil(t, err)
	require.Equal(t, []string{got.DeliveryID, "AUTO-1"}, []string{*again.ReplayOf, *again.ThreadID})
	require.Equal(t, []string{"dispatch-turn", "dispatch-turn"}, f.p.Invoked())
	_, err = replay(operator, ident.New())
	require.Equal(t, fault.Missing("delivery"), err)
}
