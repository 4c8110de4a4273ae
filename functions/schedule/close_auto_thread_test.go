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
func (w *world) ran() (one string, o pkgschedule.Opened, failed *messages.InvokeResponse_Error) {
	w.t.Helper()
	one = arn()
	o = w.opened(one)
	_, failed = w.run(o.TurnID)
	return one, o, failed
}

func refuse(context.Context, model.Request, model.Stream) (model.Response, error) {
	return model.Response{}, &model.Error{Reason: model.Denied, Message: "No access."}
}

func TestCloseAutoThread(t *testing.T) {
	w := newWorld(t)
	one, o, failed := w.ran()
	require.Nil(t, failed)
	for range 2 { // the engine asked twice
		r, failed := w.close(one, nil)
		require.Nil(t, failed)
		require.Equal(t, pkgschedule.Result{Status: "succeeded", ThreadID: &o.ThreadID, TurnID: &o.TurnID}, r)
	}
	require.Equal(t, thread.Closed, w.thread(o.ThreadID).Status)
	require.Equal(t, record{Workflow: "auto-thread", Status: "succeeded", TurnID: &o.TurnID, Started: true, Finished: true, FinishedAfterStart: true}, w.record(one))
	require.Equal(t, []string{"AUTO-1 closed"}, w.updates())
	require.Zero(t, w.count("notifications"), "all were delivered")

	w.send(o.ThreadID, "And yesterday?", pkgturn.Enqueue)
	again, failed := w.close(one, &pkgschedule.Failure{Error: "States.Timeout"})
	require.Nil(t, failed)
	require.Equal(t, "succeeded", string(again.Status), "what is recorded stays")
	require.Equal(t, thread.Open, w.thread(o.ThreadID).Status)
}

func TestFailThread(t *testing.T) {
	w := newWorld(t)
	w.say = refuse
	one, o, failed := w.ran()
	for range 2 {
		r, refused := w.close(one, caught(t, failed))
		require.Nil(t, refused)
		kind, reason := "TurnFailed", "No access."
		require.Equal(t, pkgschedule.Result{Status: "failed", ThreadID: &o.ThreadID, TurnID: &o.TurnID, ErrorType: &kind, Error: &reason}, r)
		require.Equal(t, record{Workflow: "auto-thread", Status: "failed", TurnID: &o.TurnID, ErrorType: &kind, Error: &reason, Started: true, Finished: true, FinishedAfterStart: true}, w.record(one))
	}
	require.Equal(t, thread.Failed, w.thread(o.ThreadID).Status)
	require.Equal(t, []string{"AUTO-1 failed"}, w.updates())
}

func TestCloseTogether(t *testing.T) {
	w := newWorld(t)
	one, o, failed := w.ran()
	require.Nil(t, failed)
	answers, refused := together(8, func() (pkgschedule.Result, *messages.InvokeResponse_Error) { return w.close(one, nil) })
	for i, a := range answers {
		require.Nil(t, refused[i])
		require.Equal(t, answers[0], a)
	}
	require.Equal(t, thread.Closed, w.thread(o.ThreadID).Status)
	require.Equal(t, []string{"AUTO-1 closed"}, w.updates(), "once")
}

// An execution that could not open a thread is recorded all the same.
func TestNothingWasOpened(t *testing.T) {
	w := newWorld(t)
	w.change(`update agents set status = 'suspended'`)
	one := arn()
	_, failed := w.open(one, w.input())
	for range 2 {
		r, refused := w.close(one, caught(t, failed))
		require.Nil(t, refused)
		require.Equal(t, "failed", string(r.Status))
		require.Equal(t, "Forbidden: the agent is suspended and takes no turns", *r.ErrorType+": "+*r.Error)
		require.Nil(t, r.ThreadID)
	}
	require.Equal(t, "failed", w.record(one).Status)
	require.Empty(t, w.updates())

	w.change(`update agents set status = 'active'`)
	_, failed = w.open(one, w.input())
	require.Equal(t, "the execution is over", failed.Message, "a call that comes too late opens nothing")
	require.Zero(t, w.count("threads"))
}

// What the engine believes is not what counts.
func TestTheTurnHadSucceeded(t *testing.T) {
	w := newWorld(t)
	one, o, failed := w.ran()
	require.Nil(t, failed)
	r, refused := w.close(one, &pkgschedule.Failure{Error: "Sandbox.Timedout", Cause: `{"errorMessage":"RequestId: 1 Error: Task timed out"}`})
	require.Nil(t, refused)
	require.Equal(t, "succeeded", string(r.Status))
	require.Nil(t, r.Error)
	require.Equal(t, thread.Closed, w.thread(o.ThreadID).Status)
}

// A turn that still runs when the execution is given up is over then, and says nothing more.
func TestGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		failure       pkgschedule.Failure
		kind, message string
	}{
		"too long":      {pkgschedule.Failure{Error: "States.Timeout"}, "TurnNotOver", "the run took longer than a workflow waits"},
		"a crash":       {pkgschedule.Failure{Error: "Runtime.ExitError", Cause: `{"errorMessage":"RequestId: 1 Error: exit status 2 in /var/task"}`}, "InternalError", "internal error"},
		"told by name":  {pkgschedule.Failure{Error: "TurnNotOver", Cause: `{"errorType":"TurnNotOver","errorMessage":"the turn took longer than a run may"}`}, "TurnNotOver", "the turn took longer than a run may"},
		"without cause": {pkgschedule.Failure{Error: "TurnFailed", Cause: "?"}, "InternalError", "internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asking, answer := make(chan struct{}), make(chan struct{})
			w.say = func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
				close(asking)
				<-answer
				return says(s, "Too late."), nil
			}
			one := arn()
			o := w.opened(one)
			done := make(chan *messages.InvokeResponse_Error, 1)
			go func() {
				_, failed := w.run(o.TurnID)
				done <- failed
			}()
			<-asking
			r, refused := w.close(one, &c.failure)
			require.Nil(t, refused)
			require.Equal(t, c.kind+": "+c.message, *r.ErrorType+": "+*r.Error)
			close(answer)
			require.Equal(t, &messages.InvokeResponse_Error{Type: "TurnFailed", Message: c.message}, <-done)
			w.running.Wait()
			require.Equal(t, []string{"user: Sum up the day."}, w.messages(w.thread(o.ThreadID)))
			require.Equal(t, thread.Failed, w.thread(o.ThreadID).Status)
			require.Equal(t, pkgturn.Failed, w.turn(o.TurnID).Status)
		})
	}
}

func TestThreadsThatStayAsTheyAre(t *testing.T) {
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
			w := newWorld(t)
			w.say = c.say
			one, o, failed := w.ran()
			c.arrange(w, o.ThreadID)
			var f *pkgschedule.Failure
			if failed != nil {
				f = caught(t, failed)
			}
			_, refused := w.close(one, f)
			require.Nil(t, refused)
			require.Equal(t, c.want, w.thread(o.ThreadID).Status)
		})
	}
}

func TestCloseRefuses(t *testing.T) {
	w := newWorld(t)
	other := w.p.DB.World(t, "globex")
	one := arn()
	o := w.opened(one)
	for name, c := range map[string]struct {
		input         object
		kind, message string
	}{
		"the turn goes on": {object{"tenantId": w.TenantID, "executionArn": one}, "ValidationError", "the turn is not over"},
		"nothing opened":   {object{"tenantId": w.TenantID, "executionArn": arn()}, "ValidationError", "the execution has opened no thread"},
		"no arn":           {object{"tenantId": w.TenantID}, "ValidationError", "executionArn must not be empty"},
		"no tenant":        {object{"executionArn": one}, "ValidationError", "tenantId is not an id"},
		"no such tenant":   {object{"tenantId": ident.New(), "executionArn": one}, "NotFound", "tenant not found"},
	} {
		_, failed := call[pkgschedule.Result](t.Context(), w, "close-auto-thread", c.input)
		require.Equal(t, &messages.InvokeResponse_Error{Type: c.kind, Message: c.message}, failed, name)
	}
	require.Equal(t, 1, w.count("executions"))
	// Another tenant's execution of the same ARN is another execution.
	r, failed := call[pkgschedule.Result](t.Context(), w, "close-auto-thread", object{"tenantId": other.TenantID, "executionArn": one, "failure": object{"Error": "States.Timeout", "Cause": ""}})
	require.Nil(t, failed)
	require.Nil(t, r.ThreadID)
	require.Equal(t, "running", w.record(one).Status)
	require.Equal(t, pkgturn.Queued, w.turn(o.TurnID).Status)
}
