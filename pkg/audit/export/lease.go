package export

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// errLeaseLost ends a run whose job belongs to another run now, or to none.
var errLeaseLost = errors.New("export: the lease is lost")

// gaveUp is why a job failed that killed all its runs.
const gaveUp = "the export was begun 3 times and never finished"

// progress is what the next run needs, as it is in the job's row.
type progress struct {
	Lease  string        `json:"lease"`            // of the run that may write
	Upload string        `json:"upload,omitempty"` // id of the multipart upload; empty: none, the file begins anew
	Parts  int32         `json:"parts,omitempty"`  // that are written, and what is in them:
	Bytes  int64         `json:"bytes,omitempty"`
	Rows   int64         `json:"rows,omitempty"`
	After  *trail.Cursor `json:"after,omitempty"` // the last event
	Hash   []byte        `json:"hash,omitempty"`  // state of the SHA-256 over the bytes
	SHA256 string        `json:"sha256,omitempty"`
	Whole  bool          `json:"whole,omitempty"` // the last part is written; SHA256 is the file's
}

// job is what a run works on.
type job struct {
	progress
	id       string
	tenantID string // whose row it is
	format   Format
	filter   trail.Filter
	attempts int
	moved    bool // this run finished a part
}

func (j *job) key() string { return Key(j.id, j.format) }

// claim takes the job for a new run; nil: it is finished, or somebody else runs it.
func (r *Runner) claim(ctx context.Context, jobID string) (claimed *job, err error) {
	if !ident.Valid(jobID) {
		return nil, fault.Missing("export")
	}
	tenantID, err := r.tenant(ctx, jobID)
	if err != nil {
		return nil, err
	}
	var dead *job
	err = r.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		claimed, dead = nil, nil // the transaction may be run again
		var status Status
		var held bool
		var saved *progress
		j := &job{id: jobID, tenantID: tenantID}
		err := tx.QueryRow(ctx, `select format, filter, status, attempts, progress, coalesce(lease_until > clock_timestamp(), false)
			from export_jobs where id = $1 for update`, jobID).Scan(&j.format, &j.filter, &status, &j.attempts, &saved, &held)
		if err != nil || held || status != Queued && status != Running {
			return err
		}
		if saved != nil {
			j.progress = *saved
		}
		if j.attempts >= MaxAttempts {
			dead = j
			return failJob(ctx, tx, jobID, gaveUp)
		}
		claimed = j
		j.attempts++
		j.Lease = ident.New()
		_, err = tx.Exec(ctx, `update export_jobs set status = 'Running', started_at = coalesce(started_at, clock_timestamp()), attempts = $2,
			progress = $3, lease_until = clock_timestamp() + $4 where id = $1`, jobID, j.attempts, j.progress, r.lease())
		return err
	})
	if err == nil && dead != nil {
		slog.ErrorContext(ctx, "export gave up", "job_id", jobID)
		r.abort(ctx, dead)
	}
	return claimed, err
}

// tenant is whose row the job is.
func (r *Runner) tenant(ctx context.Context, jobID string) (tenantID string, err error) {
	err = r.Reader.Unbound(ctx, func(tx pgx.Tx) error {
		tenantID, err = postgres.One(ctx, tx, "export", pgx.RowTo[string], `select tenant_id::text from export_jobs where id = $1`, jobID)
		return err
	})
	return tenantID, err
}

func failJob(ctx context.Context, tx pgx.Tx, jobID, reason string) error {
	_, err := tx.Exec(ctx, `update export_jobs set status = 'Failed', error = $2, finished_at = clock_timestamp(), lease_until = null, progress = null
		where id = $1`, jobID, reason)
	return err
}

// hold renews the lease until the returned function is called, which may be twice, and ends the context when it is lost.
func (r *Runner) hold(ctx context.Context, j *job) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		tick := time.NewTicker(r.lease() / 4)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := r.owned(ctx, j, `lease_until = clock_timestamp() + $3`, r.lease())
			if errors.Is(err, errLeaseLost) {
				cancel(err)
				return
			}
			if err != nil {
				slog.WarnContext(ctx, "renewing the lease failed", "job_id", j.id, "error", err)
			}
		}
	})
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			close(stop)
			cancel(nil) // also a renewal that waits for a dead connection
			done.Wait()
		})
	}
}

// save writes the run's progress, and with it renews the lease.
func (r *Runner) save(ctx context.Context, j *job) error {
	return r.owned(ctx, j, `progress = $3, lease_until = clock_timestamp() + $4`, j.progress, r.lease())
}

// owned changes the job's row if it is still this run's.
func (r *Runner) owned(ctx context.Context, j *job, set string, args ...any) error {
	return r.DB.InTenant(ctx, j.tenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update export_jobs set `+set+` where id = $1 and status = 'Running' and progress->>'lease' = $2`, append([]any{j.id, j.Lease}, args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			return errLeaseLost
		}
		return err
	})
}
