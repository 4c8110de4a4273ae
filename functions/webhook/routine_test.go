package webhook_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/routine"
	patch "github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

// routineSite is a site with a workflow engine that runs routines.
func routineSite(t *testing.T) *site {
	t.Helper()
	p := handlertest.New(t)
	settler := &routine.Settler{Answer: func(context.Context, callback.Task) error { return nil }}
	e, err := workflow.Open(t.Context(), workflow.Config{URL: p.DB.SuperURL, Functions: func(context.Context, string, []byte) ([]byte, error) { return nil, nil },
		Ended: func(ctx context.Context, run engine.Run, _ string) error {
			var j routine.Job
			j.Detail.Name = run.ID[strings.LastIndex(run.ID, ":")+1:]
			return settler.Run(ctx, j)
		}})
	require.NoError(t, err)
	settler.Engine = routine.Engine{DB: p.DB.App, Machines: e, Runs: e, Function: func(name string) string { return name }}
	p.WithWorkflow(e)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		e.Close()
	})
	return openSite(t, p, p.REST(t, table), "acme")
}

const (
	echo = `{"StartAt":"Echo","States":{"Echo":{"Type":"Pass","End":true}}}`
	fail = `{"StartAt":"No","States":{"No":{"Type":"Fail","Error":"Broken","Cause":"It is broken."}}}`
	hold = `{"StartAt":"Hold","States":{"Hold":{"Type":"Wait","Seconds":3600,"End":true}}}`
)

func (s *site) routine(name, definition string) (r routine.Routine) {
	s.t.Helper()
	require.NoError(s.t, s.p.DB.App.InTenant(s.t.Context(), s.TenantID, func(tx pgx.Tx) (err error) {
		r, err = routine.Create(s.t.Context(), tx, s.TenantID, s.UserID, routine.Fields{Name: patch.Patch[string]{Set: true, Value: &name}, Definition: patch.Patch[string]{Set: true, Value: &definition}})
		return err
	}))
	return r
}

func (s *site) routineHook(r routine.Routine) webhook.Webhook {
	s.t.Helper()
	return read[webhook.Webhook](s.t, 201, s.ask("POST", "/api/webhooks", fields{"name": "starts " + r.Name, "target_type": "routine", "routine_id": r.ID, "rate_limit": 1000}))
}

// over polls until the run is over.
func (s *site) over(w webhook.Webhook, runID string) (r turn.Run) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		r = read[turn.Run](s.t, 200, s.poll(w.ID, runID, w.Token))
		return r.Status != turn.RunStarted
	}, time.Minute, 5*time.Millisecond)
	return r
}

func TestACallStartsARoutine(t *testing.T) {
	s := routineSite(t)
	good, bad := s.routine("good", echo), s.routine("bad", fail)
	w := s.routineHook(good)
	require.Equal(t, []any{webhook.Routine, good.ID, (*string)(nil)}, []any{w.TargetType, *w.RoutineID, w.AgentID})

	answer := read[fields](t, 202, s.call(w.ID, w.Token, `{"message":"Hello","n":1.50}`))
	require.Equal(t, "started", answer["status"])
	require.NotContains(t, answer, "thread_id")
	runID := answer["run_id"].(string)
	require.True(t, strings.HasSuffix(answer["execution_arn"].(string), ":"+runID), "%v", answer["execution_arn"])
	done := s.over(w, runID)
	require.Equal(t, []any{turn.RunSucceeded, good.ID, (*string)(nil), (*string)(nil), (*string)(nil), false}, []any{done.Status, *done.RoutineID, done.AgentID, done.ThreadID, done.Error, done.Test})
	require.False(t, done.StartedAt.Before(done.CreatedAt.Time))
	require.False(t, done.FinishedAt.Before(done.StartedAt.Time))
	shown := read[map[string]json.RawMessage](t, 200, s.ask("GET", "/api/webhooks/"+w.ID+"/runs/"+runID, nil))
	require.Equal(t, `{"message":"Hello","n":1.50}`, string(shown["context_snapshot"]))
	run, err := routine.GetRun(t.Context(), s.p.DB.App.In(s.TenantID), runID)
	require.NoError(t, err)
	require.JSONEq(t, `{"payload":{"message":"Hello","n":1.50},"webhookId":"`+w.ID+`"}`, *run.Output)
	require.Equal(t, routine.StartedBy{Type: routine.ByWebhook, ID: w.ID}, run.StartedBy)
	require.EqualValues(t, 1, s.get(w.ID).InvocationCount)
	_, err = turn.Get(t.Context(), s.p.DB.App.In(s.TenantID), runID)
	require.ErrorContains(t, err, "turn not found", "it is no turn")

	b := s.routineHook(bad)
	lost := s.over(b, s.accepted(b, `[]`).RunID)
	require.Equal(t, []any{turn.RunFailed, "It is broken."}, []any{lost.Status, *lost.Error})

	tested := read[webhook.Invoked](t, 202, s.ask("POST", "/api/webhooks/"+w.ID+"/test", nil))
	require.True(t, tested.Test)
	require.True(t, s.over(w, tested.RunID).Test)
	runs := s.runs(w.ID)
	require.Len(t, runs, 2)
	require.Equal(t, tested.RunID, runs[0].ID)
}

func TestACallOfARoutineIsMadeOnce(t *testing.T) {
	s := routineSite(t)
	w := s.routineHook(s.routine("slow", hold))
	const n = 6
	answers := make([]handlertest.Answer, n)
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-barrier
			answers[i] = s.call(w.ID, w.Token, `{}`, "Idempotency-Key", "one")
		})
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	started := 0
	ids := map[string]bool{}
	for _, a := range answers {
		var got webhook.Invoked
		a.Into(t, &got)
		ids[got.RunID] = true
		if a.Status == 202 {
			started++
		} else {
			require.Equal(t, 200, a.Status, "%s", a.Body)
			require.True(t, got.Deduplicated)
		}
	}
	require.Equal(t, []int{1, 1}, []int{started, len(ids)})
	require.Equal(t, []int64{1}, column[int64](s, `select count(*) from routine_runs`))
	again := read[fields](t, 200, s.call(w.ID, w.Token, `{"other":1}`, "Idempotency-Key", "one"))
	require.Equal(t, []any{"started", true}, []any{again["status"], again["deduplicated"]})
	require.NotEmpty(t, again["execution_arn"])
}

func TestARoutineThatCannotBeStarted(t *testing.T) {
	s := routineSite(t)
	r := s.routine("r", echo)
	w := s.routineHook(r)
	tooLarge := refused(t, 413, "ValidationError", s.call(w.ID, w.Token, `{"x":"`+long(engine.MaxData)+`"}`))
	require.Contains(t, tooLarge.Detail, "larger than a routine takes")
	require.Empty(t, s.runs(w.ID))

	s.change(`insert into routine_runs (tenant_id, id, routine_id, version, status, input, started_by, starter_id, depth, created_at)
		select tenant_id, gen_random_uuid(), id, 1, 'running', '{}', 'user', created_by, 1, now() from routines, generate_series(1, $1)`, routine.MaxRuns)
	refused(t, 429, "RateLimitExceeded", s.call(w.ID, w.Token, `{}`))
	require.Empty(t, s.runs(w.ID))
	s.change(`update routine_runs set status = 'succeeded', finished_at = now()`)

	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"enabled":false}`).Status)
	refused(t, 403, "Forbidden", s.call(w.ID, w.Token, `{}`))
	require.NoError(t, s.p.DB.App.InTenant(t.Context(), s.TenantID, func(tx pgx.Tx) error {
		_, err := routine.Delete(t.Context(), tx, r.ID)
		return err
	}))
	require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"enabled":true}`).Status, "the target did not change")
	gone := refused(t, 500, "InternalError", s.call(w.ID, w.Token, `{}`))
	require.Contains(t, gone.Detail, "the webhook's routine was deleted (run ")
	runs := s.runs(w.ID)
	require.Len(t, runs, 1)
	require.Equal(t, []any{turn.RunFailed, "the webhook's routine was deleted", r.ID}, []any{runs[0].Status, *runs[0].Error, *runs[0].RoutineID})
	require.EqualValues(t, 1, s.get(w.ID).InvocationCount)
}

// A run that could not be launched, or not while the caller waits, is started by the sweep, and the call is told so.
func TestARoutineIsLaunchedLater(t *testing.T) {
	s := routineSite(t)
	w := s.routineHook(s.routine("r", echo))
	for name, functions := range map[string]invoke.Caller{"none": down{}, "no answer": stuck{}} {
		s.rest = s.p.REST(t, with("invoke-webhook", reaching(t, functions)))
		answer := read[fields](t, 202, s.call(w.ID, w.Token, `{}`))
		require.NotContains(t, answer, "execution_arn", name)
		got := read[turn.Run](t, 200, s.poll(w.ID, answer["run_id"].(string), w.Token))
		require.Equal(t, []any{turn.RunStarted, (*ident.Time)(nil)}, []any{got.Status, got.StartedAt}, name)
	}
}

func TestSettingsOfARoutinesWebhook(t *testing.T) {
	s := routineSite(t)
	r := s.routine("r", echo)
	globex := s.neighbour("globex")
	theirs := globex.routine("theirs", echo)
	for body, says := range map[string]string{
		`{"name":"x","target_type":"routine"}`:                                                            "routine_id is required for target_type routine",
		`{"name":"x","target_type":"routine","routine_id":"nonsense"}`:                                    "routine_id names no routine of the tenant",
		`{"name":"x","target_type":"routine","routine_id":"` + never() + `"}`:                             "routine_id names no routine of the tenant",
		`{"name":"x","target_type":"routine","routine_id":"` + theirs.ID + `"}`:                           "routine_id names no routine of the tenant",
		`{"name":"x","target_type":"routine","routine_id":"` + r.ID + `","agent_id":"` + s.AgentID + `"}`: "agent_id is for target_type agent",
		`{"name":"x","target_type":"routine","routine_id":"` + r.ID + `","prompt":"p"}`:                   "prompt is for target_type agent",
		`{"name":"x","agent_id":"` + s.AgentID + `","routine_id":"` + r.ID + `"}`:                         "routine_id is for target_type routine",
		`{"name":"x","target_type":"task"}`:                                                               "config.provider is required for target_type task: linear, jira, asana",
	} {
		require.Contains(t, refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks", body)).Detail, says, body)
	}
	w := s.hook()
	changed := read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"target_type":"routine","agent_id":null,"routine_id":"`+strings.ToUpper(r.ID)+`"}`))
	require.Equal(t, []any{webhook.Routine, r.ID}, []any{changed.TargetType, *changed.RoutineID})
	back := read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"target_type":null,"agent_id":"`+s.AgentID+`","routine_id":null}`))
	require.Equal(t, webhook.Agent, back.TargetType)
	require.Equal(t, 204, s.ask("DELETE", "/api/webhooks/"+w.ID, nil).Status)
}
