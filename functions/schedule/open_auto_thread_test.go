package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

// counts are the rows that an opened execution of an agent leaves.
func (w *world) counts() []int {
	w.t.Helper()
	return []int{w.count("executions"), w.count("threads"), w.count("thread_turns"), w.count("messages")}
}

func TestOpenAutoThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.schedule(object{"title": "Daily", "metadata": `{"team":"ops"}`})
	x, o := w.opened(s)
	require.Equal(t, "AUTO-1", *o.ThreadID)
	require.Equal(t, pkgschedule.Step{Action: "turn", ThreadID: o.ThreadID, TurnID: o.TurnID}, o)

	th := w.thread(*o.ThreadID)
	require.Equal(t, thread.Auto, th.Channel)
	require.Equal(t, thread.Open, th.Status)
	require.Equal(t, "Daily", *th.Title)
	require.JSONEq(t, `{"team":"ops"}`, *th.Metadata)
	require.Equal(t, w.AgentID, th.AgentID)
	require.Equal(t, w.SpaceID, th.SpaceID)
	require.Equal(t, []string{"user: Sum up the day."}, w.messages(th))
	require.Equal(t, pkgturn.Queued, w.turn(*o.TurnID).Status)
	require.Equal(t, record{Trigger: "scheduled", Status: "running", TurnID: o.TurnID}, x.record())

	again, failed := x.open()
	require.Nil(t, failed)
	require.Equal(t, o, again, "the engine asked twice")
	_, o = w.opened(s)
	require.Equal(t, "AUTO-2", *o.ThreadID)
	require.Equal(t, []int{2, 2, 2, 2}, w.counts())
	require.Zero(t, w.count("execution_iterations"))
}

func TestOpenTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(`update agents set turns_per_minute = 1`) // the limit counts the execution once
	x := w.due(w.schedule(nil))
	state := x.state()
	answers, failed := together(8, func() (pkgschedule.Step, *messages.InvokeResponse_Error) {
		return call[pkgschedule.Step](t.Context(), w, "open-auto-thread", state)
	})
	for i, a := range answers {
		require.Nil(t, failed[i])
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, []int{1, 1, 1, 1}, w.counts())
}

// An occurrence that is fired many times is run once, also if each fire became a run of the machine. The others end well and do no harm.
func TestDuplicatesOfOneOccurrence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, at := w.schedule(nil), time.Now()
	var runs []*execution
	for range 8 {
		runs = append(runs, w.at(s, at))
	}
	next := make(chan *execution, len(runs))
	for _, x := range runs {
		next <- x
	}
	answers, failed := together(len(runs), func() (pkgschedule.Step, *messages.InvokeResponse_Error) { return (<-next).open() })
	actions := map[pkgschedule.Action]int{}
	for i, a := range answers {
		require.Nil(t, failed[i])
		actions[a.Action]++
	}
	require.Equal(t, map[pkgschedule.Action]int{"turn": 1, "skip": 7}, actions)
	require.Equal(t, []int{1, 1, 1, 1}, w.counts())

	var winner *execution
	for _, x := range runs {
		if x.data["step"].(pkgschedule.Step).Action == "turn" {
			winner = x
			continue
		}
		x.fails(&pkgschedule.Failure{Error: "States.Timeout"})
		r, failed := x.close()
		require.Nil(t, failed)
		require.Equal(t, pkgschedule.Result{Status: "skipped"}, r)
		step, failed := x.next()
		require.Nil(t, failed)
		require.Equal(t, pkgschedule.CloseThread, step.Action)
	}
	require.Equal(t, "running", winner.record().Status)
	require.Equal(t, "succeeded", string(winner.whole().Status))
	var last time.Time
	require.NoError(t, w.super.QueryRow(t.Context(), `select last_occurrence from schedules`).Scan(&last))
	require.Equal(t, at.Unix(), last.Unix())
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change        object
		arrange       string
		kind, message string
	}{
		"suspended":      {nil, `update agents set status = 'suspended'`, "Forbidden", "the agent is suspended and takes no turns"},
		"archived":       {nil, `update agents set status = 'archived'`, "Forbidden", "the agent is archived and takes no turns"},
		"limited":        {nil, `update agents set status = 'active', turns_per_hour = 1`, "RateLimitExceeded", "the agent's limit of 1 turns per hour is reached"},
		"no budget":      {nil, `insert into budgets (tenant_id, scope, scope_id, monthly_micros) select tenant_id, 'agent', id, 300000 from agents`, "BudgetExceeded", "the agent's monthly budget of 0.30 USD does not cover another turn"},
		"no time":        {object{"occurrence": "now"}, "", "ValidationError", "occurrence must be a time as in RFC 3339"},
		"no occurrence":  {object{"occurrence": nil}, "", "ValidationError", "occurrence must be a time as in RFC 3339"},
		"no schedule":    {object{"scheduleId": nil}, "", "NotFound", "schedule not found"},
		"no execution":   {object{"executionId": ident.New()}, "", "NotFound", "execution not found"},
		"no id":          {object{"executionId": "x"}, "", "NotFound", "execution not found"},
		"no tenant":      {object{"tenantId": nil}, "", "ValidationError", "tenantId is not an id"},
		"no such tenant": {object{"tenantId": ident.New()}, "", "NotFound", "tenant not found"},
		"another type":   {object{"occurrence": 1}, "", "ValidationError", "input: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.schedule(nil)
			w.opened(s) // counts against the limit
			if c.arrange != "" {
				w.change(c.arrange)
			}
			x := w.due(s)
			for field, value := range c.change {
				x.data[field] = value
			}
			_, failed := x.open()
			require.NotNil(t, failed)
			require.Equal(t, c.kind, failed.Type)
			require.Contains(t, failed.Message, c.message)
			require.Equal(t, []int{1, 1, 1, 1}, w.counts(), "it left nothing")
		})
	}
}

// What is not to be run is recorded, with the reason, and stays so.
func TestSkipped(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(-d) } }
	for name, c := range map[string]struct {
		fields  object
		at      func() time.Time
		arrange string
		started time.Duration // before now; 0: this moment
		want    record
	}{
		"disabled meanwhile": {nil, ago(time.Second), `update schedules set enabled = false`, 0, record{Trigger: "scheduled", Status: "skipped", Error: new("the schedule is disabled"), Finished: true, FinishedAfterStart: true}},
		"deleted meanwhile":  {nil, ago(time.Second), `update schedules set deleted_at = now()`, 0, record{Trigger: "scheduled", Status: "skipped", Error: new("the schedule has been deleted"), Finished: true, FinishedAfterStart: true}},
		"missed":             {nil, ago(6 * time.Minute), ``, 0, record{Trigger: "scheduled", Status: "skipped", Error: new("the occurrence had been missed"), Finished: true, FinishedAfterStart: true}},
		"a little late":      {nil, ago(4 * time.Minute), ``, 0, record{Trigger: "scheduled", Status: "running"}},
		"missed, run once":   {object{"missed": "run_once"}, ago(48 * time.Hour), ``, 0, record{Trigger: "late", Status: "running"}},
		"opened long after":  {nil, ago(time.Hour), ``, 58 * time.Minute, record{Trigger: "scheduled", Status: "running"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.schedule(c.fields)
			if c.arrange != "" {
				w.change(c.arrange)
			}
			x := w.at(s, c.at())
			state := x.state()
			if c.started > 0 {
				state["startedAt"] = time.Now().Add(-c.started).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			want := pkgschedule.Skip
			if c.want.Status == "running" {
				want = pkgschedule.RunTurn
			}
			for range 2 {
				step, failed := call[pkgschedule.Step](t.Context(), w, "open-auto-thread", state)
				require.Nil(t, failed)
				require.Equal(t, want, step.Action)
				c.want.TurnID = step.TurnID
				require.Equal(t, c.want, x.record())
			}
		})
	}
}

// A clock that hands over all that was due while the engine was away, as EventBridge Scheduler does for an hour, has one late run begun: the last one's.
func TestOfSeveralThatWereMissedTheLastIsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.schedule(object{"missed": "run_once", "expression": "cron(0/10 * * * ? *)"})
	last := time.Now().Truncate(10 * time.Minute)
	started := last.Add(6 * time.Minute)
	for i, want := range []pkgschedule.Action{pkgschedule.RunTurn, pkgschedule.Skip, pkgschedule.Skip, pkgschedule.Skip} {
		x := w.at(s, last.Add(-time.Duration(i)*10*time.Minute))
		state := x.state()
		state["startedAt"] = started.UTC().Format("2006-01-02T15:04:05.000Z")
		step, failed := call[pkgschedule.Step](t.Context(), w, "open-auto-thread", state)
		require.Nil(t, failed)
		require.Equal(t, want, step.Action)
		if want == pkgschedule.Skip {
			require.Equal(t, "skipped: a later occurrence had been missed, too", x.record().Status+": "+*x.record().Error)
		} else {
			require.Equal(t, "late", x.record().Trigger)
		}
	}
	x := w.at(s, last.Add(-10*time.Minute))
	state := x.state()
	state["startedAt"] = last.Add(-time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
	step, failed := call[pkgschedule.Step](t.Context(), w, "open-auto-thread", state)
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.Skip, step.Action, "it is another run's")
}

// What a person asks for is run at once, also of a schedule that is disabled.
func TestRunNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.schedule(object{"enabled": false})
	asked := func() *execution {
		var r pkgschedule.Run
		require.NoError(t, w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
			r, err = pkgschedule.RunNow(t.Context(), tx, w.TenantID, s.ID)
			return err
		}))
		return w.execution(object{"tenantId": w.TenantID, "scheduleId": s.ID, "executionId": r.ID})
	}
	x := asked()
	require.Equal(t, "succeeded", string(x.whole().Status))
	require.Equal(t, []string{"manual", "succeeded"}, []string{x.record().Trigger, x.record().Status})
	require.Equal(t, []int{1, 1, 1, 2}, w.counts())

	other := w.execution(x.data) // another run of the machine
	step, failed := other.open()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.Skip, step.Action)

	x = asked()
	w.change(`update schedules set deleted_at = now()`)
	step, failed = x.open()
	require.Nil(t, failed)
	require.Equal(t, pkgschedule.Skip, step.Action)
	require.Equal(t, "skipped", x.record().Status)
}

// A schedule of a routine has a run of it started, once.
func TestARoutineIsStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routineID := ident.New()
	w.change(`insert into routines (tenant_id, id, name, current_version, last_version, created_by, created_at, updated_at) values ($1, $2, 'Nightly', 1, 1, $3, now(), now())`,
		w.TenantID, routineID, w.UserID)
	w.change(`insert into routine_versions (tenant_id, routine_id, version, definition, created_by, created_at) values ($1, $2, 1, '{}', $3, now())`, w.TenantID, routineID, w.UserID)
	s := w.schedule(object{"agentId": nil, "prompt": nil, "routineId": routineID, "input": `{"day": 1}`})
	x := w.due(s)
	state := x.state()
	answers, failed := together(4, func() (pkgschedule.Step, *messages.InvokeResponse_Error) {
		return call[pkgschedule.Step](t.Context(), w, "open-auto-thread", state)
	})
	for i, a := range answers {
		require.Nil(t, failed[i])
		require.Equal(t, pkgschedule.Step{Action: "done"}, a)
	}
	require.Equal(t, 1, w.count("routine_runs"))
	require.Equal(t, record{Trigger: "scheduled", Status: "succeeded", Finished: true, FinishedAfterStart: true}, x.record())
	var runID, by, starter, input string
	require.NoError(t, w.super.QueryRow(t.Context(), `select r.id, r.started_by, r.starter_id, r.input from routine_runs r join executions e on e.routine_run_id = r.id`).
		Scan(&runID, &by, &starter, &input))
	require.Equal(t, []string{"schedule", s.ID, `{"day":1}`}, []string{by, starter, input})
	require.Len(t, w.started, 4, "whoever asks has it launched, which happens once")
	require.Contains(t, w.started[0], runID)
	require.Zero(t, w.count("threads"))

	w.change(`update routines set deleted_at = now()`)
	x = w.due(s)
	_, refused := x.open()
	require.Equal(t, &messages.InvokeResponse_Error{Type: "NotFound", Message: "routine not found"}, refused)
	x.fails(caught(t, refused))
	r, refused := x.close()
	require.Nil(t, refused)
	require.Equal(t, "failed: routine not found", string(r.Status)+": "+*r.Error)
}

// A function that dies before it has committed leaves nothing; the engine asks again.
func TestOpenIsCutShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.schedule(nil)
	hold := w.p.DB.Connect(t, w.p.DB.SuperURL)
	tx, err := hold.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `lock table messages in access exclusive mode`) // it waits before its last write
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	died := make(chan *messages.InvokeResponse_Error, 1)
	x := w.due(s)
	go func() {
		_, failed := call[pkgschedule.Step](ctx, w, "open-auto-thread", x.state())
		died <- failed
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := w.super.QueryRow(t.Context(), `select exists (select from pg_locks where not granted and relation = 'messages'::regclass)`).Scan(&waits)
		return err == nil && waits
	}, minute, tick)
	cancel()
	require.Equal(t, "InternalError", (<-died).Type)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Eventually(t, func() bool { return w.count("executions")+w.count("threads") == 0 }, minute, tick)
	step, failed := x.open()
	require.Nil(t, failed)
	require.Equal(t, "AUTO-1", *step.ThreadID)
}
