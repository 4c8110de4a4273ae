package appsync_test

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

const (
	scheduleFields = `id name agentId routineId prompt input title metadata expression timeZone startAt endAt enabled missed loop { maxIterations goal { type texts } budget { tokens } continuationPrompt } lastOccurrence nextRuns settled createdBy createdAt updatedAt`
	scheduleRun    = `id scheduleId occurrence trigger status threadId turnId routineRunId iterations { number } stopReason errorType error startedAt finishedAt`
	routineFields  = `id name description currentVersion version definition createdBy createdAt updatedAt`
	routineRun     = `id routineId routineName version status input output error cause executionArn startedBy { type id } parentRunId depth createdAt startedAt finishedAt`
	routineStep    = `number state type status input output error cause attempts verb agentId threadId turnId childRunId approval { prompt details approvers decision decidedBy comment }`
	approvalFields = `runId stepId routineId routineName state prompt details approvers status decidedBy comment createdAt decidedAt`
)

// asks is a routine that asks a person.
const asks = `{"StartAt": "Ask", "States": {"Ask": {"Type": "Task", "Resource": "platform:wait_for_approval", "Parameters": {"prompt": "Go on?", "details.$": "$"}, "End": true}}}`

// automation are schedules and routines: what the clock and the workflow engine of each side do is asked for, and waited for.
var automation = []step{
	{name: "createSchedule", query: `mutation ($input: CreateScheduleInput!) { createSchedule(input: $input) { ` + scheduleFields + ` } }`, save: map[string]string{"schedule": "createSchedule.id"},
		vars: values{"input": values{"name": "Daily", "agentId": "{agent}", "prompt": "What is new?", "title": "Daily", "metadata": `{"a": 1}`, "expression": "cron(0 9 ? * MON-FRI *)", "timeZone": "Europe/Berlin",
			"startAt": "2090-01-01T00:00:00Z", "clientToken": "s"}}},
	{name: "createSchedule by a member", as: "member", query: `mutation { createSchedule(input: {name: "No", agentId: "{agent}", prompt: "x", expression: "rate(1 day)"}) { id } }`, want: "Forbidden"},
	{name: "createSchedule that never runs", query: `mutation { createSchedule(input: {name: "No", agentId: "{agent}", prompt: "x", expression: "cron(0 0 30 2 ? *)"}) { id } }`, want: "ValidationError"},
	{name: "updateSchedule", query: `mutation ($input: UpdateScheduleInput!) { updateSchedule(id: "{schedule}", input: $input) { ` + scheduleFields + ` } }`,
		vars: values{"input": values{"missed": "run_once", "title": nil, "loop": values{"maxIterations": 3, "goal": []values{{"type": "contains", "texts": []string{"done"}}}, "budget": values{"tokens": 1000}}}}},
	{name: "updateSchedule of another tenant", as: "globex", query: `mutation { updateSchedule(id: "{schedule}", input: {enabled: false}) { id } }`, want: "NotFound"},
	{name: "runScheduleNow", query: `mutation { runScheduleNow(id: "{schedule}", clientToken: "now") { ` + scheduleRun + ` } }`, save: map[string]string{"scheduleRun": "runScheduleNow.id"}},
	{name: "runScheduleNow of nobody", query: `mutation { runScheduleNow(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "getScheduleRun", as: "member", query: `{ getScheduleRun(id: "{scheduleRun}") { ` + scheduleRun + ` } }`},
	{name: "getScheduleRun of another tenant", as: "globex", query: `{ getScheduleRun(id: "{scheduleRun}") { id } }`, want: "NotFound"},
	{name: "getSchedule", as: "member", query: `{ getSchedule(id: "{schedule}") { ` + scheduleFields + ` runs(limit: 5) { items { ` + scheduleRun + ` } nextToken } } }`},
	{name: "getSchedule of nobody", query: `{ getSchedule(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "listSchedules", query: `{ listSchedules(filter: {agentId: "{agent}", enabled: true}) { items { name runs { items { status iterations { number } } nextToken } } nextToken } }`},
	{name: "listSchedules, no page", query: `{ listSchedules(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "Schedule.runs of each refuses", query: `{ listSchedules { items { name runs(limit: 101) { nextToken } } } }`, want: "ValidationError"},
	{name: "ScheduleRun.iterations of each fails", query: `{ getScheduleRun(id: "{scheduleRun}") { iterations { number } } }`, want: "InternalError",
		first: func(s *side) { s.superuser(`alter table execution_iterations rename to lost`) }, then: func(s *side) { s.superuser(`alter table lost rename to execution_iterations`) }},
	{name: "deleteSchedule", query: `mutation { deleteSchedule(id: "{schedule}") { name enabled } }`},
	{name: "deleteSchedule again", query: `mutation { deleteSchedule(id: "{schedule}") { name } }`, want: "NotFound"},

	{name: "createRoutine", query: `mutation ($input: CreateRoutineInput!) { createRoutine(input: $input) { ` + routineFields + ` } }`, save: map[string]string{"routine": "createRoutine.id"},
		vars: values{"input": values{"name": "Ask", "description": "Asks.", "definition": asks, "clientToken": "r"}}},
	{name: "createRoutine that cannot run", query: `mutation ($d: AWSJSON!) { createRoutine(input: {name: "No", definition: $d}) { id } }`, want: "ValidationError",
		vars: values{"d": `{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "platform:fly", "Next": "B"}}}`}},
	{name: "updateRoutine", query: `mutation ($d: AWSJSON!) { updateRoutine(id: "{routine}", input: {definition: $d, description: null}) { ` + routineFields + ` } }`,
		vars: values{"d": strings.Replace(asks, "Go on?", "Go on now?", 1)}},
	{name: "updateRoutine by a member", as: "member", query: `mutation { updateRoutine(id: "{routine}", input: {name: "x"}) { id } }`, want: "Forbidden"},
	{name: "getRoutine", as: "member", query: `{ getRoutine(id: "{routine}", version: 1) { ` + routineFields + ` versions { items { version status refusal createdBy createdAt } nextToken } } }`},
	{name: "getRoutine of another tenant", as: "globex", query: `{ getRoutine(id: "{routine}") { id } }`, want: "NotFound"},
	{name: "listRoutines", query: `{ listRoutines { items { ` + routineFields + ` versions(limit: 1) { items { version } } } nextToken } }`},
	{name: "listRoutines, no page", query: `{ listRoutines(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "Routine.versions of each refuses", query: `{ listRoutines { items { name versions(limit: 101) { nextToken } } } }`, want: "ValidationError"},
	{name: "startRoutine", query: `mutation { startRoutine(id: "{routine}", input: "{\"n\": 1}", clientToken: "run") { id routineId version input startedBy { type id } depth createdAt } }`, save: map[string]string{"run": "startRoutine.id"}},
	{name: "startRoutine with a list", query: `mutation { startRoutine(id: "{routine}", input: "[1]") { id } }`, want: "ValidationError"},
	{name: "startRoutine with a text", query: `mutation { startRoutine(id: "{routine}", input: "\"x\"") { id } }`, want: "ValidationError"},
	{name: "startRoutine of nobody", query: `mutation { startRoutine(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "listRoutineApprovals", as: "member", query: `{ listRoutineApprovals { items { ` + approvalFields + ` } nextToken } }`, save: map[string]string{"approval": "listRoutineApprovals.items.0.stepId"},
		first: func(s *side) {
			s.untilRuns(`select exists (select from routine_steps where status = 'waiting' and run_id = '` + s.known["run"] + `')`)
		}},
	{name: "listRoutineApprovals, no page", query: `{ listRoutineApprovals(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "getRoutineRun", as: "member", query: `{ getRoutineRun(id: "{run}") { ` + routineRun + ` steps { items { ` + routineStep + ` } nextToken } } }`},
	{name: "getRoutineRun of another tenant", as: "globex", query: `{ getRoutineRun(id: "{run}") { id } }`, want: "NotFound"},
	{name: "RoutineRun.steps refuses", query: `{ getRoutineRun(id: "{run}") { id steps(limit: 0) { nextToken } } }`, want: "ValidationError"},
	{name: "approveStep by a member", as: "member", query: `mutation { approveStep(runId: "{run}", stepId: "{approval}", decision: APPROVED) { status } }`, want: "Forbidden"},
	{name: "approveStep", query: `mutation { approveStep(runId: "{run}", stepId: "{approval}", decision: DENIED, comment: "Not now.") { ` + approvalFields + ` } }`},
	{name: "listRoutineRuns", query: `{ listRoutineRuns(filter: {routineId: "{routine}", status: running}) { items { ` + routineRun + ` } nextToken } }`},
	{name: "listRoutineRuns, no page", query: `{ listRoutineRuns(limit: 0) { nextToken } }`, want: "ValidationError"},
	{name: "startRoutine, another run", query: `mutation { startRoutine(id: "{routine}") { id } }`, save: map[string]string{"second run": "startRoutine.id"}},
	{name: "stopRoutineRun", query: `mutation { stopRoutineRun(id: "{second run}", reason: "Enough.") { id status error cause } }`},
	{name: "stopRoutineRun of nobody", query: `mutation { stopRoutineRun(id: "{nobody}") { id } }`, want: "NotFound"},
	{name: "deleteRoutine", query: `mutation { deleteRoutine(id: "{routine}") { name } }`},
	{name: "deleteRoutine again", query: `mutation { deleteRoutine(id: "{routine}") { name } }`, want: "NotFound"},
}

// withEngines gives the side a clock and a workflow engine of its own, whose tasks call the side's functions. Neither works before it is told to.
func (s *side) withEngines() {
	c, err := clock.Open(s.t.Context(), clock.Config{URL: s.DB.SuperURL})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	call := func(ctx context.Context, function string, payload []byte) ([]byte, error) {
		return functions.Table[function](s.Env(s.t, function)).Invoke(ctx, payload)
	}
	if s.workflow, err = workflow.Open(s.t.Context(), workflow.Config{URL: s.DB.SuperURL, Functions: call}); err == nil {
		s.t.Cleanup(s.workflow.Close)
		err = s.workflow.Deploy(s.t.Context(), schedule.AutoThread, `{"StartAt": "Run", "States": {"Run": {"Type": "Wait", "Seconds": 3600, "End": true}}}`)
	}
	require.NoError(s.t, err)
	s.WithClock(c).WithWorkflow(s.workflow)
}

// untilRuns has the engine work until the database says that it is enough.
func (s *side) untilRuns(enough string) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.workflow.Run(ctx)
	}()
	defer func() {
		stop()
		<-over
	}()
	conn := s.DB.Superuser(s.t)
	require.Eventually(s.t, func() bool {
		done := false
		require.NoError(s.t, conn.QueryRow(s.t.Context(), enough).Scan(&done))
		return done
	}, time.Minute, 10*time.Millisecond)
}
