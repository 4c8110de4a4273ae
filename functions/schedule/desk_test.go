package schedule_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	localclock "github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// resolvers answer the fields of schedules.
var resolvers = map[string]handler.Constructor{"create-schedule": functions.CreateSchedule, "update-schedule": functions.UpdateSchedule, "delete-schedule": functions.DeleteSchedule,
	"get-schedule": functions.GetSchedule, "list-schedules": functions.ListSchedules, "run-schedule-now": functions.RunScheduleNow, "schedule-runs": functions.ScheduleRuns,
	"schedule-run-iterations": functions.ScheduleRunIterations, "get-schedule-run": functions.GetScheduleRun}

// desk is a tenant whose people write schedules, with the real clock of one machine.
type desk struct {
	pgtest.World
	t      *testing.T
	p      *handlertest.Platform
	super  *pgx.Conn
	clock  *fickle
	engine *starter
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	p := handlertest.New(t)
	c, err := localclock.Open(t.Context(), localclock.Config{URL: p.DB.SuperURL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	d := &desk{World: p.DB.World(t, "acme"), t: t, p: p, super: p.DB.Superuser(t), clock: &fickle{Clock: c}, engine: &starter{started: map[string]string{}}}
	p.WithClock(d.clock).WithWorkflow(d.engine)
	return d
}

// ask calls a resolver as a user of that role.
func ask[R any](d *desk, role tenant.Role, name string, args object, sources ...any) (R, *fault.Error) {
	d.t.Helper()
	return handlertest.Call[R](d.t, d.p, name, resolvers[name], handlertest.Claims(d.World, role), args, sources...)
}

// daily is what a schedule of the agent needs, and what else is given.
func (d *desk) daily(more object) object {
	input := object{"name": "Report", "agentId": d.AgentID, "prompt": "Sum up the day.", "expression": "cron(0 9 * * ? *)"}
	for name, value := range more {
		if input[name] = value; value == nil {
			delete(input, name)
		}
	}
	return input
}

func (d *desk) create(more object) pkgschedule.Schedule {
	d.t.Helper()
	s, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "create-schedule", object{"input": d.daily(more)})
	require.Nil(d.t, refused)
	return s
}

// reconcile is the drift check.
func (d *desk) reconcile() {
	d.t.Helper()
	_, err := functions.ReconcileSchedules(d.p.Env(d.t, "reconcile-schedules")).Invoke(d.t.Context(), []byte(`{}`))
	require.NoError(d.t, err)
}

func (d *desk) change(sql string, args ...any) {
	d.t.Helper()
	_, err := d.super.Exec(d.t.Context(), sql, args...)
	require.NoError(d.t, err)
}

func (d *desk) count(table string) (n int) {
	d.t.Helper()
	require.NoError(d.t, d.super.QueryRow(d.t.Context(), `select count(*) from `+table).Scan(&n))
	return n
}

// fickle is a clock that may refuse.
type fickle struct {
	clock.Clock
	mu   sync.Mutex
	fail error
	puts int
}

func (f *fickle) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// told is how often it was told of a schedule.
func (f *fickle) told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.puts
}

func (f *fickle) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts++
	return f.fail
}

// Put implements clock.Clock.
func (f *fickle) Put(ctx context.Context, s clock.Schedule) error {
	if err := f.refusal(); err != nil {
		return err
	}
	return f.Clock.Put(ctx, s)
}

// Delete implements clock.Clock.
func (f *fickle) Delete(ctx context.Context, name string) error {
	if err := f.refusal(); err != nil {
		return err
	}
	return f.Clock.Delete(ctx, name)
}

// starter is the workflow engine as far as it is asked to start: by the port's contract, once by name and input.
type starter struct {
	workflow.Engine
	mu      sync.Mutex
	started map[string]string // inputs, by machine and name
	fail    error
}

// Start implements workflow.Runs.
func (e *starter) Start(_ context.Context, machine, name string, input json.RawMessage) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name = machine + " " + name
	if was, ok := e.started[name]; ok && was != string(input) {
		return "", workflow.ErrRunExists
	}
	if e.fail == nil {
		e.started[name] = string(input)
	}
	return "arn:" + name, e.fail
}

// reconcileFails is a drift check that cannot settle everything.
func (d *desk) reconcileFails(because error) {
	d.t.Helper()
	_, err := functions.ReconcileSchedules(d.p.Env(d.t, "reconcile-schedules")).Invoke(d.t.Context(), []byte(`{}`))
	require.ErrorIs(d.t, err, because)
}
