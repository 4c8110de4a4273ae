package schedule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestAScheduleFromItsMakingToItsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	made := d.create(object{"timeZone": "Europe/Berlin", "title": "Daily", "metadata": `{ "n": 1 }`, "loop": object{"maxIterations": 3, "budget": object{"tokens": 1000},
		"goal": []any{object{"type": "contains", "texts": []string{"done"}}}}})
	require.True(t, made.Settled)
	require.True(t, made.Enabled)
	require.Equal(t, pkgschedule.MissedSkip, made.Missed)
	require.Equal(t, `{"n":1}`, *made.Metadata)
	require.Equal(t, "contains", made.Loop.Goal[0].Name)
	require.Len(t, made.NextRuns, 5)
	require.Equal(t, d.UserID, made.CreatedBy)
	got, refused := ask[pkgschedule.Schedule](d, tenant.Member, "get-schedule", object{"id": made.ID})
	require.Nil(t, refused)
	require.Equal(t, made, got)
	onClock, err := d.clock.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, clock.Schedule{Name: made.ID, Expression: "cron(0 9 * * ? *)", TimeZone: "Europe/Berlin", Enabled: true,
		Input: []byte(`{"tenantId":"` + d.TenantID + `","scheduleId":"` + made.ID + `","occurrence":"<aws.scheduler.scheduled-time>"}`)}, onClock)

	told := d.clock.told()
	changed, refused := ask[pkgschedule.Schedule](d, tenant.Owner, "update-schedule", object{"id": made.ID, "input": object{"name": "Evening report", "prompt": "Sum up.", "title": nil, "missed": "run_once", "loop": nil}})
	require.Nil(t, refused)
	require.Equal(t, []any{"Evening report", "Sum up.", pkgschedule.MissedRunOnce, true}, []any{changed.Name, *changed.Prompt, changed.Missed, changed.Settled})
	require.Nil(t, changed.Title)
	require.Nil(t, changed.Loop)
	require.Equal(t, told, d.clock.told(), "nothing of it is the clock's")
	changed, refused = ask[pkgschedule.Schedule](d, tenant.Owner, "update-schedule", object{"id": made.ID, "input": object{"expression": "cron(0 18 ? * MON-FRI *)", "timeZone": nil, "startAt": "2090-01-01T00:00:00.700+01:00"}})
	require.Nil(t, refused)
	require.Equal(t, []string{"UTC", "2089-12-31T23:00:00.000000Z", "2090-01-02T18:00:00.000000Z"}, []string{changed.TimeZone, changed.StartAt.String(), changed.NextRuns[0].String()})
	onClock, err = d.clock.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, []any{"cron(0 18 ? * MON-FRI *)", "UTC", changed.StartAt.Time, true}, []any{onClock.Expression, onClock.TimeZone, onClock.Start, onClock.Enabled})
	changed, refused = ask[pkgschedule.Schedule](d, tenant.Owner, "update-schedule", object{"id": made.ID, "input": object{"enabled": false}})
	require.Nil(t, refused)
	require.Empty(t, changed.NextRuns)
	onClock, err = d.clock.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.False(t, onClock.Enabled)

	gone, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "delete-schedule", object{"id": made.ID})
	require.Nil(t, refused)
	require.Equal(t, "Evening report", gone.Name)
	_, err = d.clock.Get(t.Context(), made.ID)
	require.ErrorIs(t, err, clock.ErrNotFound)
	_, refused = ask[pkgschedule.Schedule](d, tenant.Admin, "delete-schedule", object{"id": made.ID})
	require.Equal(t, fault.NotFound, refused.Type)
	require.Zero(t, d.count("schedules"))
}

func TestListsOfSchedules(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"C", "A", "B"} {
		d.create(object{"name": name, "enabled": name != "B"})
	}
	names := func(args object) (all []string) {
		for token := (*string)(nil); ; {
			args["nextToken"] = token
			p, refused := ask[page.Page[pkgschedule.Schedule]](d, tenant.Member, "list-schedules", args)
			require.Nil(t, refused)
			for _, s := range p.Items {
				all = append(all, s.Name)
				require.Equal(t, s.Enabled, len(s.NextRuns) == 5)
			}
			if token = p.NextToken; token == nil {
				return all
			}
		}
	}
	require.Equal(t, []string{"A", "B", "C"}, names(object{"limit": 2}))
	require.Equal(t, []string{"B"}, names(object{"filter": object{"enabled": false}}))
	require.Equal(t, []string{"A", "C"}, names(object{"limit": 1, "filter": object{"enabled": true, "agentId": d.AgentID}}))
	require.Empty(t, names(object{"filter": object{"routineId": ident.New()}}))
	_, refused := ask[object](d, tenant.Member, "list-schedules", object{"filter": object{"agentId": "x"}})
	require.Equal(t, fault.ValidationError, refused.Type)
}

func TestWhatNoScheduleMayHave(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	routine := object{"agentId": nil, "prompt": nil, "routineId": ident.New()}
	with := func(more object, field string, value any) object {
		all := object{field: value}
		for name, v := range more {
			if _, given := all[name]; !given {
				all[name] = v
			}
		}
		return all
	}
	for _, c := range []struct {
		given object
		says  string
	}{
		{object{"name": ""}, "name must not be empty"},
		{object{"name": strings.Repeat("x", 201)}, "name is longer than 200 bytes"},
		{object{"prompt": nil}, "prompt is required: an agent's schedule tells it what to do"},
		{object{"prompt": " "}, "prompt must not be empty"},
		{object{"agentId": nil}, "a schedule has an agentId or a routineId, not both"},
		{object{"routineId": ident.New()}, "a schedule has an agentId or a routineId, not both"},
		{object{"agentId": ident.New()}, "agent not found"},
		{object{"agentId": "x"}, "agent not found"},
		{routine, "routine not found"},
		{with(routine, "prompt", "Go."), "prompt is an agent's: a routine has an input"},
		{with(routine, "title", "T"), "title is an agent's: a routine has an input"},
		{with(routine, "loop", object{"maxIterations": 1}), "loop is an agent's: a routine has an input"},
		{with(routine, "input", "[1]"), "input must be a JSON object"},
		{object{"input": "{}"}, "input is a routine's: an agent has a prompt"},
		{object{"metadata": "[]"}, "metadata must be a JSON object"},
		{object{"missed": "always"}, "missed must be skip or run_once"},
		{object{"expression": "every day"}, `"every day" is no schedule expression: write rate(5 minutes), cron(minutes hours day-of-month month day-of-week year) or at(yyyy-mm-ddThh:mm:ss)`},
		{object{"expression": "cron(0 9 * * * *)"}, `cron: the fields day-of-month "*" and day-of-week "*" both say which days; one of them must be ?`},
		{object{"timeZone": "Mars/Olympus"}, `"Mars/Olympus" is not a time zone of the IANA database, such as UTC or Europe/Berlin`},
		{object{"expression": "at(2020-01-01T00:00:00)"}, "the schedule would never run: none of its times is still to come"},
		{object{"expression": "cron(0 0 30 2 ? *)"}, "the schedule would never run: none of its times is still to come"},
		{object{"endAt": "2020-01-01T00:00:00Z"}, "the schedule would never run: none of its times is still to come"},
		{object{"expression": "at(2090-03-26T02:30:00)", "timeZone": "Europe/Berlin"}, "the schedule would never run: none of its times is still to come"},
		{object{"startAt": "2091-01-01T00:00:00Z", "endAt": "2090-01-01T00:00:00Z"}, "the schedule's end is before its start"},
		{object{"startAt": "2201-01-01T00:00:00Z"}, "start and end of a schedule are in the years 1970-2199"},
		{object{"expression": "at(2090-01-01T00:00:00)", "endAt": "2091-01-01T00:00:00Z"}, "an at() has no startAt and no endAt: it runs once"},
		{object{"loop": object{}}, "loop: maxIterations must be from 1 to 100"},
		{object{"loop": object{"maxIterations": 101}}, "loop: maxIterations must be from 1 to 100"},
		{object{"loop": object{"maxIterations": 2, "budget": object{}}}, "loop: budget holds tokens, usdMicros or both"},
		{object{"loop": object{"maxIterations": 2, "budget": object{"tokens": 0}}}, "loop: tokens must be from 1 to 1000000000"},
		{object{"loop": object{"maxIterations": 2, "goal": []any{object{"type": "exact"}}}}, `loop: goal: evaluator "exact": text is required: only the cases of an evaluation expect something`},
		{object{"loop": object{"maxIterations": 2, "continuationPrompt": ""}}, "continuationPrompt must not be empty"},
		{object{"clientToken": ""}, "clientToken must not be empty"},
	} {
		_, refused := ask[object](d, tenant.Admin, "create-schedule", object{"input": d.daily(c.given)})
		require.NotNil(t, refused, "%v", c.given)
		require.Equal(t, c.says, refused.Message, "%v", c.given)
	}
	require.Zero(t, d.count("schedules"))
	require.Zero(t, d.clock.told())

	s := d.create(nil)
	for says, given := range map[string]object{"name and expression must not be null": {"expression": nil}, "prompt is required: an agent's schedule tells it what to do": {"prompt": nil},
		"prompt is an agent's: a routine has an input": {"agentId": nil, "routineId": ident.New()}} {
		_, refused := ask[object](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": given})
		require.Equal(t, says, refused.Message)
	}
	d.change(`update agents set status = 'archived' where id = $1`, d.AgentID)
	_, refused := ask[object](d, tenant.Admin, "create-schedule", object{"input": d.daily(nil)})
	require.Equal(t, "the agent is archived", refused.Message)
	changed, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": object{"enabled": false}})
	require.Nil(t, refused, "a schedule whose agent was archived since can still be disabled")
	require.False(t, changed.Enabled)
}

// A schedule whose times are over can be given another name, or times to come, and be disabled.
func TestAScheduleThatIsOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.create(object{"expression": "at(2090-01-01T00:00:00)"})
	d.change(`update schedules set expression = 'at(2020-01-01T00:00:00)'`)
	update := func(input object) pkgschedule.Schedule {
		got, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": input})
		require.Nil(t, refused)
		require.True(t, got.Settled)
		return got
	}
	require.Empty(t, update(object{"name": "Once"}).NextRuns)
	require.Empty(t, update(object{"enabled": false}).NextRuns)
	_, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": object{"enabled": true}})
	require.Equal(t, "the schedule would never run: none of its times is still to come", refused.Message)
	require.Len(t, update(object{"enabled": true, "expression": "at(2091-01-01T00:00:00)"}).NextRuns, 1)
}

// The same token and input make one schedule; another input is refused.
func TestACreationThatIsRetried(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.create(object{"clientToken": "one"})
	require.Equal(t, first.ID, d.create(object{"clientToken": "one"}).ID)
	_, refused := ask[object](d, tenant.Admin, "create-schedule", object{"input": d.daily(object{"clientToken": "one", "name": "Another"})})
	require.Equal(t, fault.ValidationError, refused.Type)
	require.Equal(t, 1, d.count("schedules"))
	require.Equal(t, 1, d.clock.told())
}

// A clock that is busy keeps nobody from writing: what it was not told is settled later, and the schedule says so.
func TestAClockThatIsBusy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.clock.refuse(clock.ErrThrottled)
	s := d.create(nil)
	require.False(t, s.Settled)
	d.reconcileFails(clock.ErrThrottled)
	d.clock.refuse(nil)
	d.reconcile()
	got, refused := ask[pkgschedule.Schedule](d, tenant.Member, "get-schedule", object{"id": s.ID})
	require.Nil(t, refused)
	require.True(t, got.Settled)

	d.clock.refuse(errors.New("no answer"))
	changed, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": object{"expression": "rate(1 day)"}})
	require.Nil(t, refused)
	require.False(t, changed.Settled)
	changed, refused = ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": object{"title": "T"}})
	require.Nil(t, refused)
	require.False(t, changed.Settled, "it is told again with the next change, whatever that is")
	d.clock.refuse(nil)
	changed, refused = ask[pkgschedule.Schedule](d, tenant.Admin, "update-schedule", object{"id": s.ID, "input": object{"title": "U"}})
	require.Nil(t, refused)
	require.True(t, changed.Settled)

	d.clock.refuse(clock.ErrThrottled)
	gone, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "delete-schedule", object{"id": s.ID})
	require.Nil(t, refused)
	require.False(t, gone.Settled)
	_, refused = ask[pkgschedule.Schedule](d, tenant.Admin, "get-schedule", object{"id": s.ID})
	require.Equal(t, fault.NotFound, refused.Type, "to everybody it is gone")
	d.clock.refuse(nil)
	d.reconcile()
	require.Zero(t, d.count("schedules"))
	_, err := d.clock.Get(t.Context(), s.ID)
	require.ErrorIs(t, err, clock.ErrNotFound)
}

// A clock that is full makes a schedule that would never run: there is none, and the same call can be tried again.
func TestAClockThatIsFull(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.clock.refuse(fmt.Errorf("schedule: %w", clock.ErrTooMany))
	input := object{"input": d.daily(object{"clientToken": "one"})}
	for range 2 {
		_, refused := ask[object](d, tenant.Admin, "create-schedule", input)
		require.Equal(t, fault.RateLimitExceeded, refused.Type)
		require.Equal(t, "the deployment has as many schedules as its clock may have; its operator can have the quota raised", refused.Message)
		require.Zero(t, d.count("schedules"))
	}
	d.clock.refuse(nil)
	s, refused := ask[pkgschedule.Schedule](d, tenant.Admin, "create-schedule", input)
	require.Nil(t, refused)
	_, err := d.clock.Get(t.Context(), s.ID)
	require.NoError(t, err)
}

func TestRunningAScheduleNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.create(object{"enabled": false})
	run, refused := ask[pkgschedule.Run](d, tenant.Admin, "run-schedule-now", object{"id": s.ID, "clientToken": "one"})
	require.Nil(t, refused)
	require.Equal(t, []any{pkgschedule.Manual, pkgschedule.Running, s.ID}, []any{run.Trigger, run.Status, *run.ScheduleID})
	again, refused := ask[pkgschedule.Run](d, tenant.Admin, "run-schedule-now", object{"id": s.ID, "clientToken": "one"})
	require.Nil(t, refused)
	require.Equal(t, run.ID, again.ID)
	want := map[string]string{"auto-thread " + run.ID: fmt.Sprintf(`{"tenantId":"%s","scheduleId":"%s","executionId":"%s"}`, d.TenantID, s.ID, run.ID)}
	require.Equal(t, want, d.engine.started)

	d.engine.fail = errors.New("no answer")
	late, refused := ask[pkgschedule.Run](d, tenant.Admin, "run-schedule-now", object{"id": s.ID})
	require.Nil(t, refused, "it is written, and is started later")
	require.Equal(t, want, d.engine.started)
	d.engine.fail = nil
	d.change(`update executions set started_at = now() - interval '2 minutes'`)
	d.reconcile()
	require.Contains(t, d.engine.started, "auto-thread "+late.ID)

	pages, refused := ask[[]page.Page[pkgschedule.Run]](d, tenant.Member, "schedule-runs", object{"limit": 1}, s)
	require.Nil(t, refused)
	require.Equal(t, late.ID, pages[0].Items[0].ID, "newest first")
	pages, refused = ask[[]page.Page[pkgschedule.Run]](d, tenant.Member, "schedule-runs", object{"limit": 1, "nextToken": pages[0].NextToken}, s)
	require.Nil(t, refused)
	require.Equal(t, run.ID, pages[0].Items[0].ID)
	require.Nil(t, pages[0].NextToken)
	got, refused := ask[pkgschedule.Run](d, tenant.Member, "get-schedule-run", object{"id": run.ID})
	require.Nil(t, refused)
	require.Equal(t, run.ID, got.ID)
	iterations, refused := ask[[][]pkgschedule.Iteration](d, tenant.Member, "schedule-run-iterations", object{}, run, late)
	require.Nil(t, refused)
	require.Equal(t, [][]pkgschedule.Iteration{{}, {}}, iterations)
}

// Members read; to another tenant there is nothing.
func TestWhoMayDoWhatWithSchedules(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.create(nil)
	run, refused := ask[pkgschedule.Run](d, tenant.Owner, "run-schedule-now", object{"id": s.ID})
	require.Nil(t, refused)
	other := &desk{World: d.p.DB.World(t, "globex"), t: t, p: d.p, super: d.super, clock: d.clock, engine: d.engine}
	for name, args := range map[string]object{
		"create-schedule":  {"input": d.daily(nil)},
		"update-schedule":  {"id": s.ID, "input": object{"name": "Theirs"}},
		"delete-schedule":  {"id": s.ID},
		"run-schedule-now": {"id": s.ID},
	} {
		_, refused := ask[object](d, tenant.Member, name, args)
		require.Equal(t, fault.Forbidden, refused.Type, name)
		_, refused = ask[object](other, tenant.Owner, name, args)
		require.Equal(t, fault.NotFound, refused.Type, name)
	}
	for name, id := range map[string]string{"get-schedule": s.ID, "get-schedule-run": run.ID} {
		_, refused = ask[object](other, tenant.Owner, name, object{"id": id})
		require.Equal(t, fault.NotFound, refused.Type, name)
		_, refused = ask[object](d, tenant.Member, name, object{"id": "x"})
		require.Equal(t, fault.NotFound, refused.Type, name)
	}
	list, refused := ask[page.Page[pkgschedule.Schedule]](other, tenant.Owner, "list-schedules", object{})
	require.Nil(t, refused)
	require.Empty(t, list.Items)
	runs, refused := ask[[]page.Page[pkgschedule.Run]](other, tenant.Owner, "schedule-runs", object{}, s)
	require.Nil(t, refused)
	require.Empty(t, runs[0].Items)
	got, refused := ask[pkgschedule.Schedule](d, tenant.Member, "get-schedule", object{"id": s.ID})
	require.Nil(t, refused)
	require.Equal(t, "Report", got.Name)
	require.WithinDuration(t, time.Now(), got.UpdatedAt.Time, time.Hour)
}
