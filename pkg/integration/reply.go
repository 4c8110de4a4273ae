package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// DeliverReplies posts what agents have said; ReplyTask is what it is invoked with. Whoever made a reply invokes it after the commit, so that nobody waits
// for the sweep, which finds what was lost.
const DeliverReplies = turn.DeliverReplies

// ReplyTask is turn's.
type ReplyTask = turn.ReplyTask

const (
	sweepSize  = 2000            // replies that are looked for at once
	atOnce     = 32              // threads that are served at once
	sweepGrace = 5 * time.Second // of the caller's time that a sweep leaves
	leaseTime  = 2 * time.Minute // that whoever posts a reply has, or is taken for dead
	postTime   = 80 * time.Second
	writeTime  = 10 * time.Second // to write what came of it
)

// Courier posts replies. What holds:
//
//   - A thread's replies go out in their order, one at a time: the next is not posted before the one before is over.
//   - That a reply is about to be posted is committed before the provider is asked. Whoever finds it so later does not know whether the provider has it, and
//     looks for it there before it posts it again; where nobody can look, it is never posted again, and stays as unknown.
//   - What was not done is tried again, later and later, for a day at the most; what never will be is over at once, and the integration says why. A reply
//     that whoever claims it does not survive is over after some tries, too.
//   - Nothing is begun that the caller's time may not be enough for: it would be cut off, and nobody could say what came of it.
type Courier struct {
	DB      *postgres.DB
	Secrets *Secrets
	Client  *http.Client       // pkg/egress's
	Mail    invoke.Function    // send-mail
	Signal  func(point string) // tests: called at every point where a crash is tried; nil: none
}

// Deliver posts what is due of a thread, or one reply; without either, all that is due. Several at once do no harm.
func (c *Courier) Deliver(ctx context.Context, t ReplyTask) error {
	switch {
	case t.TenantID == "":
		return c.sweep(ctx)
	case t.ThreadUUID != "":
		return c.serve(ctx, t)
	case t.ReplyID == "":
		return errors.New("integration: the task names no reply")
	}
	return c.one(ctx, t)
}

// one posts one reply, behind those of its thread that are before it.
func (c *Courier) one(ctx context.Context, t ReplyTask) error {
	threads, err := postgres.All(ctx, c.DB.In(t.TenantID), pgx.RowTo[string], `select coalesce(thread_uuid::text, '') from integration_replies where id = $1 and next_at is not null`, t.ReplyID)
	if err != nil || len(threads) == 0 {
		return err
	}
	t.ThreadUUID = threads[0]
	return c.serve(ctx, t)
}

// serve posts a thread's replies, or one that has none, until nothing is due, or there is no time for another.
func (c *Courier) serve(ctx context.Context, t ReplyTask) error {
	for enough(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, found, err := c.claim(ctx, t)
		if err != nil || !found {
			return err
		}
		c.signal("reply claimed")
		done := c.attempt(ctx, r)
		c.signal("reply posted")
		if err := c.finish(ctx, r, done); err != nil {
			return fmt.Errorf("reply %s: %w", r.id, err)
		}
		c.signal("reply finished")
	}
	return nil
}

// enough reports whether the caller's time is enough for one more reply.
func enough(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return !limited || time.Until(deadline) >= postTime+writeTime
}

// attempt posts a claimed reply, whatever that does to this process's peace.
func (c *Courier) attempt(ctx context.Context, r claimed) (d done) {
	if r.lost() {
		return r.giveUp()
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "posting a reply panicked", "tenant_id", r.tenantID, "reply_id", r.id, "panic", p, "stack", string(debug.Stack()))
			d = done{status: queued, reason: "internal error", asked: true}
		}
	}()
	return c.post(ctx, r)
}

// sweep goes on until nothing is left to look at, or there is no more time.
func (c *Courier) sweep(ctx context.Context) (err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-sweepGrace))
		defer cancel()
	}
	untold := c.tellLateness(ctx) // before the work: whatever becomes of that, it is told
	due, err := postgres.All(ctx, c.DB.Lookup(), func(row pgx.CollectableRow) (t ReplyTask, err error) {
		err = row.Scan(&t.TenantID, &t.ReplyID)
		return t, err
	}, `select tenant_id, reply_id from lookup_integration_replies($1)`, sweepSize)
	errs := make([]error, len(due))
	var working sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, t := range due {
		room <- struct{}{}
		if !enough(ctx) {
			break
		}
		working.Go(func() {
			defer func() { <-room }()
			errs[i] = c.one(ctx, t)
		})
	}
	working.Wait()
	return errors.Join(untold, err, errors.Join(errs...))
}

// The pauses between tries, doubled each time.
const (
	firstPause = 30 * time.Second
	lastPause  = 4 * time.Hour
	maxTries   = 10
	maxAge     = 24 * time.Hour
)

// again is when a reply is tried again; false: it has been tried often enough.
func (r claimed) again(after time.Duration) (time.Duration, bool) {
	wait := max(min(firstPause<<(r.attempts-1), lastPause), after)
	return wait, r.attempts < maxTries && time.Since(r.created.Time)+wait < maxAge
}

// lost reports whether nobody has come to say what became of a reply, too often or too long: whoever takes it may die of it. The first try is made however late.
func (r claimed) lost() bool {
	return r.attempts >= maxTries+2 || r.attempts > 1 && time.Since(r.created.Time) >= maxAge+leaseTime
}

// giveUp is what becomes of a reply that is lost.
func (r claimed) giveUp() done {
	if r.asked != nil {
		return done{status: unknownReply, reason: "it may have been posted: no try has come to its end", asked: true}
	}
	return done{status: failedReply, reason: "it was tried too often, or for too long"}
}

// finish writes what came of a reply, unless somebody else has taken it over.
func (c *Courier) finish(ctx context.Context, r claimed, d done) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime) // the provider may have it: that is worth knowing
	defer cancel()
	status, next := d.status, any(nil)
	if status == queued {
		wait, again := r.again(d.after)
		switch {
		case again:
			next = wait
		case d.asked:
			status = unknownReply
		default:
			status = failedReply
		}
	}
	if status != posted {
		slog.WarnContext(ctx, "a reply was not posted", "tenant_id", r.tenantID, "integration_id", r.integrationID, "reply_id", r.id, "attempt", r.attempts, "status", string(status), "error", d.reason)
	}
	var b pgx.Batch
	held := false
	b.Queue(`update integration_replies set status = $3, lease_id = null, asked_at = case when $4 then asked_at end, next_at = clock_timestamp() + $5::interval,
			external_id = nullif($6, ''), error = nullif($7, ''), finished_at = case when $5::interval is null then clock_timestamp() end
		where id = $1 and lease_id = $2`, r.id, r.lease, status, d.asked || status != queued, next, d.externalID, d.reason).Exec(func(tag pgconn.CommandTag) error {
		held = tag.RowsAffected() > 0
		return nil
	})
	if err := c.DB.Once(ctx, r.tenantID, &b); err != nil || !held {
		return err
	}
	switch {
	case status == posted:
		c.complain(ctx, r, nil)
	case status != queued && d.blame:
		c.complain(ctx, r, &d.reason)
	}
	return nil
}

// complain writes why an integration's last reply could not be posted, or that it was. That is no change of the integration, and the reply does not depend on it.
func (c *Courier) complain(ctx context.Context, r claimed, reason *string) {
	var b pgx.Batch
	b.Queue(`update integrations set error = $2 where id = $1 and error is distinct from $2`, r.integrationID, reason)
	if err := c.DB.Once(ctx, r.tenantID, &b); err != nil {
		slog.WarnContext(ctx, "an integration does not say what came of its last reply", "tenant_id", r.tenantID, "integration_id", r.integrationID, "error", err)
	}
}

// replyStatus is how far a reply is.
type replyStatus string

const (
	queued       replyStatus = "queued"
	posted       replyStatus = "posted"
	failedReply  replyStatus = "failed"
	unknownReply replyStatus = "unknown"
)

// claimed is a reply that this process posts.
type claimed struct {
	tenantID, id, lease string
	integrationID       string
	attempts            int
	asked               *time.Time // since when the provider may have it, from an earlier attempt; nil: it has not
	created             ident.Time
	letter
}

func (c *Courier) signal(point string) {
	if c.Signal != nil {
		c.Signal(point)
	}
}
