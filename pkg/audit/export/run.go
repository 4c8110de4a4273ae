package export

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// Runner runs export jobs.
type Runner struct {
	DB     *postgres.DB                                  // the jobs, as the application
	Reader *postgres.DB                                  // the events, and whose jobs they are, as the compliance reader
	Bucket *object.Bucket                                // of exports
	Sign   sign.Signer                                   // of manifests: the anchors' key
	Again  func(ctx context.Context, jobID string) error // asks for another run
	Signal func(point string)                            // tests: called at every point where a crash is tried; nil: none

	PartSize int           // bytes of a part; default 8 MiB, at least object.MinPart
	Batch    int           // rows of one read; default 5000
	Lease    time.Duration // default 2 minutes
	Margin   time.Duration // before the context's deadline a run hands over; default 1 minute
}

const (
	settleTimeout = 10 * time.Second
	lostAfter     = 30 * time.Second // a queued job that nobody has begun: its invoke was lost
	sweepSize     = 100
)

// errLater ends a run whose time is nearly up.
var errLater = errors.New("export: the time is nearly up")

func (r *Runner) lease() time.Duration { return cmp.Or(r.Lease, 2*time.Minute) }

func (r *Runner) signal(point string) {
	if r.Signal != nil {
		r.Signal(point)
	}
}

// Run takes one job to its end, or as far as the context's time allows. A job that is finished, or that somebody else runs, is left alone.
func (r *Runner) Run(ctx context.Context, jobID string) error {
	j, err := r.claim(ctx, jobID)
	if err != nil || j == nil {
		return err
	}
	r.signal("claimed")
	held, stop := r.hold(ctx, j)
	defer stop()
	err = r.write(held, j)
	if cause := context.Cause(held); err != nil && errors.Is(cause, errLeaseLost) {
		err = cause
	}
	stop()
	return r.settle(ctx, j, err)
}

// settle says in the job's row how the run ended, so that the next need not wait for its lease.
func (r *Runner) settle(ctx context.Context, j *job, err error) error {
	stopped := errors.Is(ctx.Err(), context.Canceled) // by the process's end, which is not the job's fault
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var told *fault.Error
	switch {
	case err == nil:
		slog.InfoContext(ctx, "export complete", "job_id", j.id, "rows", j.Rows, "bytes", j.Bytes)
		return nil
	case errors.Is(err, errLeaseLost):
		slog.WarnContext(ctx, "export is another run's", "job_id", j.id)
		return nil
	case errors.As(err, &told): // another run would find the same
		slog.ErrorContext(ctx, "export failed", "job_id", j.id, "error", err)
		return r.fail(ctx, j, told.Message)
	case errors.Is(err, errLater) && j.moved:
		if err := r.release(ctx, j, j.attempts-1); err != nil {
			return err
		}
		return r.Again(ctx, j.id)
	case stopped:
		return errors.Join(err, r.release(ctx, j, j.attempts-1))
	case j.attempts >= MaxAttempts:
		reason := "internal error, in each of 3 attempts"
		if errors.Is(err, errLater) || errors.Is(err, context.DeadlineExceeded) {
			reason = "it took too long to find the events: narrow the filter"
		}
		return errors.Join(err, r.fail(ctx, j, reason))
	case errors.Is(err, errLater):
		if err := r.release(ctx, j, j.attempts); err != nil {
			return err
		}
		return r.Again(ctx, j.id)
	}
	return errors.Join(err, r.release(ctx, j, j.attempts))
}

// release lets the next run begin at once.
func (r *Runner) release(ctx context.Context, j *job, attempts int) error {
	err := r.owned(ctx, j, `lease_until = clock_timestamp(), attempts = $3`, attempts)
	if errors.Is(err, errLeaseLost) {
		return nil
	}
	return err
}

func (r *Runner) fail(ctx context.Context, j *job, reason string) error {
	err := r.DB.InTenant(ctx, j.tenantID, func(tx pgx.Tx) error {
		var mine bool
		err := tx.QueryRow(ctx, `select status = 'Running' and progress->>'lease' = $2 from export_jobs where id = $1 for update`, j.id, j.Lease).Scan(&mine)
		if err != nil || !mine {
			return err
		}
		return failJob(ctx, tx, j.id, reason)
	})
	r.abort(ctx, j)
	return err
}

// abort drops the parts of a job that failed; what is missed here the storage's lifecycle removes.
func (r *Runner) abort(ctx context.Context, j *job) {
	if j.Upload == "" {
		return
	}
	if err := r.Bucket.ResumeUpload(j.key(), j.Upload).Abort(ctx); err != nil {
		slog.WarnContext(ctx, "aborting an upload failed", "job_id", j.id, "error", err)
	}
}

// Sweep asks for a run of every job that nobody works on: queued ones whose invoke was lost, running ones whose run died.
func (r *Runner) Sweep(ctx context.Context) error {
	var due []string
	err := r.Reader.Unbound(ctx, func(tx pgx.Tx) (err error) {
		due, err = postgres.All(ctx, tx, pgx.RowTo[string], `select id::text from export_jobs where status in ('Queued', 'Running')
			and coalesce(lease_until, requested_at + $1) < clock_timestamp() order by requested_at limit $2`, lostAfter, sweepSize)
		return err
	})
	for _, id := range due {
		err = errors.Join(err, r.Again(ctx, id)) // the others must not wait for it
	}
	return err
}
