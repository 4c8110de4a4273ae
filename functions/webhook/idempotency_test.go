package webhook_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// together makes calls with one key at once: how many were answered with each status, and the runs that they were told of.
func (s *site) together(n int, w webhook.Webhook, key string) (statuses map[int]int, runs map[string]int, deduplicated int) {
	s.t.Helper()
	statuses, runs = map[int]int{}, map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			answer := s.call(w.ID, w.Token, hello, "Idempotency-Key", key)
			mu.Lock()
			defer mu.Unlock()
			if statuses[answer.Status]++; answer.Status >= 300 {
				return
			}
			var i webhook.Invoked
			answer.Into(s.t, &i)
			runs[i.RunID]++
			if i.Deduplicated {
				deduplicated++
			}
		})
	}
	wait.Wait()
	return statuses, runs, deduplicated
}

func TestOneKeyOneRun(t *testing.T) {
	for name, limit := range map[string]any{"no limit": nil, "one turn a minute": 1} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.change(`update agents set turns_per_minute = $1`, limit)
			w := s.hook(fields{"rate_limit": 1000})
			statuses, runs, deduplicated := s.together(50, w, long(255))
			require.Equal(t, map[int]int{202: 1, 200: 49}, statuses)
			require.Equal(t, 49, deduplicated)
			require.Len(t, runs, 1)
			require.Equal(t, []string{"dispatch-turn"}, s.p.Invoked())
			require.Len(t, s.runs(w.ID), 1)
			for _, table := range []string{"thread_turns", "threads", "messages", "webhook_keys"} {
				require.Equal(t, 1, s.rows()[table], table)
			}
			require.EqualValues(t, 1, s.get(w.ID).InvocationCount)
		})
	}
}

func TestRepeatedCallsCountAgainstTheWindow(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 10})
	statuses, runs, deduplicated := s.together(50, w, "one")
	require.Equal(t, map[int]int{202: 1, 200: 9, 429: 40}, statuses)
	require.Equal(t, 9, deduplicated)
	require.Len(t, runs, 1)
	require.Len(t, s.runs(w.ID), 1)
	require.Len(t, s.p.Invoked(), 1)
}

func TestKeysAreKeptADay(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"rate_limit": 1000})
	first := s.accepted(w, hello, "Idempotency-Key", "!~")
	age := func(hours string) {
		t.Helper()
		s.change(`update webhook_keys set created_at = clock_timestamp() - $1::interval`, hours)
	}
	age("23 hours 59 minutes")
	// The same key is the same call, whatever else it says now.
	require.Equal(t, first.RunID, read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, `{"message":"Another"}`, "Idempotency-Key", "!~")).RunID)
	require.NoError(t, s.sweep())
	require.Equal(t, first.RunID, read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, hello, "Idempotency-Key", "!~")).RunID)
	age("24 hours")
	second := s.accepted(w, hello, "Idempotency-Key", "!~")
	require.NotEqual(t, first.RunID, second.RunID)
	require.Equal(t, second.RunID, read[webhook.Invoked](t, 200, s.call(w.ID, w.Token, hello, "Idempotency-Key", "!~")).RunID)

	globex := s.neighbour("globex")
	globex.accepted(globex.hook(), hello, "Idempotency-Key", "!~")
	age("25 hours")
	s.accepted(w, hello, "Idempotency-Key", "young")
	require.NoError(t, s.sweep())
	require.Equal(t, []string{"young"}, column[string](s, `select key from webhook_keys`), "of every tenant")
	s.accepted(w, hello)
	s.accepted(w, hello, "Idempotency-Key", "")
	require.Len(t, s.runs(w.ID), 5)
}
