package model

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// RetryConfig says how often and how patiently to ask again.
type RetryConfig struct {
	Attempts  int           // all attempts, the first included; default 5
	BaseDelay time.Duration // upper bound of the first pause, doubled for each further one; default 500 ms
	MaxDelay  time.Duration // upper bound of every pause; default 20 s
	Log       *slog.Logger  // told of every failed attempt that is repeated; default: nobody
}

// Retry asks its model again after failures that may pass: throttling, an unavailable service, an answer that broke off or cannot be
// read. Pauses are exponential with full jitter (a random length between nothing and the bound), so that callers that were
// throttled together do not come back together. It gives up when ctx ends.
type Retry struct {
	model  Model
	config RetryConfig
}

// NewRetry wraps m. Do not wrap twice: attempts would multiply.
func NewRetry(m Model, c RetryConfig) *Retry {
	if c.Attempts <= 0 {
		c.Attempts = 5
	}
	if c.BaseDelay <= 0 {
		c.BaseDelay = 500 * time.Millisecond
	}
	if c.MaxDelay <= 0 {
		c.MaxDelay = 20 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Retry{model: m, config: c}
}

// Converse implements Model. When an attempt that had streamed text is repeated, s.Restart is called before the pause, so that
// readers see at once that the text is void.
func (r *Retry) Converse(ctx context.Context, req Request, s Stream) (Response, error) {
	if s == nil {
		s = Discard
	}
	seen := &watched{Stream: s}
	attempts := 0
	var last *Error
	attempt := func() (Response, error) {
		attempts++
		response, err := r.model.Converse(ctx, req, seen)
		if err == nil {
			return response, nil
		}
		last = Failed(ctx, err, seen.text)
		if !last.retry {
			return Response{}, backoff.Permanent(last)
		}
		return Response{}, last
	}
	again := func(_ error, pause time.Duration) {
		r.config.Log.WarnContext(ctx, "model call failed, asking again",
			"model", req.ModelID, "reason", last.Reason, "attempt", attempts, "pause", pause, "cause", last.cause)
		if seen.text {
			seen.Restart()
		}
	}
	response, err := backoff.Retry(ctx, attempt,
		backoff.WithBackOff(r.pauses()), backoff.WithMaxTries(uint(r.config.Attempts)),
		backoff.WithMaxElapsedTime(0), backoff.WithNotify(again))
	if err == nil {
		return response, nil
	}
	final := *last
	if last.retry && ctx.Err() != nil { // the context ended the attempts, not their number
		final = *interrupted(ctx, last)
	}
	final.Attempts = attempts
	return Response{}, &final
}

// interrupted is the failure of a call whose context ended between two attempts. A deadline that passes while the provider
// throttles is best told as throttling; giving up is the caller's own act.
func interrupted(ctx context.Context, last *Error) *Error {
	end := ended(ctx, last)
	if end.Reason == TimedOut {
		end.Reason, end.Message = last.Reason, last.Message
	}
	return end
}

// pauses are the delays of one call. A factor of 1 around half the bound spans exactly nothing to the bound: full jitter.
func (r *Retry) pauses() backoff.BackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     r.config.BaseDelay / 2,
		RandomizationFactor: 1,
		Multiplier:          2,
		MaxInterval:         r.config.MaxDelay / 2,
	}
}

// watched remembers whether the current attempt has given text to the caller.
type watched struct {
	Stream
	text bool
}

func (w *watched) Text(delta string) {
	w.text = true
	w.Stream.Text(delta)
}

func (w *watched) Restart() {
	w.text = false
	w.Stream.Restart()
}
