package task_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/task"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

const named = "b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81"

func asanaEvent(field string) fields {
	return fields{"events": []fields{{"user": fields{"gid": "7"}, "created_at": time.Now().UTC().Format(time.RFC3339Nano), "action": "changed",
		"resource": fields{"gid": "1", "resource_type": "task"}, "change": fields{"field": field}}}}
}

// Asana names its secret when its webhook is made; from then on nothing else is taken, and nobody names another one.
func TestHandshake(t *testing.T) {
	w := newWorld(t)
	w.hook = w.create("asana", "")
	raw := encode(t, asanaEvent("name"))
	_, err := w.send(w.receiver, "asana", w.hook.Token, raw)
	require.NoError(t, err, "there is no secret yet")

	_, err = w.send(w.receiver, "asana", strings.Repeat("x", 32), nil, "X-Hook-Secret", named)
	require.Equal(t, webhook.ErrTaskToken, err)
	for range 2 { // the same one again, as of an attempt that failed
		got, err := w.send(w.receiver, "asana", w.hook.Token, nil, "X-Hook-Secret", named)
		require.NoError(t, err)
		require.Equal(t, task.Received{Outcome: integration.OK, Answer: http.Header{"X-Hook-Secret": {named}}}, got)
	}
	require.Equal(t, 1, query[int](w, `select secret_version from webhooks where id = $1`, w.hook.ID))
	raw = encode(t, asanaEvent("tags"))
	for _, signature := range []string{"", mac("another secret of a stranger", raw)} {
		_, err = w.send(w.receiver, "asana", w.hook.Token, raw, "X-Hook-Signature", signature)
		refused(t, err, fault.Unauthorized, "not signed")
	}
	got, err := w.send(w.receiver, "asana", w.hook.Token, raw, "X-Hook-Signature", mac(named, raw))
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	heartbeat := []byte(`{"events":[]}`)
	for range 2 {
		got, err = w.send(w.receiver, "asana", w.hook.Token, heartbeat, "X-Hook-Signature", mac(named, heartbeat))
		require.NoError(t, err)
		require.Equal(t, task.Received{Outcome: integration.OK}, got)
	}

	_, err = w.send(w.receiver, "asana", w.hook.Token, []byte("{}"), "X-Hook-Secret", "another secret of a stranger"[:20])
	refused(t, err, fault.Unauthorized, "not signed") // with a space in it, it is none
	_, err = w.send(w.receiver, "asana", w.hook.Token, nil, "X-Hook-Secret", strings.Repeat("a", 64))
	refused(t, err, fault.Unauthorized, "the webhook has another secret: take it away first")
	require.Equal(t, 1, query[int](w, `select secret_version from webhooks where id = $1`, w.hook.ID))
	require.NotContains(t, query[string](w, `select string_agg(d::text, ' ') || (select string_agg(w::text, ' ') from webhooks w) from deliveries d`), named)
	require.Equal(t, []string{"ok task.changed", "ok handshake", "ok handshake", "unverified", "unverified", "ok task.changed", "ok heartbeat", "ok heartbeat", "unverified", "unverified handshake"}, w.log())

	w.settle(webhook.NewSecrets(w.db.App, w.secrets), "") // its owner takes it away
	_, err = w.send(w.receiver, "asana", w.hook.Token, nil, "X-Hook-Secret", strings.Repeat("a", 64))
	require.NoError(t, err)
	raw = encode(t, asanaEvent("notes"))
	_, err = w.send(w.receiver, "asana", w.hook.Token, raw, "X-Hook-Signature", mac(named, raw))
	refused(t, err, fault.Unauthorized, "not signed")
	_, err = w.send(w.receiver, "asana", w.hook.Token, raw, "X-Hook-Signature", mac(strings.Repeat("a", 64), raw))
	require.NoError(t, err)
}

// Of many handshakes at once with different secrets one is kept, and that one verifies.
func TestHandshakesAtOnce(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", "")
	other, _ := w.process()
	begin := make(chan struct{})
	var all sync.WaitGroup
	answers := make([]error, 20)
	secretOf := func(i int) string { return fmt.Sprintf("%064d", i) }
	for i := range answers {
		all.Go(func() {
			by := w.receiver
			if i%2 == 0 {
				by = other
			}
			<-begin
			_, answers[i] = w.send(by, "asana", hook.Token, nil, "X-Hook-Secret", secretOf(i))
		})
	}
	close(begin)
	all.Wait()
	kept := -1
	for i, err := range answers {
		if err == nil {
			require.Negative(t, kept, "one")
			kept = i
		}
	}
	require.GreaterOrEqual(t, kept, 0)
	raw := encode(t, asanaEvent("name"))
	_, err := w.send(other, "asana", hook.Token, raw, "X-Hook-Signature", mac(secretOf(kept), raw))
	require.NoError(t, err)
}
