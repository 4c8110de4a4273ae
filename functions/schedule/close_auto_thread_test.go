package schedule_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
)

// ran is an execution whose turn is over.
func (w *world) ran() (*execution, pkgschedule.Step) {
	w.t.Helper()
	x, o := w.opened(w.schedule(nil))
	x.turn()
	return x, o
}

func refuse(context.Context, model.Request, model.Stream) (model.Response, error) {
	return model.Response{}, &model.Error{Reason: model.Denied, Message: "No access."}
}

func TestCloseAutoThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, o := w.ran()
	for range 2 { // the engine asked twice
		r, failed := x.close()
		require.Nil(t, failed)
		require.Equal(t, pkgschedule.Result{Status: "succeeded", ThreadID: o.ThreadID, TurnID: o.TurnID}, r)
	}
	require.Equal(t, thread.Closed, w.thread(*o.ThreadID).Status)
	require.Equal(t, record{Trigger: "scheduled", Status: "succeeded", TurnID: o.TurnID, Finished: true, FinishedAfterStart: true}, x.record())
	require.Equal(t, []string{"AUTO-1 closed"}, w.updates())

	w.send(*o.ThreadID, "And yesterday?", pkgturn.Enqueue)
	x.fails(&pkgschedule.Failure{Error: "States.Timeout"})
	again, failed := x.close()
	require.Nil(t, failed)
	require.Equal(t, "succeeded", string(again.Status), "what is recorded stays")
	require.Equal(t, thread.Open, w.thread(*o.ThreadID).Status)
}

func TestFailThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say = refuse
	x, o := w.ran()
	for range 2 {
		r, refused := x.close()
		require.Nil(t, refused)
		kind, reason := "TurnFailed", "No access."
		require.Equal(t, pkgschedule.Result{Status: "failed", ThreadID: o.ThreadID, TurnID: o.TurnID, ErrorType: &kind, Error: &reason}, r)
		require.Equal(t, record{Trigger: "scheduled", Status: "failed", TurnID: o.TurnID, ErrorType: &kind, Error: &reason, Finished: true, FinishedAfterStart: true}, x.record())
	}
	require.Equal(t, thread.Failed, w.thread(*o.ThreadID).Status)
	require.Equal(t, []string{"AUTO-1 failed"}, w.updates())
}

func TestCloseTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, o := w.ran()
	answers, refused := together(8, x.close)
	for i, a := range answers {
		require.Nil(t, refused[i])
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, thread.Closed, w.thread(*o.ThreadID).Status)
	require.Equal(t, []string{"AUTO-1 closed"}, w.updates(), "once")
}

// An execution that could not open a thread is recorded all the same.
func TestNothingWasOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(`update agents set status = 'suspended'`)
	x := w.due(w.schedule(nil))
	_, failed := x.open()
	x.fails(caught(t, failed))
	for range 2 {
		r, refused := x.close()
		require.Nil(t, refused)
		require.Equal(t, "failed", string(r.Status))
		require.Equal(t, "Forbidden: the agent is suspended and takes no turns", *r.ErrorType+": "+*r.Error)
		require.Nil(t, r.ThreadID)
	}
	require.Equal(t, "failed", x.record().Status)
	require.Empty(t, w.updates())

	w.change(`update agents set status = 'active'`)
	_, failed = x.open()
	require.Equal(t, "the execution is over", failed.Message, "a call that comes too late opens nothing")
	require.Zero(t, w.count("threads"))
}

// What the engine believes is not what counts.
func TestTheTurnHadSucceeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, o := w.ran()
	x.fails(&pkgschedule.Failure{Error: "Sandbox.Timedout", Cause: `{"errorMessage":"RequestId: 1 Error: Task timed out"}`})
	r, refused := x.close()
	require.Nil(t, refused)
	require.Equal(t, "succeeded", string(r.Status))
	require.Nil(t, r.Error)
	require.Equal(t, thread.Closed, w.thread(*o.ThreadID).Status)
}

// A turn that still runs when the execution is given up is over then, and says nothing more.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure       pkgschedule.Failure
		kind, message string
	}{
		"too long":      {pkgschedule.Failure{Error: "States.Timeout"}, "TurnNotOver", "the run took longer than a workflow waits"},
		"silence":       {pkgschedule.Failure{Error: "States.HeartbeatTimeout"}, "TurnNotOver", "the run took longer than a workflow waits"},
		"a crash":       {pkgschedule.Failure{Error: "Runtime.ExitError", Cause: `{"errorMessage":"RequestId: 1 Error: exit status 2 in /var/task"}`}, "InternalError", "internal error"},
		"told by name":  {pkgschedule.Failure{Error: "NotFound", Cause: `{"errorType":"NotFound","errorMessage":"turn not found"}`}, "NotFound", "turn not found"},
		"without cause": {pkgschedule.Failure{Error: "TurnFailed", Cause: "?"}, "InternalError", "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			asking, answer := make(chan struct{}), make(chan struct{})
			w.say = func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
				close(asking)
				<-answer
				return says(s, "Too late."), nil
			}
			x, o := w.opened(w.schedule(nil))
			token, failed := x.run()
			require.Nil(t, failed)
			<-asking
			x.fails(&c.failure)
			r, refused := x.close()
			require.Nil(t, refused)
			require.Equal(t, c.kind+": "+c.message, *r.ErrorType+": "+*r.Error)
			close(answer)
			w.running.Wait()
			w.sweep(0)
			require.Equal(t, &pkgschedule.Failure{Error: "TurnFailed", Cause: c.message}, w.answered(token).Failure, "if the engine still waits")
			require.Equal(t, []string{"user: Sum up the day."}, w.messages(w.thread(*o.ThreadID)))
			require.Equal(t, thread.Failed, w.thread(*o.ThreadID).Status)
			require.Equal(t, pkgturn.Failed, w.turn(*o.TurnID).Status)
		})
	}
}

func TestThreadsThatStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say     func(context.Context, model.Request, model.Stream) (model.Response, error)
		arrange func(w *world, threadID string)
		want    thread.Status
	}{
		"a person has asked something":       {nil, func(w *world, id string) { w.send(id, "And yesterday?", pkgturn.Enqueue) }, thread.Open},
		"a person has closed it":             {nil, func(w *world, _ string) { w.change(`update threads set status = 'closed'`) }, thread.Closed},
		"a person has closed it, it fails":   {refuse, func(w *world, _ string) { w.change(`update threads set status = 'closed'`) }, thread.Closed},
		"a person has failed it":             {nil, func(w *world, _ string) { w.change(`update threads set status = 'failed'`) }, thread.Failed},
		"the agent waits for a person":       {nil, func(w *world, _ string) { w.change(`update threads set status = 'waiting'`) }, thread.Closed},
		"the agent waits, and the run fails": {refuse, func(w *world, _ string) { w.change(`update threads set status = 'waiting'`) }, thread.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.say = c.say
			x, o := w.ran()
			c.arrange(w, *o.ThreadID)
			_, refused := x.close()
			require.Nil(t, refused)
			require.Equal(t, c.want, w.thread(*o.ThreadID).Status)
		})
	}
}

func TestCloseRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.p.DB.World(t, "globex")
	s := w.schedule(nil)
	x, o := w.opened(s)
	with := func(changes object) object {
		input := object{}
		for name, value := range w.due(s).data {
			input[name] = value
		}
		for name, value := range changes {
			input[name] = value
		}
		return object{"executionArn": "arn:" + ident.New(), "input": input}
	}
	for name, c := range map[string]struct {
		input         object
		kind, message string
	}{
		"the turn goes on": {x.state(), "ValidationError", "the turn is not over"},
		"nothing opened":   {with(nil), "ValidationError", "the execution has opened no thread"},
		"no arn":           {object{"input": x.data}, "ValidationError", "executionArn must not be empty"},
		"no tenant":        {with(object{"tenantId": nil}), "ValidationError", "tenantId is not an id"},
		"no such tenant":   {with(object{"tenantId": ident.New()}), "NotFound", "tenant not found"},
	} {
		_, failed := call[pkgschedule.Result](t.Context(), w, "close-auto-thread", c.input)
		require.Equal(t, &messages.InvokeResponse_Error{Type: c.kind, Message: c.message}, failed, name)
	}
	require.Equal(t, 1, w.count("executions"))
	// Another tenant's execution is another execution, whatever it names.
	foreign := x.state()
	foreign["input"] = object{"tenantId": other.TenantID, "scheduleId": s.ID, "occurrence": x.data["occurrence"], "failure": object{"Error": "States.Timeout", "Cause": ""}}
	r, failed := call[pkgschedule.Result](t.Context(), w, "close-auto-thread", foreign)
	require.Nil(t, failed)
	require.Nil(t, r.ThreadID)
	require.Equal(t, "running", x.record().Status)
	require.Equal(t, pkgturn.Queued, w.turn(*o.TurnID).Status)
}
