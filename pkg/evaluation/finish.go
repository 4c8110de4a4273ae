package evaluation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
)

// finish ends a run that has nothing left to do.
func (w *work) finish(ctx context.Context) error {
	err := w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		if err := w.hold(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update evaluation_runs set status = 'finished', lease_id = null, lease_until = null, finished_at = $2 where id = $1`, w.RunID, ident.Now())
		return err
	})
	if err == nil {
		w.signal("finished")
	}
	return err
}

// Cancel ends a run: cases that wait get no turn, and the turns that are under way are given up. Whoever commits must then deliver the notices. A run
// that was cancelled already stays as it is; one that is finished is a ValidationError.
func Cancel(ctx context.Context, tx pgx.Tx, tenantID, runID string) (Run, []notify.Notice, error) {
	r, err := GetRun(ctx, tx, runID)
	if err != nil {
		return r, nil, err
	}
	tag, err := tx.Exec(ctx, `update evaluation_runs set status = 'cancelled', lease_id = null, lease_until = null, finished_at = $2 where id = $1 and status = 'running'`,
		runID, ident.Now())
	if err != nil {
		return r, nil, err
	}
	var notices []notify.Notice
	if tag.RowsAffected() > 0 {
		if notices, err = cancelCases(ctx, tx, tenantID, runID); err != nil {
			return r, nil, err
		}
	}
	if r, err = GetRun(ctx, tx, runID); err == nil && r.Status != Cancelled {
		err = fault.Invalid("the run is %s", r.Status)
	}
	return r, notices, err
}

func cancelCases(ctx context.Context, tx pgx.Tx, tenantID, runID string) (notices []notify.Notice, err error) {
	if _, err := tx.Exec(ctx, `update evaluation_results set status = 'cancelled', finished_at = $2 where run_id = $1 and status = 'waiting'`, runID, ident.Now()); err != nil {
		return nil, err
	}
	cases, err := openCases(ctx, tx, runID)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		_, told, err := end(ctx, tx, tenantID, runID, c, CaseCancelled, wasStopped)
		if err != nil {
			return nil, err
		}
		notices = append(notices, told...)
	}
	return notices, nil
}
