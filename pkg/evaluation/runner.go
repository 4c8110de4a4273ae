package evaluation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// Job names a run; the zero Job asks for a sweep.
type Job struct {
	TenantID string `json:"tenantId"`
	RunID    string `json:"runId"`
}

// Runner takes runs to their end.
type Runner struct {
	DB       *postgres.DB
	Grader   grade.Grader
	Publish  publish.Publisher
	Dispatch func(ctx context.Context, tenantID, turnID string) error // starts a queued turn
	Again    func(ctx context.Context, j Job) error                   // invokes the function for a run
	Signal   func(point string)                                       // tests: called at every point where a crash is tried; nil: none

	Lease  time.Duration // default 3 minutes
	Margin time.Duration // before the context's deadline a run hands over; default 1 minute
	Watch  time.Duration // how soon the end of a turn is seen; default 250 ms
	Pause  time.Duration // after a grader could not be asked; default 10 seconds
}

const (
	gradingTime   = 2 * time.Minute  // of one round; less than the lease
	limitedPause  = 10 * time.Second // of a run whose agent is at its limit, and that has nothing else to do
	settleTimeout = 10 * time.Second
)

// errLost says that the run is over, or another one's.
var errLost = errors.New("evaluation: the run is over or another worker's")

// work is a claimed run.
type work struct {
	*Runner
	Job
	lease       string
	agentID     string
	name        string // of the evaluation
	evaluation  string
	list        []evaluator.Spec
	concurrency int
	threshold   float64
	created     ident.Time
	limited     bool // the agent's rate limit was met in this round

	mu    sync.Mutex
	again map[int]time.Time // when to rate a case again whose grader could not be asked
}

// Run works on one run until it is over or the context's time nearly is, and then hands over; without a run it sweeps. A run that is over, or that
// somebody else works on, is left alone.
func (r *Runner) Run(ctx context.Context, j Job) error {
	if j.RunID == "" {
		return r.sweep(ctx)
	}
	ctx = trace.In(ctx, trace.Scope{TenantID: j.TenantID})
	w, err := r.claim(ctx, j)
	if err != nil || w == nil {
		return err
	}
	r.signal("claimed")
	over, err := w.advance(ctx)
	if over || errors.Is(err, errLost) {
		return nil
	}
	if releaseErr := w.release(ctx, err); err != nil || releaseErr != nil || w.limited {
		return errors.Join(err, releaseErr)
	}
	return r.Again(ctx, j)
}

// claim takes the run's lease; nil when there is nothing to do.
func (r *Runner) claim(ctx context.Context, j Job) (*work, error) {
	if !ident.Valid(j.RunID) {
		return nil, errors.New("evaluation: the run's id is not one")
	}
	w := &work{Runner: r, Job: j, lease: ident.New(), again: map[int]time.Time{}}
	found := false
	err := r.DB.InTenant(ctx, j.TenantID, func(tx pgx.Tx) error {
		found = false
		rows, err := tx.Query(ctx, `update evaluation_runs r set lease_id = $2, lease_until = clock_timestamp() + $3::interval from evaluations e
			where r.id = $1 and r.status = 'running' and (r.lease_id is null or r.lease_until < clock_timestamp())
				and e.tenant_id = r.tenant_id and e.id = r.evaluation_id
			returning r.agent_id, r.evaluation_id, e.name, r.evaluators, r.concurrency, r.pass_threshold, r.created_at`, j.RunID, w.lease, r.leaseTime())
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&w.agentID, &w.evaluation, &w.name, &w.list, &w.concurrency, &w.threshold, &w.created}, func() error {
			found = true
			return nil
		})
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return w, nil
}

func (r *Runner) leaseTime() time.Duration { return cmp.Or(r.Lease, 3*time.Minute) }

// advance opens cases, waits for their turns and rates them, until the run is over. Not over and no error: it is to be handed over.
func (w *work) advance(ctx context.Context) (over bool, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-cmp.Or(w.Margin, time.Minute)), errLater)
		defer cancel()
	}
	tick := time.NewTicker(cmp.Or(w.Watch, 250*time.Millisecond))
	defer tick.Stop()
	for {
		running, left, err := w.round(ctx)
		switch {
		case err == nil && left == 0:
			return true, nil
		case errors.Is(context.Cause(ctx), errLater):
			return false, nil
		case err != nil:
			return false, err
		case running == 0 && w.limited:
			return false, nil // there is nothing to wait for but time
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errLater) {
				return false, nil
			}
			return false, ctx.Err()
		}
	}
}

// errLater ends a worker whose time is nearly up.
var errLater = errors.New("evaluation: the time is nearly up")

// round rates what can be rated, opens what may be opened, and ends the run when nothing is left.
func (w *work) round(ctx context.Context) (running, left int, err error) {
	w.limited = false
	cases, waiting, err := w.look(ctx)
	if err != nil {
		return 0, 0, err
	}
	if running, err = w.rate(ctx, cases); err != nil {
		return 0, 0, err
	}
	for running < w.concurrency && waiting > 0 && !w.limited {
		opened, err := w.open(ctx)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case opened:
			running++
			waiting--
		case !w.limited: // it was refused for good
			waiting--
		}
	}
	if running == 0 && waiting == 0 {
		return 0, 0, w.finish(ctx)
	}
	return running, running + waiting, nil
}

// release lets another worker go on: at once when this one's process stops, later when it failed or when the agent is at its limit. The sweep finds
// the run, if nobody else does.
func (w *work) release(ctx context.Context, failed error) error {
	pause := startGrace
	if failed == nil && w.limited {
		pause = limitedPause
	} else if ctx.Err() != nil {
		pause = 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var b pgx.Batch
	b.Queue(`update evaluation_runs set lease_id = null, lease_until = clock_timestamp() + $3::interval where id = $1 and lease_id = $2 and status = 'running'`,
		w.RunID, w.lease, pause)
	return w.DB.Once(ctx, w.TenantID, &b)
}

// sweep invokes the function for the runs that nobody works on.
func (r *Runner) sweep(ctx context.Context) error {
	due, err := postgres.All(ctx, r.DB.Lookup(), pgx.RowToStructByPos[Job], `select tenant_id::text, run_id::text from lookup_due_evaluation_runs($1)`, sweepSize)
	for _, j := range due {
		err = errors.Join(err, r.Again(ctx, j)) // the others must not wait for it
	}
	if len(due) > 0 {
		slog.InfoContext(ctx, "evaluation runs go on", "runs", len(due))
	}
	return err
}

func (r *Runner) signal(point string) {
	if r.Signal != nil {
		r.Signal(point)
	}
}
