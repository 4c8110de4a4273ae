package model

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attempts is a Model whose n-th attempt is the n-th function; further ones are the last.
type attempts struct {
	n   int
	fns []func(s Stream) error
}

func (a *attempts) Converse(_ context.Context, _ Request, s Stream) (Response, error) {
	fn := a.fns[min(a.n, len(a.fns)-1)]
	a.n++
	if err := fn(s); err != nil {
		return Response{}, err
	}
	return Response{Blocks: []Block{{Text: "done"}}}, nil
}

func quick() RetryConfig {
	return RetryConfig{BaseDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond}
}

func TestRestartComesOnlyAfterText(t *testing.T) {
	silentFailure := func(Stream) error { return Failure(Throttled, true, errors.New("slow down")) }
	brokenOff := func(s Stream) error { s.Text("do"); return Failure(Broken, true, nil) }
	success := func(s Stream) error { s.Text("done"); return nil }
	var seen words
	a := &attempts{fns: []func(Stream) error{silentFailure, brokenOff, silentFailure, brokenOff, success}}
	var log bytes.Buffer
	config := quick()
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	r, err := NewRetry(a, config).Converse(t.Context(), hello, &seen)
	require.NoError(t, err)
	require.Equal(t, "done", r.Text())
	require.Equal(t, words{"do", "<restart>", "do", "<restart>", "done"}, seen)
	require.Equal(t, 5, a.n)
	require.Equal(t, 4, bytes.Count(log.Bytes(), []byte("asking again")))
	require.Contains(t, log.String(), "slow down")
}

func TestAttemptsAreCounted(t *testing.T) {
	fails := func(Stream) error { return Failure(Unavailable, true, errors.New("down")) }
	for _, limit := range []int{0, 1, 3} {
		a := &attempts{fns: []func(Stream) error{fails}}
		config := quick()
		config.Attempts = limit
		_, err := NewRetry(a, config).Converse(t.Context(), hello, nil)
		e := reasonOf(t, err)
		want := limit
		if limit == 0 {
			want = 5
		}
		require.Equal(t, want, a.n)
		require.Equal(t, want, e.Attempts)
		require.EqualError(t, e.Unwrap(), "down")
	}
}

func TestPermanentErrorsAreNotRepeated(t *testing.T) {
	for _, reason := range []Reason{Invalid, Denied, Missing, TooLong, Truncated} {
		a := &attempts{fns: []func(Stream) error{func(Stream) error { return Failure(reason, false, nil) }}}
		_, err := NewRetry(a, quick()).Converse(t.Context(), hello, nil)
		require.Equal(t, reason, reasonOf(t, err).Reason)
		require.Equal(t, 1, a.n)
	}
}

func TestForeignErrorsAreTyped(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7:443")
	a := &attempts{fns: []func(Stream) error{func(Stream) error { return secret }}}
	_, err := NewRetry(a, quick()).Converse(t.Context(), hello, nil)
	require.Equal(t, Unavailable, reasonOf(t, err).Reason)
	require.ErrorIs(t, err, secret)
	require.NotContains(t, err.Error(), "10.0.0.7")
}

func TestTheContextEndsThePauses(t *testing.T) {
	patient := RetryConfig{BaseDelay: time.Hour, MaxDelay: time.Hour}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := &attempts{fns: []func(Stream) error{func(Stream) error {
			defer cancel()
			return Failure(Throttled, true, nil)
		}}}
		_, err := NewRetry(a, patient).Converse(ctx, hello, nil)
		require.Equal(t, Canceled, reasonOf(t, err).Reason)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, a.n)
	})
	t.Run("deadline in a pause tells the provider's reason", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		a := &attempts{fns: []func(Stream) error{func(Stream) error { return Failure(Throttled, true, nil) }}}
		_, err := NewRetry(a, patient).Converse(ctx, hello, nil)
		require.Equal(t, Throttled, reasonOf(t, err).Reason)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestPausesAreFullJitterUnderADoublingBound(t *testing.T) {
	r := NewRetry(nil, RetryConfig{BaseDelay: 100 * time.Millisecond, MaxDelay: 300 * time.Millisecond})
	bounds := []time.Duration{100, 200, 300, 300}
	low, high := make([]time.Duration, 4), make([]time.Duration, 4)
	for round := range 2000 {
		pauses := r.pauses()
		pauses.Reset()
		for i, bound := range bounds {
			d := pauses.NextBackOff()
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, bound*time.Millisecond+1)
			if round == 0 || d < low[i] {
				low[i] = d
			}
			high[i] = max(high[i], d)
		}
	}
	for i, bound := range bounds { // 2000 rounds miss a tenth at an end with a chance below 1e-90
		require.Less(t, low[i], bound*time.Millisecond/10)
		require.Greater(t, high[i], bound*time.Millisecond*9/10)
	}
}

var hello = Request{ModelID: "m", Messages: []Message{{Role: User, Blocks: []Block{{Text: "hi"}}}}}

func reasonOf(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, messages[e.Reason], e.Message)
	require.NotEmpty(t, e.Message)
	return e
}

// words is a Stream that keeps the deltas.
type words []string

func (w *words) Text(delta string) { *w = append(*w, delta) }
func (w *words) Restart()          { *w = append(*w, "<restart>") }
