package webhook_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestRateLimit(t *testing.T) {
	s := newSite(t)
	w, other := s.hook(), s.hook()
	for range 10 {
		s.accepted(w, hello)
	}
	before := s.rows()
	for _, id := range []string{w.ID, strings.ToUpper(w.ID)} { // it is the same webhook, however it is spelled
		answer := s.call(id, w.Token, hello)
		require.Equal(t, "the webhook's limit of 10 calls a minute is reached", refused(t, 429, "RateLimitExceeded", answer).Detail)
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		require.NoError(t, err)
		require.True(t, seconds >= 1 && seconds <= 60, seconds)
	}
	require.Equal(t, before, s.rows())
	require.Len(t, s.p.Invoked(), 10)
	require.EqualValues(t, 10, s.get(w.ID).InvocationCount)
	s.accepted(other, hello)

	// Calls at once cannot pass it together.
	crowded := s.hook(fields{"name": "crowded"})
	require.Equal(t, map[int]int{202: 10, 429: 40}, s.crowd(50, crowded))
	require.Len(t, s.runs(crowded.ID), 10)

	// Its owner may raise it at once, and another instance knows nothing of these calls.
	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"rate_limit":11}`).Status)
	s.accepted(w, hello)
	refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, hello))
	s.rest = s.p.REST(t, table)
	s.accepted(w, hello)
}

// crowd makes calls at once: how many were answered with each status.
func (s *site) crowd(n int, w webhook.Webhook) map[int]int {
	s.t.Helper()
	statuses := map[int]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			status := s.call(w.ID, w.Token, hello).Status
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wait.Wait()
	return statuses
}

func TestCallsAtOnceAreAllCounted(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 1000})
	require.Equal(t, map[int]int{202: 60}, s.crowd(60, w))
	require.EqualValues(t, 60, s.get(w.ID).InvocationCount)
	require.Len(t, s.runs(w.ID), 60)
	require.Len(t, s.p.Invoked(), 60)
	require.Equal(t, []int64{60}, column[int64](s, `select max(number) from threads`))
	require.Equal(t, []bool{true}, column[bool](s, `select w.last_invoked_at >= max(r.queued_at) from webhooks w join thread_turns r on r.webhook_id = w.id group by w.last_invoked_at`))
}

func TestTheAgentsOwnLimit(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 1000})
	s.change(`update agents set turns_per_minute = 2 where id = $1`, s.AgentID)
	s.accepted(w, hello)
	run := s.accepted(w, hello, "Idempotency-Key", "second")
	before := s.rows()
	for range 3 {
		require.Equal(t, "the agent's limit of 2 turns per minute is reached", refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, hello)).Detail)
	}
	refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, hello, "Idempotency-Key", "third"))
	again := read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, hello, "Idempotency-Key", "second"))
	require.Equal(t, run.RunID, again.RunID)
	refused(t, 429, "RateLimitExceeded", s.ask("POST", "/api/webhooks/"+w.ID+"/test", nil))
	require.Equal(t, before, s.rows())
	require.Len(t, s.p.Invoked(), 2)
	require.EqualValues(t, 2, s.get(w.ID).InvocationCount)
	s.change(`update agents set turns_per_minute = 3 where id = $1`, s.AgentID)
	require.Equal(t, map[int]int{202: 1, 429: 19}, s.crowd(20, s.hook(fields{"rate_limit": 1000})), "no more together than one by one")
	s.change(`update agents set turns_per_minute = 4 where id = $1`, s.AgentID)
	s.accepted(w, hello, "Idempotency-Key", "third") // the refused call did not use it up
}

// The agent's budget, its space's or its tenant's: a call that it does not cover leaves nothing, and calls at once cannot pass it together.
func TestTheAgentsBudget(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 1000})
	s.change(`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'space', $2, 1000000)`, s.TenantID, s.SpaceID) // two turns
	s.accepted(w, hello)
	run := s.accepted(w, hello, "Idempotency-Key", "second")
	before := s.rows()
	require.Equal(t, "the space's monthly budget of 1.00 USD does not cover another turn", refused(t, 429, "BudgetExceeded", s.call(w.ID, w.Token, hello)).Detail)
	refused(t, 429, "BudgetExceeded", s.call(w.ID, w.Token, hello, "Idempotency-Key", "third"))
	refused(t, 429, "BudgetExceeded", s.ask("POST", "/api/webhooks/"+w.ID+"/test", nil))
	again := read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, hello, "Idempotency-Key", "second"))
	require.Equal(t, run.RunID, again.RunID)
	require.Equal(t, before, s.rows())
	require.Len(t, s.p.Invoked(), 2)
	require.EqualValues(t, 2, s.get(w.ID).InvocationCount)
	s.change(`update budgets set monthly_micros = 4 * 370000 where scope_id = $1`, s.SpaceID)
	require.Equal(t, map[int]int{202: 2, 429: 18}, s.crowd(20, s.hook(fields{"rate_limit": 1000})), "no more together than one by one")
	s.change(`update agents set turns_per_minute = 1000`)
	refused(t, 429, "BudgetExceeded", s.call(w.ID, w.Token, hello, "Idempotency-Key", "third"))
	s.change(`update budgets set monthly_micros = 5 * 370000 where scope_id = $1`, s.SpaceID)
	s.accepted(w, hello, "Idempotency-Key", "third") // the refused call did not use it up
}

func TestAnAgentThatTakesNoTurns(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	for i, status := range []string{"suspended", "archived"} {
		s.suspend(status)
		before := s.rows()
		p := refused(t, 500, "InternalError", s.call(w.ID, w.Token, hello, "Idempotency-Key", "one"))
		require.Contains(t, p.Detail, "the webhook's agent is "+status)
		before["thread_turns"]++
		require.Equal(t, before, s.rows(), "a run, and no key")

		runs := s.runs(w.ID)
		require.Len(t, runs, i+1)
		require.Equal(t, turn.RunFailed, runs[0].Status)
		require.Nil(t, runs[0].ThreadID)
		require.Equal(t, "the webhook's agent is "+status+" and takes no turns", *runs[0].Error)
		require.NotNil(t, runs[0].FinishedAt)
		require.Contains(t, p.Detail, runs[0].ID)
		require.Equal(t, turn.RunFailed, read[turn.Run](t, 200, s.poll(w.ID, runs[0].ID, w.Token)).Status)
		one := read[turn.Run](t, 200, s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+runs[0].ID, nil))
		require.JSONEq(t, hello, string(one.ContextSnapshot))
		require.EqualValues(t, i+1, s.get(w.ID).InvocationCount)
		refused(t, 400, "ValidationError", s.call(w.ID, w.Token, `{}`))
		require.Len(t, s.runs(w.ID), i+1, "what is wrong with the call is the caller's")
	}
	require.Empty(t, s.p.Invoked())
	s.suspend("created")
	s.accepted(w, hello, "Idempotency-Key", "one")
}
