// Package deadletter is the port to the dead letters: calls that nobody waited for and that failed for good, each kept with its error until an
// operator sends it again or drops it. In the cloud they are in an SQS queue (pkg/cloud/sqs), on one machine in a folder (pkg/local/letters).
//
// What holds:
//   - A letter is kept for Kept, and no longer. What it says comes in no order.
//   - A received letter is hidden from every other receiver until it is released or its time is over: at most one receiver has it. SQS promises
//     that almost always; a function that is sent the same twice does its work once, as after any invoke.
//   - A letter is deleted by whoever holds it, and by nobody else. A retry deletes it after the invoke was taken, so a letter may be sent twice, and is
//     never lost.
//   - Whatever is in the queue is a letter, with as much as can be known of it.
package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agentplatform/agentplatform/pkg/invoke"
)

// Kept is how long a letter is kept: the longest that SQS does.
const Kept = 14 * 24 * time.Hour

// MaxHold is the longest time for which a letter can be held: SQS's.
const MaxHold = 12 * time.Hour

// Source is who gave up.
type Source string

// The sources of letters; a letter that is neither's has none.
const (
	Function  Source = "function"  // Lambda: the function failed each time it was called, or could not be called in time
	Scheduler Source = "scheduler" // EventBridge Scheduler could not call the function
)

// Letter is a call that failed for good. What is not known is the zero value.
type Letter struct {
	ID       string          // the queue's, the same each time it is received
	Function string          // manifest name; empty: Target is no function of this deployment
	Target   string          // ARN of what was called
	Payload  json.RawMessage // what it was called with; nil: not known, where JSON's null is "null"
	Error    Error           // of the last try
	Attempts int             // how often it was tried
	At       time.Time       // when it was given up
	Source   Source
	Body     string // all of it, as it is in the queue

	Receipt string    // the queue's, of this receiving
	Until   time.Time // until then it is hidden from others, by this machine's clock
}

// Error is why a call failed: what the function reported, or whoever called it.
type Error struct {
	Type    string // "Sandbox.Timedout", "AccessDeniedException", "EventAgeExceeded"
	Message string
}

// Queue keeps letters. It is safe for concurrent use.
type Queue interface {
	// Receive gives up to limit letters, held for that time: whole seconds, rounded up, from one to MaxHold. An error may come with letters, which are
	// held all the same. None and no error: there is none that nobody holds.
	Receive(ctx context.Context, limit int, hold time.Duration) ([]Letter, error)
	// Delete removes a letter that was handled; one that was deleted before is no error. ErrExpired: its time is over, and somebody else may have it.
	Delete(ctx context.Context, l Letter) error
	// Release makes a letter visible at once; the caller does not have it any more. One whose time is over is visible already, which is no error.
	Release(ctx context.Context, l Letter) error
}

var (
	// ErrExpired is a letter that this receiver does not hold any more.
	ErrExpired = errors.New("it was held for too long, and others can see it again: receive it once more")
	// ErrIncomplete is a letter that cannot be sent again by itself.
	ErrIncomplete = errors.New("it does not say which function of this deployment to call with what")
)

// Expired reports whether the letter's time is over.
func (l Letter) Expired() bool { return !time.Now().Before(l.Until) }

// Seconds is a hold as a Queue takes it.
func Seconds(hold time.Duration) int32 {
	hold = min(max(hold, time.Second), MaxHold)
	return int32((hold + time.Second - 1) / time.Second)
}

// deleteLimit is how long the deletion of a letter that was sent may take.
const deleteLimit = 10 * time.Second

// Retry invokes the letter's function with its payload once more and then deletes the letter. When the invoke fails the letter stays, held as before.
// ErrIncomplete and ErrExpired: nothing was invoked.
func Retry(ctx context.Context, from Queue, to invoke.Invoker, l Letter) error {
	switch {
	case l.Function == "" || l.Payload == nil:
		return fmt.Errorf("letter %s: %w", l.ID, ErrIncomplete)
	case l.Expired():
		return fmt.Errorf("letter %s: %w", l.ID, ErrExpired)
	case ctx.Err() != nil:
		return fmt.Errorf("letter %s: %w", l.ID, ctx.Err())
	}
	if err := to.Invoke(ctx, l.Function, l.Payload); err != nil {
		return fmt.Errorf("letter %s was not sent and stays: %w", l.ID, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteLimit) // it is sent, whoever still waits
	defer cancel()
	if err := from.Delete(ctx, l); err != nil {
		return fmt.Errorf("letter %s was sent and is still there: %w", l.ID, err)
	}
	return nil
}
