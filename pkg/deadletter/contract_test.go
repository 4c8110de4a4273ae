package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
)

const (
	prefix  = "agentplatform-test-"
	long    = 5 * time.Minute
	short   = time.Second
	patient = time.Minute
)

// place is an empty queue under the contract, and how its letters come there.
type place struct {
	queue deadletter.Queue
	put   func(t *testing.T, body string)
}

// record is a body as Lambda writes it.
func record(function, payload string) string {
	return `{"version":"1.0","timestamp":"2026-03-04T05:06:07.089Z","requestContext":{"requestId":"e4b46cbf-b738-4880-8880-a18cdf61200e",` +
		`"functionArn":"arn:aws:lambda:eu-central-1:123456789012:function:` + function + `:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":3},` +
		`"requestPayload":` + payload + `,"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},` +
		`"responsePayload":{"errorMessage":"no connection","errorType":"PgError"}}`
}

// testContract has each part run at a place of its own, all at once: some wait for what expires.
func testContract(t *testing.T, open func(t *testing.T) place) {
	run := func(name string, part func(t *testing.T, p place)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, open(t))
		})
	}
	run("a letter says what is known", func(t *testing.T, p place) {
		payload := `{"text": "Grüße, 世界 🌍 <b> & \"quotes\" \\ \u0007", "big": 9007199254740993}`
		p.put(t, record(prefix+"dispatch-turn", payload))
		before := time.Now()
		l := one(t, p.queue, long)
		require.NotEmpty(t, l.ID)
		require.Equal(t, "dispatch-turn", l.Function)
		require.Equal(t, "arn:aws:lambda:eu-central-1:123456789012:function:"+prefix+"dispatch-turn:$LATEST", l.Target)
		require.Equal(t, payload, string(l.Payload), "to the byte")
		require.Equal(t, deadletter.Error{Type: "PgError", Message: "no connection"}, l.Error)
		require.Equal(t, 3, l.Attempts)
		require.Equal(t, time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC), l.At)
		require.Equal(t, deadletter.Function, l.Source)
		require.Equal(t, record(prefix+"dispatch-turn", payload), strings.TrimSpace(l.Body))
		require.False(t, l.Expired())
		require.WithinRange(t, l.Until, before.Add(long), time.Now().Add(long))
	})
	run("hidden, released, deleted", func(t *testing.T, p place) {
		none(t, p.queue)
		p.put(t, record(prefix+"dispatch-turn", `{}`))
		l := one(t, p.queue, long)
		none(t, p.queue)
		require.NoError(t, p.queue.Release(t.Context(), l))
		again := one(t, p.queue, long)
		require.Equal(t, l.ID, again.ID)
		require.NoError(t, p.queue.Delete(t.Context(), again))
		none(t, p.queue)
		require.NoError(t, p.queue.Delete(t.Context(), again), "deleted twice is deleted")
		require.NoError(t, p.queue.Release(t.Context(), again), "it is nobody's")
		none(t, p.queue)
	})
	run("visible again when its time is over", func(t *testing.T, p place) {
		p.put(t, record(prefix+"dispatch-turn", `{}`))
		l := one(t, p.queue, short)
		var again []deadletter.Letter
		require.Eventually(t, func() bool {
			var err error
			again, err = p.queue.Receive(t.Context(), 1, long)
			return err == nil && len(again) == 1
		}, patient, 50*time.Millisecond)
		require.Equal(t, l.ID, again[0].ID)
		require.True(t, l.Expired())
		require.ErrorIs(t, p.queue.Delete(t.Context(), l), deadletter.ErrExpired)
		require.ErrorIs(t, deadletter.Retry(t.Context(), p.queue, refuse{t}, l), deadletter.ErrExpired)
		require.NoError(t, p.queue.Release(t.Context(), l))
		none(t, p.queue)
		require.NoError(t, p.queue.Delete(t.Context(), again[0]))
	})
	run("more than ten", func(t *testing.T, p place) {
		const letters = 23
		want := map[string]bool{}
		for i := range letters {
			p.put(t, record(prefix+"dispatch-turn", fmt.Sprintf(`{"n":%d}`, i)))
			want[fmt.Sprintf(`{"n":%d}`, i)] = true
		}
		ids := map[string]bool{}
		for _, limit := range []int{0, 1, 12, letters} { // the last is more than there is
			got, err := p.queue.Receive(t.Context(), limit, long)
			require.NoError(t, err)
			require.Len(t, got, min(limit, letters-len(ids)))
			for _, l := range got {
				require.True(t, want[string(l.Payload)], "in no order, each once: %s", l.Payload)
				delete(want, string(l.Payload))
				ids[l.ID] = true
			}
		}
		require.Empty(t, want)
		require.Len(t, ids, letters)
	})
	run("odd letters", func(t *testing.T, p place) {
		for _, body := range []string{"somebody wrote this by hand", `{"a":1}`, record("another-service", `{}`)} {
			p.put(t, body)
			l := one(t, p.queue, long)
			require.Equal(t, body, strings.TrimSpace(l.Body))
			require.Empty(t, l.Function)
			require.NotZero(t, l.At)
			require.ErrorIs(t, deadletter.Retry(t.Context(), p.queue, refuse{t}, l), deadletter.ErrIncomplete)
			require.NoError(t, p.queue.Release(t.Context(), l), "it stays")
			require.NoError(t, p.queue.Delete(t.Context(), one(t, p.queue, long)))
		}
	})
	run("sent again", func(t *testing.T, p place) {
		p.put(t, record(prefix+"dispatch-turn", `{"turnId":"Ü"}`))
		l, to := one(t, p.queue, long), &functions{known: "dispatch-turn"}
		require.NoError(t, deadletter.Retry(t.Context(), p.queue, to, l))
		require.Equal(t, []string{`dispatch-turn {"turnId":"Ü"}`}, to.invoked)
		require.NoError(t, p.queue.Release(t.Context(), l))
		none(t, p.queue)
	})
	run("not sent, it stays", func(t *testing.T, p place) {
		p.put(t, record(prefix+"retired", `{}`))
		l, to := one(t, p.queue, long), &functions{known: "dispatch-turn"}
		err := deadletter.Retry(t.Context(), p.queue, to, l)
		require.ErrorIs(t, err, errUnknown)
		require.ErrorContains(t, err, "letter "+l.ID+" was not sent and stays: ")
		none(t, p.queue)
		require.NoError(t, p.queue.Release(t.Context(), l))
		require.Equal(t, l.ID, one(t, p.queue, long).ID)
	})
	run("a cancelled caller takes nothing", func(t *testing.T, p place) {
		p.put(t, record(prefix+"dispatch-turn", `{}`))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.queue.Receive(gone, 1, long)
		require.ErrorIs(t, err, context.Canceled)
		l := one(t, p.queue, long)
		require.ErrorIs(t, p.queue.Delete(gone, l), context.Canceled)
		require.ErrorIs(t, p.queue.Release(gone, l), context.Canceled)
		require.ErrorIs(t, deadletter.Retry(gone, p.queue, refuse{t}, l), context.Canceled)
		none(t, p.queue)
		require.NoError(t, p.queue.Delete(t.Context(), l))
	})
	run("by many at once", func(t *testing.T, p place) {
		const letters, receivers = 40, 8
		for range letters {
			p.put(t, record(prefix+"dispatch-turn", `{}`))
		}
		var mu sync.Mutex
		times, errs := map[string]int{}, make([]error, receivers)
		ctx, done := context.WithCancel(t.Context()) // done when each was received
		defer done()
		var all sync.WaitGroup
		for i := range receivers {
			all.Go(func() {
				for ctx.Err() == nil && errs[i] == nil {
					got, err := p.queue.Receive(ctx, 1+i%3, long)
					if ctx.Err() == nil {
						errs[i] = err
					}
					for _, l := range got {
						if i%2 == 0 && errs[i] == nil {
							errs[i] = p.queue.Delete(t.Context(), l)
						}
						mu.Lock()
						if times[l.ID]++; len(times) == letters {
							done()
						}
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Len(t, times, letters)
		for id, n := range times {
			require.Equal(t, 1, n, id)
		}
	})
}

// one is the only letter.
func one(t *testing.T, q deadletter.Queue, hold time.Duration) deadletter.Letter {
	t.Helper()
	got, err := q.Receive(t.Context(), 1, hold)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

func none(t *testing.T, q deadletter.Queue) {
	t.Helper()
	got, err := q.Receive(t.Context(), 1, long)
	require.NoError(t, err)
	require.Empty(t, got)
}

var errUnknown = errors.New("no such function")

// functions are one.
type functions struct {
	known   string
	invoked []string
}

func (f *functions) Invoke(_ context.Context, function string, payload any) error {
	if function != f.known {
		return fmt.Errorf("%w: %s", errUnknown, function)
	}
	f.invoked = append(f.invoked, fmt.Sprintf("%s %s", function, payload))
	return nil
}

// refuse is not invoked.
type refuse struct{ t *testing.T }

func (r refuse) Invoke(context.Context, string, any) error {
	r.t.Error("it was invoked")
	return nil
}
