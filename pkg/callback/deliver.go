package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const (
	sweepSize  = 500             // callbacks that are looked for at once
	atOnce     = 16              // that the engine is told at once
	sweepGrace = 5 * time.Second // of the caller's time that a sweep leaves
)

// Courier tells the engine what is due.
type Courier struct {
	DB     *postgres.DB
	Tasks  workflow.Tasks
	Signal func(point string) // tests: called at every point where a crash is tried; nil: none
}

// Deliver tells the engine of one callback if it is due, or, without one, of all that are, and gives heartbeats. Several at once do no harm. An error
// means that some are to be told later: the sweep does.
func (d *Courier) Deliver(ctx context.Context, t Task) error {
	if t.CallbackID == "" {
		return d.sweep(ctx)
	}
	return d.one(ctx, t)
}

// sweep goes on until nothing is left to look at, or there is no more time.
func (d *Courier) sweep(ctx context.Context) (err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-sweepGrace))
		defer cancel()
	}
	for {
		found, lookErr := postgres.All(ctx, d.DB.Lookup(), pgx.RowToStructByPos[Task], `select tenant_id::text, callback_id::text from lookup_callbacks($1)`, sweepSize)
		if lookErr != nil {
			return errors.Join(err, lookErr)
		}
		told, failed := d.all(ctx, found)
		err = errors.Join(err, failed)
		if len(found) < sweepSize || told == 0 || errors.Is(failed, workflow.ErrThrottled) || ctx.Err() != nil { // what failed is looked at again in a minute
			return err
		}
	}
}

// all tells of these, and says of how many it could.
func (d *Courier) all(ctx context.Context, tasks []Task) (told int, err error) {
	errs := make([]error, len(tasks))
	var working sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, t := range tasks {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			errs[i] = d.one(ctx, t)
		})
	}
	working.Wait()
	for _, err := range errs {
		if err == nil {
			told++
		}
	}
	return told, errors.Join(errs...)
}

// waiting is a callback's row.
type waiting struct {
	token         string
	turnID        *string
	heartbeat     bool
	due           bool
	young         bool
	output        []byte
	code, reason  *string
	answer        json.RawMessage // what is told; nil: the failure is
	failure       string
	failureReason string
}

// one tells the engine of a callback, and deletes it when the engine has been told, or has no such task any more.
func (d *Courier) one(ctx context.Context, t Task) error {
	w, found, err := d.claim(ctx, t)
	if err != nil || !found {
		return err
	}
	d.signal("callback claimed")
	err = d.tell(ctx, w)
	for pause := firstPause; w.young && errors.Is(err, workflow.ErrNoTask) && pause <= lastPause && wait(ctx, pause); pause *= 2 {
		err = d.tell(ctx, w)
	}
	over := errors.Is(err, workflow.ErrTaskOver) || errors.Is(err, workflow.ErrNoTask)
	if err != nil && !over {
		return fmt.Errorf("callback %s: %w", t.CallbackID, err)
	}
	d.signal("callback told")
	if over {
		slog.InfoContext(ctx, "nobody waits for the callback any more", "tenant_id", t.TenantID, "callback_id", t.CallbackID)
	}
	if !w.due && !over {
		return nil
	}
	return d.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `delete from callbacks where id = $1`, t.CallbackID)
		return err
	})
}

func (d *Courier) tell(ctx context.Context, w waiting) error {
	switch {
	case !w.due:
		return d.Tasks.Heartbeat(ctx, w.token)
	case w.failure != "":
		return d.Tasks.Fail(ctx, w.token, w.failure, w.failureReason)
	}
	return d.Tasks.Succeed(ctx, w.token, w.answer)
}

// An engine may give a token out a moment before it knows it itself.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 1600 * time.Millisecond
)

func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// claim reads a callback, and puts the sweep off.
func (d *Courier) claim(ctx context.Context, t Task) (w waiting, found bool, err error) {
	err = d.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		w, found = waiting{}, true
		err := tx.QueryRow(ctx, `update callbacks set next_at = clock_timestamp() + case when heartbeat or due_at is not null then $2::interval else $3 end
			where id = $1 returning token, turn_id, heartbeat, due_at is not null, created_at > clock_timestamp() - interval '1 minute', output, error_type, error`, t.CallbackID, beatEvery, lookEvery).
			Scan(&w.token, &w.turnID, &w.heartbeat, &w.due, &w.young, &w.output, &w.code, &w.reason)
		if errors.Is(err, pgx.ErrNoRows) {
			found = false // told
			return nil
		}
		if err != nil || !w.due {
			return err
		}
		if w.turnID != nil {
			return w.ofTurn(ctx, tx)
		}
		w.answer = w.output
		if w.code != nil {
			w.failure, w.failureReason = *w.code, *w.reason
		}
		return nil
	})
	return w, found, err
}

func (d *Courier) signal(point string) {
	if d.Signal != nil {
		d.Signal(point)
	}
}
