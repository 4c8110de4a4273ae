package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// late starts the last occurrence that was due so long ago that nobody will run it any more, if nobody has.
func (k *Keeper) late(ctx context.Context, report *Report, r held) error {
	occurrence, missed := r.missed(k.now())
	if !missed {
		return nil
	}
	begun, err := k.makeUp(ctx, r, occurrence)
	if err != nil {
		slog.ErrorContext(ctx, "an occurrence that was missed cannot be started; the next check tries again", "schedule_id", r.ID, "due", occurrence, "error", err)
		return err
	}
	if begun {
		slog.WarnContext(ctx, "an occurrence was missed and is run now", "schedule_id", r.ID, "due", occurrence)
		report.Late++
	}
	return nil
}

// makeUp starts a run for an occurrence that none has claimed, and says whether it has begun with that. The run of the occurrence's own name may be over:
// it failed before it came to the claim. A name is one run's for ever, so another is started, one an hour. Of all of them the claim takes one.
func (k *Keeper) makeUp(ctx context.Context, r held, occurrence time.Time) (begun bool, err error) {
	own := RunName(r.ID, occurrence)
	input := Execution{TenantID: r.tenantID, ScheduleID: r.ID, Occurrence: occurrence.UTC().Format(time.RFC3339)}
	for _, name := range []string{own, own + k.now().UTC().Format("-2006010215")} {
		id, err := start(ctx, k.Runs, name, input)
		if errors.Is(err, workflow.ErrRunExists) { // the clock's copy told it something else
			continue
		}
		if err != nil {
			return false, err
		}
		run, err := k.Runs.Describe(ctx, id)
		if errors.Is(err, workflow.ErrNoRun) { // it may not be seen at once
			return true, nil
		}
		if err != nil || run.Status == workflow.Running {
			return err == nil && k.now().Sub(run.Started) < grace, err
		}
	}
	return false, nil
}

// missed is the last occurrence that nobody ran.
func (h held) missed(now time.Time) (time.Time, bool) {
	if !h.Enabled || h.deleted {
		return time.Time{}, false
	}
	times, err := h.times()
	if err != nil {
		return time.Time{}, false
	}
	after := h.since.Add(-1) // since may be an occurrence itself
	if h.LastOccurrence != nil && h.LastOccurrence.Add(apart).After(after) {
		after = h.LastOccurrence.Add(apart)
	}
	if _, lost := times.Last(after, now.Add(-lateness)); !lost {
		return time.Time{}, false
	}
	return times.Last(after, now.Add(-Late))
}

// unstarted starts what a person asked for and the engine was not given: whoever took the request died in between.
func (k *Keeper) unstarted(ctx context.Context) error {
	type execution struct{ TenantID, ID string }
	all, err := postgres.All(ctx, k.DB.Lookup(), pgx.RowToStructByPos[execution], `select tenant_id, execution_id from lookup_unstarted_executions($1, $2)`, grace, perPage)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range all {
		failed = append(failed, k.restart(ctx, e.TenantID, e.ID))
	}
	return errors.Join(failed...)
}

// restart starts a run that a person asked for again; the engine starts it once. One that it has not begun with after an hour it never will.
func (k *Keeper) restart(ctx context.Context, tenantID, id string) error {
	const never = time.Hour
	var b pgx.Batch
	b.Queue(`update executions set status = 'failed', error_type = 'InternalError', error = 'the run was not begun within an hour', finished_at = $2
		where id = $1 and arn is null and status = 'running' and started_at < $3`, id, ident.Now(), k.now().Add(-never))
	if err := k.DB.Once(ctx, tenantID, &b); err != nil {
		return err
	}
	run, err := GetRun(ctx, k.DB.In(tenantID), id)
	if err != nil || run.Status != Running || run.ScheduleID == nil {
		return err
	}
	return StartRun(ctx, k.Runs, tenantID, *run.ScheduleID, id)
}
