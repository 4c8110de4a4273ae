package step_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
)

type object = map[string]any

func TestAToolIsCalledOnce(t *testing.T) {
	w := newWorld(t)
	work := w.call("once", object{"a": 1})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { _ = w.caller.Do(context.WithoutCancel(t.Context()), work) })
	}
	all.Wait()
	require.Equal(t, 1, w.times("once"))
	status, told := w.outcome(work)
	require.Equal(t, "succeeded", status)
	require.JSONEq(t, fmt.Sprintf(`{"said":{"a":1},"agent":%q,"turn":""}`, w.AgentID), told)
	require.Len(t, w.told, 1)
	w.expire(work)
	w.do(work)
	require.Equal(t, 1, w.times("once"), "a step that is over stays over")
}

func TestWhatToolsFailWith(t *testing.T) {
	w := newWorld(t)
	for input, want := range map[string]string{"panic": "ToolFailed: internal error", "fail": "ToolFailed: internal error", "much": "ToolFailed: the result is longer than 65536 bytes; ask for less",
		"nul": "ToolFailed: there is   none"} {
		work := w.call("once", object{"do": input})
		w.do(work)
		status, told := w.outcome(work)
		require.Equal(t, []string{"failed", want}, []string{status, told})
	}
}

// What a crash hides: a tool that may be called again is, another is not, and neither is a mail sent again.
func TestACrashHidesTheOutcome(t *testing.T) {
	crash := errors.New("the process is killed")
	for point, c := range map[string]struct {
		once, again int // calls in all
		told        string
	}{
		"step claimed": {1, 1, ""},
		"tool called":  {0, 1, "ToolFailed: interrupted, outcome unknown"},
		"tool ended":   {1, 2, "ToolFailed: interrupted, outcome unknown"},
		"step done":    {1, 2, "ToolFailed: interrupted, outcome unknown"},
	} {
		w := newWorld(t)
		for name, calls := range map[string]int{"once": c.once, "again": c.again} {
			work := w.call(name, object{})
			w.signal = func(at string) {
				if at == point {
					w.signal = nil
					panic(crash)
				}
			}
			require.PanicsWithError(t, crash.Error(), func() { _ = w.caller.Do(t.Context(), work) }, point)
			w.do(work)
			status, _ := w.outcome(work)
			require.NotContains(t, []string{"succeeded", "failed"}, status, "the lease is another's")
			w.expire(work)
			require.NoError(t, w.caller.Do(t.Context(), step.Work{}))
			require.Equal(t, []step.Work{work}, w.again)
			w.again = nil
			w.do(work)
			status, told := w.outcome(work)
			if name == "again" || c.told == "" {
				require.Equal(t, "succeeded", status, "%s at %s: %s", name, point, told)
			} else {
				require.Equal(t, []string{"failed", c.told}, []string{status, told}, point)
			}
			require.Equal(t, calls, w.times(name), "%s at %s", name, point)
		}
	}
}

func TestAMailIsSentOnce(t *testing.T) {
	w := newWorld(t)
	var address string
	require.NoError(t, w.super.QueryRow(t.Context(), `select email from users where id = $1`, w.UserID).Scan(&address))
	for _, to := range []any{address, []string{address}} {
		work := step.Work{TenantID: w.TenantID, StepID: w.begin(routine.SendMail, object{"to": to, "subject": "s", "text": "t"}).StepID}
		w.do(work)
		status, told := w.outcome(work)
		require.Equal(t, "succeeded", status)
		require.JSONEq(t, `{"messageId":"<1@acme.test>"}`, told)
	}
	require.Equal(t, 2, w.times("mail"))

	lost := step.Work{TenantID: w.TenantID, StepID: w.begin(routine.SendMail, object{"to": address, "subject": "s", "text": "t"}).StepID}
	w.signal = func(at string) {
		if at == "step done" {
			panic("killed")
		}
	}
	require.Panics(t, func() { _ = w.caller.Do(t.Context(), lost) })
	w.signal = nil
	w.expire(lost)
	w.do(lost)
	status, told := w.outcome(lost)
	require.Equal(t, "failed", status)
	require.Contains(t, told, "MailUnknown: it is not known whether the mail was sent")
	require.Equal(t, 3, w.times("mail"))

	w.caller.Send = func(context.Context, []byte) ([]byte, error) { return nil, errors.New("connection reset") }
	broken := step.Work{TenantID: w.TenantID, StepID: w.begin(routine.SendMail, object{"to": address, "subject": "s", "text": "t"}).StepID}
	w.do(broken)
	_, told = w.outcome(broken)
	require.Contains(t, told, "MailUnknown: ")
	require.NotContains(t, told, "connection reset")
	w.caller.Send = nil
	none := step.Work{TenantID: w.TenantID, StepID: w.begin(routine.SendMail, object{"to": address, "subject": "s", "text": "t"}).StepID}
	w.do(none)
	_, told = w.outcome(none)
	require.Equal(t, "ValidationError: this deployment sends no mail", told)
}

// A step that dies again and again ends.
func TestAStepThatDiesEnds(t *testing.T) {
	w := newWorld(t)
	work := w.call("again", object{})
	w.signal = func(at string) {
		if at == "tool called" {
			panic("killed")
		}
	}
	for range 3 {
		require.Panics(t, func() { _ = w.caller.Do(t.Context(), work) })
		w.expire(work)
	}
	w.do(work)
	status, told := w.outcome(work)
	require.Equal(t, []string{"failed", "ToolFailed: the step died 3 times"}, []string{status, told})
	require.Zero(t, w.times("again"))
}

// A run ends while a tool is being called: what the tool says is not written.
func TestARunEndsWhileAToolIsCalled(t *testing.T) {
	w := newWorld(t)
	work := w.call("once", object{})
	w.signal = func(at string) {
		if at == "tool called" {
			w.change(`update routine_runs set status = 'aborted', finished_at = clock_timestamp() where id = $1`, w.run.ID)
		}
	}
	w.do(work)
	status, told := w.outcome(work)
	require.Equal(t, []string{"cut", ""}, []string{status, told})
	require.Empty(t, w.told)
	queued := newWorld(t)
	work = queued.call("once", object{})
	queued.change(`update routine_runs set status = 'aborted', finished_at = clock_timestamp() where id = $1`, queued.run.ID)
	queued.do(work)
	require.Zero(t, queued.times("once"))
}

// The guardrail of the agent checks what goes into a tool and comes out of it.
func TestTheGuardrailOfTheAgent(t *testing.T) {
	w := newWorld(t)
	id := ident.New()
	w.change(`insert into guardrails (tenant_id, id, name, kind, rules) values ($1, $2, 'g', 'RULES', $3)`, w.TenantID, id,
		`[{"stages":["tool_input"],"action":"block","topic":{"name":"words","phrases":["forbidden"]}},{"stages":["tool_output"],"action":"mask","pattern":{"name":"words","pattern":"secret"}}]`)
	w.change(`update agents set guardrail_id = $2 where id = $1`, w.AgentID, id)
	blocked := w.call("once", object{"a": "forbidden"})
	w.do(blocked)
	status, told := w.outcome(blocked)
	require.Equal(t, "failed", status)
	require.Contains(t, told, "ToolDenied: a guardrail has blocked it")
	require.Zero(t, w.times("once"))
	masked := w.call("once", object{"a": "a secret b"})
	w.do(masked)
	status, told = w.outcome(masked)
	require.Equal(t, "succeeded", status)
	require.NotContains(t, told, "secret")
	w.change(`update agents set guardrail_id = $2 where id = $1`, w.AgentID, ident.New())
	broken := w.call("once", object{})
	w.do(broken)
	_, told = w.outcome(broken)
	require.Contains(t, told, "ToolDenied: The agent's guardrail")
}

func TestWorkThatNamesNoStep(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, fault.ValidationError, fault.From(w.caller.Do(t.Context(), step.Work{TenantID: "x", StepID: "y"})).Type)
	w.do(step.Work{TenantID: w.TenantID, StepID: ident.New()})
	other := w.db.World(t, "globex")
	w.do(step.Work{TenantID: other.TenantID, StepID: w.call("once", object{}).StepID})
	require.Zero(t, w.times("once"))
}

// The engine has begun another attempt, or the task's time was over, before the step was done: it is not done.
func TestAStepThatNobodyWaitsForIsNotDone(t *testing.T) {
	w := newWorld(t)
	asked := func(work step.Work) (id string) {
		require.NoError(t, w.super.QueryRow(t.Context(), `select callback_id::text from routine_steps where id = $1`, work.StepID).Scan(&id))
		return id
	}
	status := func(work step.Work) (s string) {
		require.NoError(t, w.super.QueryRow(t.Context(), `select status::text || case when finished_at is null or lease_until is not null then ' open' else '' end
			from routine_steps where id = $1`, work.StepID).Scan(&s))
		return s
	}
	late := w.call("once", object{})
	w.over[asked(late)] = true
	w.do(late)
	require.Equal(t, "cut", status(late))
	mail := step.Work{TenantID: w.TenantID, StepID: w.begin(routine.SendMail, object{"to": "a@b.test", "subject": "s", "text": "t"}).StepID}
	w.change(`delete from callbacks where id = $1`, asked(mail))
	w.do(mail)
	require.Equal(t, "cut", status(mail))
	require.Zero(t, w.times("once")+w.times("mail"))

	again := w.call("again", object{}) // died in the call, and the task's time was over by the time of another one
	w.signal = func(at string) {
		if at == "tool called" {
			panic("killed")
		}
	}
	require.Panics(t, func() { _ = w.caller.Do(t.Context(), again) })
	w.signal = nil
	w.expire(again)
	w.over[asked(again)] = true
	w.do(again)
	require.Equal(t, "cut", status(again))
	require.Zero(t, w.times("again"))
	require.Empty(t, w.told)

	w.away = errors.New("the engine is out of reach")
	work := w.call("once", object{})
	for range 5 {
		require.ErrorIs(t, w.caller.Do(t.Context(), work), w.away)
	}
	require.Equal(t, "queued open", status(work), "that was no attempt")
	w.away = nil
	w.do(work)
	require.Equal(t, "succeeded", status(work))
	require.Equal(t, 1, w.times("once"))
}
