package evaluation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

const (
	maxTries   = 5 // of a grader that cannot be asked
	asked      = "the agent asked a person, and nobody answers in an evaluation"
	outOfTime  = "the case took longer than an hour"
	unreached  = "the grader could not be asked"
	wasStopped = "the evaluation run was cancelled"
)

// rate ends the cases whose turns are over, and those that must not go on. It returns how many go on.
func (w *work) rate(ctx context.Context, cases []openCase) (running int, err error) {
	ctx, cancel := context.WithTimeout(ctx, gradingTime)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, c := range cases {
		all.Go(func() {
			over, failed := w.rateOne(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			if !over {
				running++
			}
		})
	}
	all.Wait()
	return running, err
}

func (w *work) rateOne(ctx context.Context, c openCase) (over bool, err error) {
	switch {
	case c.status == turn.Waiting:
		return w.giveUp(ctx, c, asked)
	case c.status == turn.Queued || c.status == turn.Running:
		if time.Since(w.created.Time) > runTime {
			return w.giveUp(ctx, c, tookTooLong)
		}
		if time.Since(c.opened.Time) > caseTime {
			return w.giveUp(ctx, c, outOfTime)
		}
		return false, nil
	case c.status != turn.Succeeded:
		t, err := turn.Get(ctx, w.DB.In(w.TenantID), c.turnID)
		if err != nil {
			return false, err
		}
		reason := t.Reason()
		return true, w.settle(ctx, c, CaseFailed, nil, &reason)
	case time.Now().Before(w.pausedUntil(c)):
		return false, nil
	}
	x, err := Sample(ctx, w.DB.In(w.TenantID), c.turnID, ByTurn)
	if err != nil {
		return false, err
	}
	x.Expected = c.expected
	graded, err := w.Grader.Grade(trace.In(ctx, trace.Scope{TurnID: c.turnID}), w.list, x)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return false, err // the worker stops: that is no failure of the grader's
		}
		slog.WarnContext(ctx, "a grader could not be asked", "tenant_id", w.TenantID, "evaluation_run_id", w.RunID, "case", c.number, "error", err)
		if c.tries+1 < maxTries {
			return false, w.later(ctx, c)
		}
		graded = grade.WithoutModel(w.list, x, unreached)
	}
	w.signal("graded")
	status := CasePassed
	for _, s := range graded.Scores {
		if s.Score < w.threshold {
			status = CaseFailed
		}
	}
	return true, w.settle(ctx, c, status, &graded, nil)
}

// settle writes what came of a case, and closes its thread. A case that has a result keeps it.
func (w *work) settle(ctx context.Context, c openCase, status ResultStatus, graded *grade.Graded, reason *string) error {
	var notices []notify.Notice
	err := w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		notices = nil
		th, err := thread.Lock(ctx, tx, c.threadID)
		if err != nil {
			return err
		}
		scores := []grade.Score{}
		if graded != nil {
			scores = graded.Scores
		}
		tag, err := tx.Exec(ctx, `update evaluation_results set status = $3, scores = $4, error = $5, finished_at = $6 where run_id = $1 and number = $2 and status = 'running'`,
			w.RunID, c.number, status, scores, reason, ident.Now())
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		var b pgx.Batch
		if graded != nil {
			record(&b, c.turnID, *graded, ident.Now().Time)
		}
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		notices, err = closeThread(ctx, tx, w.TenantID, th)
		return err
	})
	if err == nil {
		w.signal("settled")
		notify.Deliver(ctx, w.DB, w.Publish, w.TenantID, notices...)
	}
	return err
}

// giveUp ends a turn that must not go on, and its case; a turn that has ended meanwhile is rated in the next round.
func (w *work) giveUp(ctx context.Context, c openCase, reason string) (over bool, err error) {
	var notices []notify.Notice
	err = w.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		over, notices = false, nil
		if err := w.hold(ctx, tx); err != nil {
			return err
		}
		over, notices, err = end(ctx, tx, w.TenantID, w.RunID, c, CaseFailed, reason)
		return err
	})
	if err == nil {
		notify.Deliver(ctx, w.DB, w.Publish, w.TenantID, notices...)
	}
	return over, err
}

// end gives a case's turn up and writes its result; not ended: the turn was over already.
func end(ctx context.Context, tx pgx.Tx, tenantID, runID string, c openCase, status ResultStatus, reason string) (ended bool, notices []notify.Notice, err error) {
	th, err := thread.Lock(ctx, tx, c.threadID)
	if err != nil {
		return false, nil, err
	}
	given, err := turn.GiveUp(ctx, tx, c.turnID, reason)
	if err != nil || !given && status != CaseCancelled {
		return false, nil, err
	}
	var b pgx.Batch
	b.Queue(`update evaluation_results set status = $3, error = $4, finished_at = $5 where run_id = $1 and number = $2 and status = 'running'`,
		runID, c.number, status, reason, ident.Now())
	b.Queue(`update thread_turns set score_after = null where id = $1 and score_after is not null`, c.turnID)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return false, nil, err
	}
	notices, err = closeThread(ctx, tx, tenantID, th)
	return true, notices, err
}

// closeThread closes a case's thread, unless a person moved it to where that is not allowed.
func closeThread(ctx context.Context, tx pgx.Tx, tenantID string, th thread.Thread) ([]notify.Notice, error) {
	closed := thread.Closed
	if allowed := th.Status.Check(closed) == nil; !allowed {
		return nil, nil
	}
	th, changed, err := thread.Update(ctx, tx, th.ID, thread.Fields{Status: text.Patch[thread.Status]{Set: true, Value: &closed}})
	if err != nil || !changed {
		return nil, err
	}
	var b pgx.Batch
	notice := notify.Queue(&b, tenantID, th.UUID, thread.Updated(tenantID, th))
	return []notify.Notice{notice}, tx.SendBatch(ctx, &b).Close()
}

func (w *work) pausedUntil(c openCase) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again[c.number]
}

// later has a case rated again after a while.
func (w *work) later(ctx context.Context, c openCase) error {
	w.mu.Lock()
	w.again[c.number] = time.Now().Add(cmp.Or(w.Pause, 10*time.Second))
	w.mu.Unlock()
	var b pgx.Batch
	b.Queue(`update evaluation_results set tries = tries + 1 where run_id = $1 and number = $2 and status = 'running'`, w.RunID, c.number)
	return w.DB.Once(context.WithoutCancel(ctx), w.TenantID, &b)
}
