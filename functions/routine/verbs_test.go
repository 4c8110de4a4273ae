package routine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestEveryVerbToItsEnd(t *testing.T) {
	w := newWorks(t)
	w.change(`update agents set tools = '{read_thread}' where id = $1`, w.AgentID)
	address := value[string](w, `select email from users where id = $1`, w.UserID)
	w.made("child", `{"StartAt":"P","States":{"P":{"Type":"Pass","Parameters":{"twice.$":"$.n"},"End":true}}}`)
	definition := fmt.Sprintf(`{"StartAt":"Ask","States":{
		"Ask": %s,
		"Again": %s,
		"Read": %s,
		"Mail": %s,
		"Child": %s,
		"Loose": %s}}`,
		task("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt.$":"$.question","title":"Asked"}`, w.AgentID), `"ResultPath":"$.turn"`, `"Next":"Again"`),
		task("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"And then?","threadId.$":"$.turn.threadId"}`, w.AgentID), `"ResultPath":"$.second"`, `"Next":"Read"`),
		task("call_tool", fmt.Sprintf(`{"agentId":%q,"tool":"read_thread","input":{"threadId.$":"$.turn.threadId"}}`, w.AgentID), `"ResultPath":"$.read"`, `"Next":"Mail"`),
		task("send_mail", fmt.Sprintf(`{"to":%q,"subject":"Report","text.$":"$.turn.reply"}`, address), `"ResultPath":"$.mail"`, `"Next":"Child"`),
		task("start_routine", `{"routine":"child","input":{"n":2}}`, `"ResultPath":"$.child"`, `"Next":"Loose"`),
		task("start_routine", `{"routine":"child","input":{"n":3},"wait":false}`, `"ResultPath":"$.loose"`, end))
	run := w.run(definition, `{"question":"What is new?"}`)
	out := w.output(run.ID)

	first, second := out["turn"].(args), out["second"].(args)
	require.Equal(t, []any{"AUTO-1", "succeeded", "Done."}, []any{first["threadId"], first["status"], first["reply"]})
	require.Equal(t, "AUTO-1", second["threadId"])
	require.NotEqual(t, first["turnId"], second["turnId"])
	require.Equal(t, []any{args{"role": "user", "body": "What is new?"}, args{"role": "assistant", "body": "Done."}, args{"role": "user", "body": "And then?"},
		args{"role": "assistant", "body": "Done."}}, out["read"])
	require.NotEmpty(t, out["mail"].(args)["messageId"])
	sent := w.sent()
	require.Len(t, sent, 1)
	require.Equal(t, []string{address}, sent[0].To)
	require.Equal(t, args{"twice": 2.0}, out["child"].(args)["output"])
	loose := out["loose"].(args)
	require.Equal(t, "starting", loose["status"])
	require.Equal(t, args{"twice": 3.0}, w.output(loose["runId"].(string)))
	require.Equal(t, "Asked", value[string](w, `select title from threads where tenant_id = $1`, w.TenantID))

	steps, refused := call[[]page.Page[routine.Step]](w.site, "routine-run-steps", functions.RoutineRunSteps, tenant.Member, args{}, run)
	require.Nil(t, refused)
	told := map[string]routine.Step{}
	for _, s := range steps[0].Items {
		require.Equal(t, routine.StepSucceeded, s.Status, s.State)
		told[s.State] = s
	}
	require.Equal(t, []any{first["turnId"], "AUTO-1"}, []any{*told["Ask"].TurnID, *told["Ask"].ThreadID})
	require.Equal(t, []any{second["turnId"], "AUTO-1"}, []any{*told["Again"].TurnID, *told["Again"].ThreadID})
	require.Equal(t, []any{out["child"].(args)["runId"], loose["runId"]}, []any{*told["Child"].ChildRunID, *told["Loose"].ChildRunID})
	require.Equal(t, routine.SendMail, *told["Mail"].Verb)
	require.Equal(t, "succeeded 6", value[string](w, `select string_agg(distinct status::text, ' ') || ' ' || count(*) from routine_steps where run_id = $1`, run.ID))
	require.Zero(t, value[int](w, `select count(*) from callbacks where due_at is not null and turn_id is null`), "what was told is gone")
}

// What a definition catches when a verb cannot do what it is told, or fails.
func TestWhatVerbsFailWith(t *testing.T) {
	w := newWorks(t)
	w.change(`update agents set tools = '{read_thread,run_code,ask_user,gone}', approvals = '{run_code}' where id = $1`, w.AgentID)
	other := w.p.DB.World(t, "globex")
	fails := func(code, cause, verb, parameters string) {
		t.Helper()
		out := w.output(w.run(only(verb, strings.ReplaceAll(parameters, "AGENT", w.AgentID)), `{}`).ID)
		require.Equal(t, code, out["error"], "%s %v", parameters, out["cause"])
		require.Contains(t, routine.Spoken("", out["cause"].(string)), cause, parameters)
	}
	fails("ToolDenied", `the tool "http_fetch" is not granted to this agent`, "call_tool", `{"agentId":"AGENT","tool":"http_fetch","input":{"url":"https://example.com"}}`)
	fails("ToolFailed", `there is no tool "gone"`, "call_tool", `{"agentId":"AGENT","tool":"gone"}`)
	fails("ApprovalRequired", `calls of the tool "run_code" wait for a person's approval`, "call_tool", `{"agentId":"AGENT","tool":"run_code","input":{"code":"return 1"}}`)
	fails("ApprovalRequired", `the tool "ask_user" asks a person`, "call_tool", `{"agentId":"AGENT","tool":"ask_user","input":{"question":"Why?"}}`)
	fails("ToolFailed", `thread not found`, "call_tool", `{"agentId":"AGENT","tool":"read_thread","input":{"threadId":"CHAT-77"}}`)
	fails("ToolFailed", `input: `, "call_tool", `{"agentId":"AGENT","tool":"read_thread","input":{"x":1}}`)
	fails("ValidationError", `stranger@example.com is no user of this organisation`, "send_mail", `{"to":["stranger@example.com"],"subject":"s","text":"t"}`)
	fails("NotFound", `thread not found`, "run_turn", `{"agentId":"AGENT","prompt":"p","threadId":"CHAT-77"}`)
	fails("ValidationError", `is no active user`, "wait_for_approval", fmt.Sprintf(`{"prompt":"p","approvers.$":"States.Array('%s')"}`, ident.New()))
	fails("NotFound", `routine not found`, "start_routine", `{"routine.$":"States.Format('{}', 'nobody')"}`)
	fails("NotFound", `agent not found`, "run_turn", fmt.Sprintf(`{"agentId.$":"States.Format('{}', '%s')","prompt":"p"}`, other.AgentID))
	require.Empty(t, w.sent())

	w.mu.Lock()
	w.say = func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
	}
	w.mu.Unlock()
	fails("TurnFailed", "The platform has no access", "run_turn", `{"agentId":"AGENT","prompt":"p"}`)
	w.change(`update agents set status = 'suspended' where id = $1`, w.AgentID)
	fails("Forbidden", "the agent is suspended and takes no turns", "run_turn", `{"agentId":"AGENT","prompt":"p"}`)
	fails("Forbidden", "the agent is suspended and takes no turns", "call_tool", `{"agentId":"AGENT","tool":"read_thread","input":{"threadId":"CHAT-77"}}`)
	require.Equal(t, "failed", value[string](w, `select string_agg(distinct status::text, ' ') from routine_steps where tenant_id = $1`, w.TenantID))
}

// The engine may call a function twice for one token: at once, or after the step has ended.
func TestAStepIsBegunOnce(t *testing.T) {
	w := newWorks(t)
	run := w.run(only("wait_for_approval", `{"prompt":"Hold"}`), `{}`)
	w.asked(1)
	body := func(verb routine.Verb, token, input string) []byte {
		raw, err := json.Marshal(routine.Call{TenantID: w.TenantID, RoutineID: run.RoutineID, Version: 1, RunID: run.ID, State: "Only", Verb: verb, Entered: time.Now(), Token: token,
			Input: json.RawMessage(input)})
		require.NoError(t, err)
		return raw
	}
	for verb, input := range map[routine.Verb]string{routine.RunTurn: fmt.Sprintf(`{"agentId":%q,"prompt":"p"}`, w.AgentID), routine.WaitForApproval: `{"prompt":"p"}`,
		routine.SendMail: `{"to":"stranger@example.com","subject":"s","text":"t"}`, routine.StartRoutine: fmt.Sprintf(`{"routineId":%q,"wait":false}`, run.RoutineID),
		routine.CallTool: fmt.Sprintf(`{"agentId":%q,"tool":"read_thread"}`, w.AgentID)} {
		token := strings.Repeat(string(verb), 5)
		const n = 6
		answers := make([]string, n)
		var ready, done sync.WaitGroup
		barrier := make(chan struct{})
		for i := range n {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-barrier
				raw, err := w.functions["begin-step"].Invoke(t.Context(), body(verb, token, input))
				answers[i] = fmt.Sprint(string(raw), err)
			})
		}
		ready.Wait()
		close(barrier)
		done.Wait()
		for _, a := range answers {
			require.Equal(t, answers[0], a, verb)
			require.Contains(t, a, "stepId", verb)
		}
		require.Equal(t, 1, value[int](w, `select count(*) from routine_steps where verb = $1 and run_id = $2 and state = 'Only' and token_hash = sha256($3::bytea)`, verb, run.ID, []byte(token)), verb)
	}
	require.Equal(t, 1, value[int](w, `select count(*) from thread_turns where tenant_id = $1`, w.TenantID))
	require.Equal(t, 1, value[int](w, `select count(*) from routine_runs where parent_run_id = $1`, run.ID))

	for want, payload := range map[string][]byte{
		"names no task":  body(routine.RunTurn, "", `{}`),
		"prompt":         body(routine.RunTurn, "token", fmt.Sprintf(`{"agentId":%q}`, w.AgentID)),
		"platform:magic": body("magic", "token", `{}`),
	} {
		_, err := w.functions["begin-step"].Invoke(t.Context(), payload)
		require.ErrorContains(t, err, want)
	}
}

// A run that is over begins nothing, and what it had begun does nothing more.
func TestTheEndOfARunCutsItsSteps(t *testing.T) {
	w := newWorks(t)
	reached := make(chan struct{})
	w.say = func(ctx context.Context, _ model.Request, _ model.Stream) (model.Response, error) {
		close(reached)
		<-ctx.Done()
		return model.Response{}, &model.Error{Reason: model.Canceled, Message: "cancelled"}
	}
	w.lose("call-tool")
	run := w.run(fmt.Sprintf(`{"StartAt":"All","States":{"All":{"Type":"Parallel","End":true,"Branches":[
		{"StartAt":"A","States":{"A":%s}},{"StartAt":"B","States":{"B":%s}},{"StartAt":"C","States":{"C":%s}},{"StartAt":"D","States":{"D":%s}}]}}}`,
		task("wait_for_approval", `{"prompt":"May I?"}`, end), task("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"p"}`, w.AgentID), end),
		task("call_tool", fmt.Sprintf(`{"agentId":%q,"tool":"read_thread","input":{"threadId":"CHAT-1"}}`, w.AgentID), end),
		task("start_routine", fmt.Sprintf(`{"routineId":%q}`, w.made("child", only("wait_for_approval", `{"prompt":"May the child?"}`)).ID), end)), `{}`)
	<-reached
	waiting := w.asked(2)
	require.Eventually(t, func() bool {
		return value[int](w, `select count(*) from routine_steps where run_id = $1`, run.ID) == 4
	}, time.Minute, 5*time.Millisecond)

	stopped, refused := call[routine.Run](w.site, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": run.ID, "reason": "enough"})
	require.Nil(t, refused)
	require.Equal(t, routine.Aborted, stopped.Status)
	require.Equal(t, "cut 4", value[string](w, `select string_agg(distinct status::text, ' ') || ' ' || count(*) from routine_steps where run_id = $1`, run.ID))
	require.Eventually(t, func() bool {
		return value[string](w, `select status::text from thread_turns where tenant_id = $1`, w.TenantID) == "cancelled"
	}, time.Minute, 5*time.Millisecond, "its turn is cancelled")
	w.asked(0)
	for _, a := range waiting {
		_, refused = call[args](w.site, "approve-step", functions.ApproveStep, tenant.Owner, args{"runId": a.RunID, "stepId": a.StepID, "decision": "APPROVED"})
		require.NotNil(t, refused)
		require.Equal(t, "the run does not wait for the decision any more", refused.Message)
	}
	w.found()
	w.sweep("call-tool")
	w.sweep("answer-callbacks")
	raw, err := json.Marshal(routine.Call{TenantID: w.TenantID, RoutineID: run.RoutineID, Version: 1, RunID: run.ID, State: "A", Verb: routine.WaitForApproval, Token: "another token", Input: json.RawMessage(`{"prompt":"p"}`)})
	require.NoError(t, err)
	_, err = w.functions["begin-step"].Invoke(t.Context(), raw)
	require.ErrorContains(t, err, "the run is over")
}

// Runs that start runs end at a depth.
func TestRunsAreNestedToALimit(t *testing.T) {
	w := newWorks(t)
	again := `{"StartAt":"Only","States":{"Only":{"Type":"Task","Resource":"platform:start_routine","Parameters":{"routine.$":"$.me","input.$":"$"},"ResultSelector":{"below.$":"$.output"},` +
		caught + `,"End":true}` + after + `}}`
	out := w.output(w.started(w.made("me", again).ID, `{"me":"me"}`).ID)
	for range routine.MaxDepth - 1 {
		out = out["below"].(args)
	}
	require.Equal(t, "ValidationError", out["error"])
	require.Contains(t, out["cause"], "runs that start runs may be 5 deep")
	require.Equal(t, routine.MaxDepth, value[int](w, `select max(depth) from routine_runs where tenant_id = $1`, w.TenantID))
	require.Equal(t, routine.MaxDepth, value[int](w, `select count(*) from routine_runs where tenant_id = $1 and status = 'succeeded'`, w.TenantID))
}

// An agent starts a routine in a turn; within a run's turn, a run of that run.
func TestAnAgentStartsARoutine(t *testing.T) {
	w := newWorks(t)
	w.change(`update agents set tools = '{start_routine}' where id = $1`, w.AgentID)
	child := w.made("child", `{"StartAt":"P","States":{"P":{"Type":"Pass","End":true}}}`)
	told := make(chan string, 4)
	w.say = func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		last := r.Messages[len(r.Messages)-1].Blocks
		if last[0].ToolResult == nil {
			use := func(id, input string) model.Block {
				return model.Block{ToolUse: &model.ToolUse{ID: id, Name: "start_routine", Input: json.RawMessage(input)}}
			}
			return model.Response{Blocks: []model.Block{use("1", `{"routine":"child","input":{"a":1}}`), use("1", `{"routine":"child","input":{"a":1}}`),
				use("2", fmt.Sprintf(`{"routine":%q}`, child.ID)), use("3", `{"routine":"nobody"}`)}, StopReason: model.StopToolUse}, nil
		}
		for _, b := range last {
			told <- b.ToolResult.Status + " " + b.ToolResult.Text + string(b.ToolResult.Output)
		}
		return says(s, "Started."), nil
	}
	run := w.run(only("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"Start it."}`, w.AgentID)), `{}`)
	require.Equal(t, "Started.", w.output(run.ID)["reply"])
	started := func() string { // the run's id; it may be over by now
		id, rest, found := strings.Cut(strings.TrimPrefix(<-told, `ok {"runId":"`), `"`)
		require.True(t, found)
		require.Regexp(t, `^,"status":"(running|succeeded)"}$`, rest)
		return id
	}
	first := started()
	require.Equal(t, first, started(), "one call is one run")
	require.NotEqual(t, first, started())
	require.Contains(t, <-told, "routine not found")
	children := value[[]string](w, `select array_agg(id::text || ' ' || depth || ' ' || started_by) from routine_runs where routine_id = $1 and parent_run_id = $2`, child.ID, run.ID)
	require.Len(t, children, 2)
	for _, c := range children {
		id, rest, _ := strings.Cut(c, " ")
		require.Equal(t, "2 agent", rest)
		require.Equal(t, routine.Succeeded, w.ended(id).Status)
	}
}

// Whatever is lost between the functions is found by the sweeps.
func TestLostInvocationsAreFound(t *testing.T) {
	w := newWorks(t)
	w.change(`update agents set tools = '{run_code}' where id = $1`, w.AgentID)
	w.lose("call-tool", "answer-callbacks", "settle-routine-run")
	child := w.made("child", `{"StartAt":"P","States":{"P":{"Type":"Pass","End":true}}}`)
	run := w.run(fmt.Sprintf(`{"StartAt":"A","States":{"A":%s,"B":%s}}`, task("call_tool", fmt.Sprintf(`{"agentId":%q,"tool":"run_code","input":{"code":"return 42"}}`, w.AgentID), `"Next":"B"`),
		task("start_routine", fmt.Sprintf(`{"routineId":%q}`, child.ID), end)), `{}`)
	require.Eventually(t, func() bool {
		w.found()
		w.change(`update routine_steps set lease_until = clock_timestamp() - interval '1 second' where lease_until is not null and lease_id is null`)
		w.change(`update routine_runs set look_after = clock_timestamp() - interval '1 second' where look_after is not null`)
		for _, f := range []string{"call-tool", "answer-callbacks", "settle-routine-run"} {
			w.sweep(f)
		}
		return w.get(run.ID).Status.Over()
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, routine.Succeeded, w.get(run.ID).Status)
}

// A turn that a person waits for, too, is not cancelled with the run; one that has not begun ends with it.
func TestTheEndOfARunLeavesWhatIsNotItsOwn(t *testing.T) {
	w := newWorks(t)
	w.lose("dispatch-turn")
	run := w.run(fmt.Sprintf(`{"StartAt":"All","States":{"All":{"Type":"Parallel","End":true,"Branches":[{"StartAt":"A","States":{"A":%s}},{"StartAt":"B","States":{"B":%s}}]}}}`,
		task("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"shared"}`, w.AgentID), end), task("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"own"}`, w.AgentID), end)), `{}`)
	require.Eventually(t, func() bool {
		return value[int](w, `select count(*) from routine_steps where run_id = $1 and turn_id is not null`, run.ID) == 2
	}, time.Minute, 5*time.Millisecond)
	w.change(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number, user_id)
		select tenant_id, gen_random_uuid(), thread_uuid, 2, 'user', 'I too', turn_id, 1, $2 from messages where body = 'shared' and tenant_id = $1`, w.TenantID, w.UserID)
	_, refused := call[routine.Run](w.site, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": run.ID})
	require.Nil(t, refused)
	require.Equal(t, "cut 2", value[string](w, `select string_agg(distinct status::text, ' ') || ' ' || count(*) from routine_steps where run_id = $1`, run.ID))
	require.Equal(t, "own cancelled, shared queued", value[string](w, `select string_agg(m.body || ' ' || t.status, ', ' order by m.body) from thread_turns t
		join messages m on m.turn_id = t.id and m.position = 1 where t.tenant_id = $1`, w.TenantID))
}

// A turn that waits for a person ends with the run: nobody is asked for nothing.
func TestTheEndOfARunEndsWhatAPersonIsAsked(t *testing.T) {
	w := newWorks(t)
	w.change(`update agents set tools = '{ask_user}' where id = $1`, w.AgentID)
	w.say = func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return model.Response{Blocks: []model.Block{{ToolUse: &model.ToolUse{ID: "1", Name: "ask_user", Input: json.RawMessage(`{"question":"Which one?"}`)}}}, StopReason: model.StopToolUse}, nil
	}
	run := w.run(only("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"p"}`, w.AgentID)), `{}`)
	state := func() string {
		return value[string](w, `select coalesce((select t.status || ', thread ' || h.status from thread_turns t join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid
			where t.tenant_id = $1), '')`, w.TenantID)
	}
	require.Eventually(t, func() bool { return state() == "waiting, thread waiting" }, time.Minute, 5*time.Millisecond)
	_, refused := call[routine.Run](w.site, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": run.ID})
	require.Nil(t, refused)
	require.Equal(t, routine.Aborted, w.ended(run.ID).Status)
	require.Equal(t, "cancelled, thread open", state())
}

// A person writes to a turn at the moment at which the run ends: the turn is that person's, too.
func TestAPersonWritesAsTheRunEnds(t *testing.T) {
	w := newWorks(t)
	w.lose("dispatch-turn")
	run := w.run(only("run_turn", fmt.Sprintf(`{"agentId":%q,"prompt":"p"}`, w.AgentID)), `{}`)
	require.Eventually(t, func() bool {
		return value[int](w, `select count(*) from thread_turns where tenant_id = $1 and callback_id is not null`, w.TenantID) == 1
	}, time.Minute, 5*time.Millisecond)
	stopped := make(chan *fault.Error, 1)
	err := w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
		if _, err := turn.Request(t.Context(), tx, w.TenantID, turn.Ask{ThreadID: "AUTO-1", Body: "I too", OnBusy: turn.Enqueue, UserID: w.UserID}); err != nil {
			return err
		}
		go func() {
			_, refused := call[routine.Run](w.site, "stop-routine-run", functions.StopRoutineRun, tenant.Admin, args{"id": run.ID})
			stopped <- refused
		}()
		require.Eventually(t, func() bool {
			return value[int](w, `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`) > 0
		}, time.Minute, 5*time.Millisecond, "the run's end waits for the turn")
		return nil
	})
	require.NoError(t, err)
	require.Nil(t, <-stopped)
	require.Equal(t, routine.Aborted, w.ended(run.ID).Status)
	require.Equal(t, "queued", value[string](w, `select status::text from thread_turns where tenant_id = $1`, w.TenantID))
}

// An attempt whose time was over before anybody did it is not done: only the next one is.
func TestAnAttemptThatTheEngineGaveUpIsNotDone(t *testing.T) {
	w := newWorks(t)
	address := value[string](w, `select email from users where id = $1`, w.UserID)
	w.lose("call-tool")
	run := w.run(only("send_mail", fmt.Sprintf(`{"to":%q,"subject":"s","text":"t"}`, address), `"TimeoutSeconds":60`,
		`"Retry":[{"ErrorEquals":["States.Timeout"],"IntervalSeconds":1,"MaxAttempts":1}]`), `{}`)
	begun := func(n int) bool {
		return value[int](w, `select count(*) from routine_steps where run_id = $1`, run.ID) == n
	}
	require.Eventually(t, func() bool { return begun(1) }, time.Minute, 5*time.Millisecond)
	w.later(61 * time.Second)
	require.Eventually(t, func() bool { return begun(2) }, time.Minute, 5*time.Millisecond)
	w.found()
	w.change(`update routine_steps set lease_until = clock_timestamp() - interval '1 second'`)
	w.sweep("call-tool")
	require.NotEmpty(t, w.output(run.ID)["messageId"])
	require.Eventually(t, func() bool {
		return value[string](w, `select string_agg(status::text, ' ' order by id) from routine_steps where run_id = $1`, run.ID) == "cut succeeded"
	}, time.Minute, 5*time.Millisecond)
	require.Len(t, w.sent(), 1)
}
