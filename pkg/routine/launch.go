package routine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// BeginStep is the function that begins what a task of a run asks for. It is called with a Call.
const BeginStep = "begin-step"

// Engine is where runs run.
type Engine struct {
	DB       *postgres.DB
	Machines workflow.Machines
	Runs     workflow.Runs
	Function func(name string) string // a function's name in this deployment: Env.FunctionName()
	Signal   func(point string)       // tests: crash points; nil: none
}

func (e *Engine) signal(point string) {
	if e.Signal != nil {
		e.Signal(point)
	}
}

// Launch starts a run that Start has written, when that is committed, and answers how it is then. It may be called any number of times, by anybody: the
// run starts once. After an error it is as it was, and the sweep will launch it, or, after a *Refusal, end it. One that is ended meanwhile, without the
// engine, is stopped there.
func (e *Engine) Launch(ctx context.Context, tenantID, runID string) (Run, error) {
	r, err := GetRun(ctx, e.DB.In(tenantID), runID)
	if err != nil || r.Status != Starting {
		return r, err
	}
	if err := e.Prepare(ctx, tenantID, r.RoutineID, r.Version); err != nil {
		return r, err
	}
	e.signal("run prepared")
	began := ident.Now()
	arn, err := e.Runs.Start(ctx, MachineName(r.RoutineID, r.Version), r.ID, json.RawMessage(*r.Input))
	if errors.Is(err, workflow.ErrNoMachine) { // somebody took it away in the engine: whoever launches next makes it again
		return r, errors.Join(err, e.mark(ctx, tenantID, r.RoutineID, r.Version, Waiting))
	}
	if err != nil {
		return r, err
	}
	e.signal("run started")
	late := false
	err = e.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update routine_runs set status = 'running', arn = $2, started_at = $3, look_after = clock_timestamp() + $4 where id = $1 and status = 'starting'`,
			r.ID, arn, began, firstLook)
		late = tag.RowsAffected() == 0
		return err
	})
	if err != nil {
		return r, err
	}
	if r, err = GetRun(ctx, e.DB.In(tenantID), runID); err != nil || !late || !r.Status.Over() { // else somebody else has launched it
		return r, err
	}
	return r, e.Runs.Stop(ctx, arn, *cmp.Or(r.Error, new("")), *cmp.Or(r.Cause, new(""))) // one that ended by itself stays as it is
}

// Refusal says that the engine will not have a version.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Prepare gives the engine the machine of a version; one that it has stays. What it refuses is a *Refusal, and the routine is what it was before that
// version: one that was never anything else is gone. After any other error whoever starts the routine prepares it.
func (e *Engine) Prepare(ctx context.Context, tenantID, routineID string, version int) error {
	v, err := postgres.One(ctx, e.DB.In(tenantID), "routine", func(row pgx.CollectableRow) (v struct {
		definition string
		status     VersionStatus
		refusal    *string
	}, err error) {
		err = row.Scan(&v.definition, &v.status, &v.refusal)
		return v, err
	}, `select definition, status, refusal from routine_versions where routine_id = $1 and version = $2`, routineID, version)
	switch {
	case err != nil:
		return err
	case v.status == Ready:
		return nil
	case v.status == Refused:
		return &Refusal{*v.refusal}
	case v.status == Gone:
		return fmt.Errorf("version %d of routine %s has been retired", version, routineID)
	}
	target := Target{TenantID: tenantID, RoutineID: routineID, Version: version, Function: e.Function(BeginStep)}
	compiled, err := Compile(v.definition, target)
	if err == nil {
		err = e.Machines.Put(ctx, target.Machine(), compiled)
	}
	if refused := new(workflow.DefinitionError); errors.As(err, &refused) {
		reason := &Refusal{invalid(refused.Problems).Error()}
		return errors.Join(reason, e.refuse(ctx, tenantID, routineID, version, reason.Reason))
	}
	if err != nil && !errors.Is(err, workflow.ErrMachineExists) { // it is this version's by its name, as an older release of the platform compiled it
		return err
	}
	e.signal("machine put")
	return e.mark(ctx, tenantID, routineID, version, Ready)
}

// mark writes whether the engine has a version's machine. When it has, what came before is retired.
func (e *Engine) mark(ctx context.Context, tenantID, routineID string, version int, s VersionStatus) error {
	gone := false
	err := e.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update routine_versions set status = $3 where routine_id = $1 and version = $2 and status in ('waiting', 'ready')`, routineID, version, s)
		if err != nil {
			return err
		}
		if gone = tag.RowsAffected() == 0; gone || s != Ready {
			return nil
		}
		_, err = tx.Exec(ctx, `update routine_versions v set retire_after = clock_timestamp() from routines r
			where r.id = $1 and v.routine_id = r.id and v.version < r.current_version and r.current_version = $2 and v.status in ('waiting', 'ready') and v.retire_after is null`,
			routineID, version)
		return err
	})
	if err == nil && gone && s == Ready { // it was retired while its machine was being made
		err = e.Machines.Delete(ctx, MachineName(routineID, version))
	}
	return err
}

// refuse writes that the engine will not have a version. The newest that is not refused is the current one again; a routine without any is gone, unless
// it has runs.
func (e *Engine) refuse(ctx context.Context, tenantID, routineID string, version int, reason string) error {
	slog.WarnContext(ctx, "the workflow engine refuses a definition that was checked", "routine_id", routineID, "version", version, "error", reason)
	return e.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`select from routines where id = $1 for no key update`, routineID)
		b.Queue(`update routine_versions set status = 'refused', refusal = $3, retire_after = null where routine_id = $1 and version = $2`, routineID, version, reason)
		b.Queue(`update routines r set current_version = v.version from (
				select max(version) as version from routine_versions where routine_id = $1 and version < $2 and status in ('waiting', 'ready')) v
			where r.id = $1 and r.current_version = $2 and v.version is not null`, routineID, version)
		only := `not exists (select from routine_versions where routine_id = $1 and status <> 'refused') and not exists (select from routine_runs where routine_id = $1)`
		b.Queue(`update routines set deleted_at = clock_timestamp() where id = $1 and `+only, routineID) // the sweep takes it away
		return tx.SendBatch(ctx, &b).Close()
	})
}
