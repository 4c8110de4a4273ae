package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A webhook made and called with the real curl: its thread is there at once, its run succeeds, and 50 calls with one Idempotency-Key are one run.
func TestWebhookByCurl(t *testing.T) {
	t.Parallel()
	alice := sharedPlatform(t).as(t, "alice")
	agent := alice.query(t, make_, vars{"input": vars{"name": "Called by curl"}}).get("createAgent.id")
	made, err := alice.curl(t, http.MethodPost, "/api/webhooks", `{"name":"Orders","agent_id":"`+agent+`","rate_limit":1000}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, made.status, made.raw)
	w := &webhook{alice, made.get("id"), made.get("token")}
	require.Regexp(t, `^[A-Za-z0-9]{32}$`, w.token)

	const body = `{"message":"/say Order 7 is noted.","context":{"order":7}}`
	bearer := "Authorization: Bearer " + w.token
	called, err := alice.curl(t, http.MethodPost, "/webhooks/"+w.id, body, bearer)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, called.status, called.raw)
	t.Logf("202 after %s s", called.took)
	thread := called.get("thread_id")
	there := alice.query(t, `query ($id: ID!) { getThread(id: $id) { channel title agentId } }`, vars{"id": thread})
	require.JSONEq(t, `{"channel":"AUTO","title":"Orders","agentId":"`+agent+`"}`, there.get("getThread"))

	run := w.finished(t, called.get("run_id"))
	require.Equal(t, "succeeded", run.Status)
	require.Equal(t, thread, *run.ThreadID)
	require.Nil(t, run.Error)
	require.Positive(t, run.InputTokens)
	require.Positive(t, run.OutputTokens)
	require.Regexp(t, `^\d+\.\d{6}$`, *run.CostUSD)
	require.NotEqual(t, "0.000000", *run.CostUSD)
	require.LessOrEqual(t, run.CreatedAt, *run.StartedAt)
	require.LessOrEqual(t, *run.StartedAt, *run.FinishedAt)
	require.Empty(t, run.ContextSnapshot, "only its owner sees the body")
	require.Equal(t, []webhookRun{run}, w.runs(t))
	polled, err := alice.curl(t, http.MethodGet, "/webhooks/"+w.id+"/runs/"+run.ID, bearer)
	require.NoError(t, err)
	require.Equal(t, "succeeded", polled.get("status"), polled.raw)
	require.Equal(t, body, alice.asked(t, http.StatusOK, http.MethodGet, "/api/webhooks/"+w.id+"/runs/"+run.ID, "").get("context_snapshot"))
	messages := alice.messages(t, thread)
	require.Len(t, messages, 2)
	require.Equal(t, message{messages[0].ID, "user", "/say Order 7 is noted.", run.ID}, messages[0])
	require.Equal(t, message{messages[1].ID, "assistant", "Order 7 is noted.", run.ID}, messages[1])

	const calls = 50
	answers, errs := make([]restAnswer, calls), make([]error, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			answers[i], errs[i] = alice.curl(t, http.MethodPost, "/webhooks/"+w.id, body, bearer, "Idempotency-Key: order-7")
		})
	}
	all.Wait()
	statuses := map[int]int{}
	for i, a := range answers {
		require.NoError(t, errs[i])
		statuses[a.status]++
		require.Equal(t, answers[0].get("run_id"), a.get("run_id"), a.raw)
		require.Equal(t, answers[0].get("thread_id"), a.get("thread_id"), a.raw)
		require.Equal(t, strconv.FormatBool(a.status == http.StatusOK), or(a.get("deduplicated"), "false"), a.raw)
	}
	require.Equal(t, map[int]int{http.StatusAccepted: 1, http.StatusOK: calls - 1}, statuses)
	require.Equal(t, "succeeded", w.finished(t, answers[0].get("run_id")).Status)
	require.Len(t, w.runs(t), 2)
	require.Equal(t, "2", w.invocations(t))
	require.Len(t, alice.messages(t, answers[0].get("thread_id")), 2)
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// Ten calls a minute unless its owner says otherwise, however the id is spelled; the eleventh leaves nothing. An instance of the function counts its own
// calls: where functions are processes, other tests' calls may have started more of them.
func TestWebhookRateLimit(t *testing.T) {
	t.Parallel()
	w := sharedPlatform(t).as(t, "alice").webhook(t, nil)
	accepted := 10
	for i := range accepted {
		w.started(t, fmt.Sprintf(`{"message":"/say %d"}`, i))
	}
	for _, id := range []string{w.id, w.id, strings.ToUpper(w.id)} {
		a, err := w.rest(t, http.MethodPost, "/webhooks/"+id, w.token, `{"message":"/say once more"}`)
		for ; functions != "" && err == nil && a.status == http.StatusAccepted && accepted < 1000; accepted++ {
			a, err = w.rest(t, http.MethodPost, "/webhooks/"+id, w.token, `{"message":"/say once more"}`)
		}
		require.NoError(t, err)
		require.Equal(t, "429 RateLimitExceeded the webhook's limit of 10 calls a minute is reached", a.problem())
		seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
		require.NoError(t, err)
		require.Positive(t, seconds)
		require.LessOrEqual(t, seconds, 60)
	}
	runs := w.runs(t)
	require.Len(t, runs, accepted)
	require.Equal(t, strconv.Itoa(accepted), w.invocations(t))
	for _, r := range runs {
		require.Equal(t, "succeeded", w.finished(t, r.ID).Status)
	}
}
