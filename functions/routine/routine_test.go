package routine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

type args = map[string]any

// site is a tenant, the resolvers, and an engine whose tasks a test answers.
type site struct {
	pgtest.World
	t      *testing.T
	p      *handlertest.Platform
	engine *workflow.Engine
	called chan routine.Call
}

func newSite(t *testing.T) *site {
	p := handlertest.New(t)
	s := &site{World: p.DB.World(t, "acme"), t: t, p: p, called: make(chan routine.Call, 100)}
	e, err := workflow.Open(t.Context(), workflow.Config{URL: p.DB.SuperURL, Functions: func(_ context.Context, _ string, payload []byte) ([]byte, error) {
		var c routine.Call
		err := json.Unmarshal(payload, &c)
		s.called <- c
		return []byte(`null`), err
	}})
	require.NoError(t, err)
	s.engine = e
	p.WithWorkflow(e)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		e.Close()
	})
	return s
}

func call[R any](s *site, name string, constructor handler.Constructor, role tenant.Role, a args, sources ...any) (R, *fault.Error) {
	s.t.Helper()
	return handlertest.Call[R](s.t, s.p, name, constructor, handlertest.Claims(s.World, role), a, sources...)
}

const mails = `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"platform:send_mail","End":true}}}`

func TestARoutineFromItsDefinitionToItsEnd(t *testing.T) {
	s := newSite(t)
	input := args{"name": "Daily", "description": "Why.", "definition": mails, "clientToken": "once"}
	created, refused := call[routine.Routine](s, "create-routine", functions.CreateRoutine, tenant.Admin, args{"input": input})
	require.Nil(t, refused)
	require.Equal(t, []any{"Daily", 1, 1, s.UserID, mails}, []any{created.Name, created.CurrentVersion, created.Version, created.CreatedBy, *created.Definition})
	again, refused := call[routine.Routine](s, "create-routine", functions.CreateRoutine, tenant.Admin, args{"input": input})
	require.Nil(t, refused)
	require.Equal(t, created, again)
	_, refused = call[routine.Routine](s, "create-routine", functions.CreateRoutine, tenant.Admin, args{"input": args{"name": "x", "definition": `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"x","End":true}}}`}})
	require.Equal(t, fault.ValidationError, refused.Type)
	require.Contains(t, refused.Message, "definition: /States/A/Resource: a task's Resource is one of platform:run_turn")

	start := args{"id": created.ID, "input": `{"to": ["a@acme.test"]}`, "clientToken": "once"}
	started, refused := call[routine.Run](s, "start-routine", functions.StartRoutine, tenant.Owner, start)
	require.Nil(t, refused)
	require.Equal(t, []any{routine.Running, 1, routine.StartedBy{Type: routine.ByUser, ID: s.UserID}}, []any{started.Status, started.Version, started.StartedBy})
	twice, refused := call[routine.Run](s, "start-routine", functions.StartRoutine, tenant.Owner, start)
	require.Nil(t, refused)
	require.Equal(t, started, twice)
	var asked routine.Call
	select {
	case asked = <-s.called:
	case <-time.After(time.Minute):
		require.FailNow(t, "no task was begun")
	}
	require.Equal(t, []any{s.TenantID, started.ID, routine.SendMail}, []any{asked.TenantID, asked.RunID, asked.Verb})

	changed, refused := call[routine.Routine](s, "update-routine", functions.UpdateRoutine, tenant.Admin, args{"id": created.ID, "input": args{"definition": `{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}`}})
	require.Nil(t, refused)
	require.Equal(t, 2, changed.CurrentVersion)
	versions, refused := call[[]page.Page[routine.Version]](s, "routine-versions", functions.RoutineVersions, tenant.Member, args{"limit": 1}, created, args{"id": ident.New()})
	require.Nil(t, refused)
	require.Equal(t, []any{2, routine.Ready}, []any{versions[0].Items[0].Version, versions[0].Items[0].Status})
	require.Empty(t, versions[1].Items)
	versions, refused = call[[]page.Page[routine.Version]](s, "routine-versions", functions.RoutineVersions, tenant.Member, args{"nextToken": versions[0].NextToken}, created)
	require.Nil(t, refused)
	require.Equal(t, 1, versions[0].Items[0].Version)
	old, refused := call[routine.Routine](s, "get-routine", functions.GetRoutine, tenant.Member, args{"id": created.ID, "version": 1})
	require.Nil(t, refused)
	require.Equal(t, mails, *old.Definition)
	listed, refused := call[page.Page[routine.Routine]](s, "list-routines", functions.ListRoutines, tenant.Member, args{})
	require.Nil(t, refused)
	require.Len(t, listed.Items, 1)
	require.Nil(t, listed.Items[0].Definition)

	steps, refused := call[[]page.Page[routine.Step]](s, "routine-run-steps", functions.RoutineRunSteps, tenant.Member, args{}, started)
	require.Nil(t, refused)
	require.Equal(t, []any{"A", routine.StepRunning, `{"to":["a@acme.test"]}`}, []any{steps[0].Items[0].State, steps[0].Items[0].Status, *steps[0].Items[0].Input})
	require.NoError(t, s.engine.Succeed(t.Context(), asked.Token, json.RawMessage(`{"messageId":"1"}`)))
	var got routine.Run
	require.Eventually(t, func() bool {
		got, refused = call[routine.Run](s, "get-routine-run", functions.GetRoutineRun, tenant.Member, args{"id": started.ID})
		return refused == nil && got.Status == routine.Succeeded
	}, time.Minute, 5*time.Millisecond)
	require.JSONEq(t, `{"messageId":"1"}`, *got.Output)
	event, err := json.Marshal(args{"source": "aws.states", "detail-type": "Step Functions Execution Status Change", "detail": args{"name": started.ID, "executionArn": *started.ARN, "status": "SUCCEEDED"}})
	require.NoError(t, err)
	for range 2 {
		_, err = functions.SettleRoutineRun(s.p.Env(t, "settle-routine-run")).Invoke(t.Context(), event)
		require.NoError(t, err)
	}
	runs, refused := call[page.Page[routine.Run]](s, "list-routine-runs", functions.ListRoutineRuns, tenant.Member, args{"filter": args{"status": "succeeded", "routineId": created.ID}})
	require.Nil(t, refused)
	require.Len(t, runs.Items, 1)
	require.Nil(t, runs.Items[0].Input)
	_, refused = call[routine.Run](s, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": started.ID})
	require.Equal(t, "the run is over: succeeded", refused.Message)
	runs, refused = call[page.Page[routine.Run]](s, "list-routine-runs", functions.ListRoutineRuns, tenant.Member, args{"filter": args{"status": "failed"}})
	require.Nil(t, refused)
	require.Empty(t, runs.Items)

	deleted, refused := call[routine.Routine](s, "delete-routine", functions.DeleteRoutine, tenant.Admin, args{"id": created.ID})
	require.Nil(t, refused)
	require.Equal(t, changed, deleted)
	_, refused = call[routine.Routine](s, "get-routine", functions.GetRoutine, tenant.Member, args{"id": created.ID})
	require.Equal(t, fault.NotFound, refused.Type)
}

func TestPagesOfSteps(t *testing.T) {
	s := newSite(t)
	r, refused := call[routine.Routine](s, "create-routine", functions.CreateRoutine, tenant.Admin, args{"input": args{"name": "x", "definition": `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Pass","Next":"C"},"C":{"Type":"Succeed"}}}`}})
	require.Nil(t, refused)
	run, refused := call[routine.Run](s, "start-routine", functions.StartRoutine, tenant.Owner, args{"id": r.ID})
	require.Nil(t, refused)
	require.Eventually(t, func() bool {
		got, refused := call[routine.Run](s, "get-routine-run", functions.GetRoutineRun, tenant.Member, args{"id": run.ID})
		return refused == nil && got.Status == routine.Succeeded
	}, time.Minute, 5*time.Millisecond)
	steps := func(a args, sources ...any) ([]page.Page[routine.Step], *fault.Error) {
		return call[[]page.Page[routine.Step]](s, "routine-run-steps", functions.RoutineRunSteps, tenant.Member, a, sources...)
	}
	var names []string
	next := args{"limit": 2}
	for next != nil {
		pages, refused := steps(next, run)
		require.Nil(t, refused)
		for _, step := range pages[0].Items {
			names = append(names, step.State)
		}
		next = nil
		if pages[0].NextToken != nil {
			next = args{"limit": 2, "nextToken": *pages[0].NextToken}
		}
	}
	require.Equal(t, []string{"A", "B", "C"}, names)
	both, refused := steps(args{"limit": 1}, run, run)
	require.Nil(t, refused)
	require.Equal(t, both[0], both[1])
	_, refused = steps(args{"nextToken": *both[0].NextToken}, run, run)
	require.Equal(t, "the page token is not one of this list", refused.Message)
	_, refused = steps(args{"nextToken": "forged"}, run)
	require.Equal(t, "the page token is not one of this list", refused.Message)
	_, refused = steps(args{}, args{"id": ident.New()})
	require.Equal(t, fault.NotFound, refused.Type)
}

func TestWhoMayDoWhatWithRoutines(t *testing.T) {
	s := newSite(t)
	r, refused := call[routine.Routine](s, "create-routine", functions.CreateRoutine, tenant.Owner, args{"input": args{"name": "x", "definition": mails}})
	require.Nil(t, refused)
	run, refused := call[routine.Run](s, "start-routine", functions.StartRoutine, tenant.Owner, args{"id": r.ID})
	require.Nil(t, refused)
	other := &site{World: s.p.DB.World(t, "globex"), t: t, p: s.p}
	for name, c := range map[string]struct {
		constructor handler.Constructor
		args        args
	}{
		"create-routine":   {functions.CreateRoutine, args{"input": args{"name": "y", "definition": fmt.Sprintf(`{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"platform:run_turn","Parameters":{"agentId":%q,"prompt":"p"},"End":true}}}`, s.AgentID)}}},
		"update-routine":   {functions.UpdateRoutine, args{"id": r.ID, "input": args{"name": "y"}}},
		"delete-routine":   {functions.DeleteRoutine, args{"id": r.ID}},
		"start-routine":    {functions.StartRoutine, args{"id": r.ID}},
		"stop-routine-run": {functions.StopRoutineRun, args{"id": run.ID}},
	} {
		_, refused := call[args](s, name, c.constructor, tenant.Member, c.args)
		require.NotNil(t, refused, name)
		require.Equal(t, fault.Forbidden, refused.Type, name)
		_, refused = call[args](other, name, c.constructor, tenant.Owner, c.args)
		require.NotNil(t, refused, name)
		require.Contains(t, refused.Message, "not found", name)
	}
	for name, c := range map[string]struct {
		constructor handler.Constructor
		id          string
	}{
		"get-routine":     {functions.GetRoutine, r.ID},
		"get-routine-run": {functions.GetRoutineRun, run.ID},
	} {
		_, refused := call[args](s, name, c.constructor, tenant.Member, args{"id": c.id})
		require.Nil(t, refused, name)
		for _, id := range []string{c.id, ident.New(), "x"} {
			_, refused = call[args](other, name, c.constructor, tenant.Owner, args{"id": id})
			require.Equal(t, fault.NotFound, refused.Type, name)
		}
	}
	_, refused = call[args](other, "routine-run-steps", functions.RoutineRunSteps, tenant.Owner, args{}, run)
	require.Equal(t, fault.NotFound, refused.Type)
	none, refused := call[[]page.Page[routine.Version]](other, "routine-versions", functions.RoutineVersions, tenant.Owner, args{}, r)
	require.Nil(t, refused)
	require.Empty(t, none[0].Items)
	runs, refused := call[page.Page[routine.Run]](other, "list-routine-runs", functions.ListRoutineRuns, tenant.Owner, args{"filter": args{"routineId": r.ID}})
	require.Nil(t, refused)
	require.Empty(t, runs.Items)

	stopped, refused := call[routine.Run](s, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": run.ID, "reason": "enough"})
	require.Nil(t, refused)
	require.Equal(t, []any{routine.Aborted, "enough"}, []any{stopped.Status, *stopped.Cause})
}
