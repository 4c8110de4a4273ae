package task_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/task"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// log is what is in the log of deliveries, oldest first.
func (w *world) log() []string {
	w.t.Helper()
	return column[string](w, `select concat_ws(' ', outcome, event) from deliveries where tenant_id = $1 order by received_at`, w.TenantID)
}

func refused(t *testing.T, err error, typ fault.Type, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, typ, fault.From(err).Type, "%v", err)
	require.Contains(t, fault.From(err).Message, text)
}

// The same delivery 50 times at once, at two processes, and once more later: it is taken in once.
func TestDuplicates(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	raw := encode(t, fixture(t, "issue-assigned"))
	id, signed := ident.New(), mac(signing, raw)
	other, _ := w.process()
	var mu sync.Mutex
	outcomes := map[integration.Outcome]int{}
	var orders []task.Order
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			by := w.receiver
			if i%2 == 0 {
				by = other
			}
			<-begin
			got, err := w.send(by, "linear", w.hook.Token, raw, "Linear-Signature", signed, "Linear-Delivery", id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				outcomes["refused"]++
				return
			}
			outcomes[got.Outcome]++
			if got.Order.EventID != "" {
				orders = append(orders, got.Order)
			}
		})
	}
	close(begin)
	all.Wait()
	require.Equal(t, map[integration.Outcome]int{integration.OK: 1, integration.Duplicate: 49}, outcomes)
	require.Len(t, orders, 1)
	require.NoError(t, w.processor.Process(t.Context(), orders[0]))

	for name, headers := range map[string][]string{"later": {"Linear-Delivery", id}, "under another id, which is not signed": {"Linear-Delivery", ident.New()}, "under none": {}} {
		got, err := w.send(w.receiver, "linear", w.hook.Token, raw, append(headers, "Linear-Signature", signed)...)
		require.NoError(t, err, name)
		require.Equal(t, task.Received{Outcome: integration.Duplicate}, got, name)
	}
	changed := encode(t, fixture(t, "issue-assigned", fields{"priority": 7})) // the same id with another body
	got, err := w.send(w.receiver, "linear", w.hook.Token, changed, "Linear-Signature", mac(signing, changed), "Linear-Delivery", id)
	require.NoError(t, err)
	require.Equal(t, integration.Duplicate, got.Outcome)
	require.Len(t, w.messages(), 1)
	require.Len(t, w.pushes(), 1)
	require.Equal(t, 53, query[int](w, `select count(*) from deliveries where outcome = 'duplicate' and body is null`))
	require.Equal(t, 1, query[int](w, `select invocation_count from webhooks`))
}

// Nothing but what is signed with the webhook's secret is taken, whatever is sent.
func TestUnverified(t *testing.T) {
	w := newWorld(t)
	n := w.neighbour()
	good := fixture(t, "issue-assigned")
	raw := encode(t, good)
	stale := fixture(t, "issue-assigned")
	stale["webhookTimestamp"] = time.Now().Add(-8 * time.Hour).UnixMilli()
	ahead := fixture(t, "issue-assigned")
	ahead["webhookTimestamp"] = time.Now().Add(time.Hour).UnixMilli()
	tampered := encode(t, fixture(t, "issue-assigned", fields{"title": "Rotate no key"}))
	for name, c := range map[string]struct {
		body      []byte
		signature string
	}{
		"unsigned": {raw, ""}, "wrong secret": {raw, mac("wrong", raw)}, "no secret": {raw, mac("", raw)}, "another tenant's": {raw, mac("the neighbour's s3cret", raw)},
		"tampered": {tampered, mac(signing, raw)}, "stale": {encode(t, stale), mac(signing, encode(t, stale))}, "ahead": {encode(t, ahead), mac(signing, encode(t, ahead))},
		"no digits": {raw, "xyz"}, "nothing": {nil, ""},
	} {
		_, err := w.send(w.receiver, "linear", w.hook.Token, c.body, "Linear-Signature", c.signature, "Linear-Delivery", ident.New())
		refused(t, err, fault.Unauthorized, "the delivery is not signed with the webhook's secret")
		require.Equal(t, "the delivery is not signed with the webhook's secret", err.Error(), name)
	}
	require.Equal(t, slices.Repeat([]string{"unverified"}, 9), w.log())
	require.Zero(t, query[int](w, `select count(*) from deliveries where body is not null`))

	for name, c := range map[string]struct{ provider, token string }{
		"no token": {"linear", ""}, "another token": {"linear", strings.Repeat("x", 32)}, "masked": {"linear", w.hook.Token[:31]}, "another provider": {"jira", w.hook.Token},
		"the webhook's id": {"linear", w.hook.ID}, "no provider": {"trello", w.hook.Token},
	} {
		_, err := w.send(w.receiver, c.provider, c.token, raw, "Linear-Signature", mac(signing, raw))
		require.Equal(t, webhook.ErrTaskToken, err, name)
	}
	// Signed as this tenant's, with another one's token: it is the other one's secret that counts.
	_, err := w.send(w.receiver, "linear", n.hook.Token, raw, "Linear-Signature", mac(signing, raw))
	refused(t, err, fault.Unauthorized, "not signed")
	require.Len(t, w.log(), 9, "a token that is nobody's is in nobody's log")
	require.Equal(t, []string{"unverified"}, n.log())
	require.Zero(t, query[int](w, `select count(*) from task_events`)+query[int](w, `select count(*) from delivery_keys`))
	require.Zero(t, query[int](w, `select sum(invocation_count) from webhooks`))
	require.Equal(t, integration.OK, w.deliver(good).Outcome, "and what is refused takes no delivery's place")
}

// Strangers do not fill the log.
func TestRefusalsInTheLogAreFew(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		_, err := w.send(w.receiver, "linear", w.hook.Token, []byte("{}"))
		refused(t, err, fault.Unauthorized, "not signed")
	}
	require.Len(t, w.log(), 60)
}

// Without a secret, what comes is taken as it comes, and marked.
func TestUnsigned(t *testing.T) {
	w := newWorld(t)
	w.exec(`update webhooks set secret_version = -1`)
	raw := encode(t, fixture(t, "issue-assigned"))
	got, err := w.send(w.receiver, "linear", w.hook.Token, raw, "Linear-Signature", "anything")
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Equal(t, []string{"false false"}, column[string](w, `select concat_ws(' ', m.metadata::jsonb #>> '{event,verified}', t.metadata #>> '{external,verified}') from messages m join threads t on t.uuid = m.thread_uuid`))
	got, err = w.send(w.receiver, "linear", w.hook.Token, raw)
	require.NoError(t, err)
	require.Equal(t, integration.Duplicate, got.Outcome)
}

func TestAnotherSecret(t *testing.T) {
	w := newWorld(t)
	secrets := webhook.NewSecrets(w.db.App, w.secrets)
	w.deliver(fixture(t, "issue-assigned"))
	for i, key := range []string{"the second", "", "the third"} {
		w.settle(secrets, key)
		body := encode(t, fixture(t, "issue-due-set", fields{"priority": i}))
		_, err := w.send(w.receiver, "linear", w.hook.Token, body, "Linear-Signature", mac(signing, body))
		if key == "" {
			require.NoError(t, err)
			continue
		}
		refused(t, err, fault.Unauthorized, "not signed")
		body = encode(t, fixture(t, "issue-due-set", fields{"priority": i, "x": 1}))
		_, err = w.send(w.receiver, "linear", w.hook.Token, body, "Linear-Signature", mac(key, body))
		require.NoError(t, err, "no version is another secret than it was: the receiver remembers the first")
	}
	require.Equal(t, 3, query[int](w, `select secret_version from webhooks`))
}

func TestWhatCannotBeTaken(t *testing.T) {
	w := newWorld(t)
	w.exec(`update webhooks set secret_version = 0`)
	for _, body := range []string{"", "x", "[]", `{"type":1}`, "{\"type\":\"\xff\"}"} {
		_, err := w.send(w.receiver, "linear", w.hook.Token, []byte(body))
		refused(t, err, fault.ValidationError, "the body is not what the provider sends")
	}
	tooLarge := fault.Invalid("the body is larger than 1 bytes").WithStatus(http.StatusRequestEntityTooLarge)
	_, err := w.receiver.Receive(t.Context(), task.Call{Provider: "linear", Token: w.hook.Token, Header: http.Header{}.Get, Body: func() ([]byte, error) { return nil, tooLarge }})
	require.ErrorIs(t, err, tooLarge)
	w.exec(`update webhooks set enabled = false`)
	read := false
	_, err = w.receiver.Receive(t.Context(), task.Call{Provider: "linear", Token: w.hook.Token, Header: http.Header{}.Get, Body: func() ([]byte, error) { read = true; return nil, errors.New("read") }})
	refused(t, err, fault.Forbidden, "the webhook is disabled")
	require.False(t, read, "nobody reads it")
	require.Equal(t, append(slices.Repeat([]string{"invalid"}, 6), "error"), w.log())
}

func TestRateLimit(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, 600, query[int](w, `select rate_limit from webhooks`), "a tracker sends more than a caller")
	w.exec(`update webhooks set rate_limit = 2`)
	for i := range 2 {
		w.deliver(fixture(t, "issue-assigned", fields{"priority": i}))
	}
	body := encode(t, fixture(t, "issue-assigned", fields{"priority": 3}))
	got, err := w.send(w.receiver, "linear", w.hook.Token, body, "Linear-Signature", mac(signing, body))
	refused(t, err, fault.RateLimitExceeded, "the webhook's limit of 2 calls a minute is reached")
	require.Positive(t, got.Wait)
	require.LessOrEqual(t, got.Wait, time.Minute)
	require.Equal(t, []string{"ok Issue.update", "ok Issue.update", "rate_limited"}, w.log())
	require.Equal(t, 2, query[int](w, `select count(*) from task_events`))
}

// Who has the address and not the secret keeps the tracker out of nothing.
func TestTheRateLimitOfStrangers(t *testing.T) {
	w := newWorld(t)
	w.exec(`update webhooks set rate_limit = 2`)
	raw := encode(t, fixture(t, "issue-assigned"))
	for range 2 {
		_, err := w.send(w.receiver, "linear", w.hook.Token, raw)
		refused(t, err, fault.Unauthorized, "not signed")
	}
	got, err := w.send(w.receiver, "linear", w.hook.Token, raw)
	refused(t, err, fault.RateLimitExceeded, "the webhook's limit of 2 calls a minute is reached")
	require.Positive(t, got.Wait)
	w.deliver(fixture(t, "issue-assigned"))
	w.hook = w.create("asana", "")
	w.exec(`update webhooks set rate_limit = 2`)
	for range 2 {
		_, err := w.send(w.receiver, "asana", w.hook.Token, nil, "X-Hook-Secret", named)
		require.NoError(t, err)
	}
	_, err = w.send(w.receiver, "asana", w.hook.Token, nil, "X-Hook-Secret", named)
	refused(t, err, fault.RateLimitExceeded, "the webhook's limit") // a handshake is not signed either
}

// What a stranger has sent is not kept.
func TestAnUnverifiedBodyIsNotInTheLog(t *testing.T) {
	w := newWorld(t)
	raw := encode(t, fixture(t, "issue-assigned"))
	_, err := w.send(w.receiver, "linear", w.hook.Token, raw)
	refused(t, err, fault.Unauthorized, "not signed")
	w.exec(`update webhooks set secret_version = -1`)
	got, err := w.send(w.receiver, "linear", w.hook.Token, raw)
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Len(t, w.messages(), 1)
	require.Zero(t, query[int](w, `select count(*) from deliveries where body is not null`)+query[int](w, `select count(*) from task_events where body is not null`))
	_, err = integration.Replay(t.Context(), w.db.App, got.Order.EventID)
	refused(t, err, fault.ValidationError, "the body of the delivery was not kept")
}

// What is about no task is in the log, and that is all.
func TestNothingToDo(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		require.Equal(t, task.Received{Outcome: integration.OK}, w.deliver(fixture(t, "issuelabel-create-2023")))
	}
	require.Equal(t, []string{"ok IssueLabel.create", "ok IssueLabel.create"}, w.log())
	require.Zero(t, query[int](w, `select count(*) from task_events`)+query[int](w, `select count(*) from delivery_keys`))
}

// The body of a delivery is in the log as far as it may be; no secret and no token ever is.
func TestWhatTheLogHas(t *testing.T) {
	w := newWorld(t)
	w.deliver(fixture(t, "issue-assigned"))
	w.deliver(fixture(t, "issue-assigned", fields{"description": strings.Repeat("x", 9000)}))
	require.Equal(t, []bool{true, false}, column[bool](w, `select body is not null from deliveries order by received_at`))
	for _, table := range []string{"deliveries", "task_events", "webhooks", "delivery_keys"} {
		rows := query[string](w, fmt.Sprintf(`select coalesce(string_agg(t::text, ' '), '') from %s t`, table))
		require.NotEmpty(t, rows)
		require.NotContains(t, rows, signing)
		require.NotContains(t, rows, w.hook.Token)
	}
}
