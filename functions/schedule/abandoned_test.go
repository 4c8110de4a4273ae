package schedule_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	localclock "github.com/agentplatform/agentplatform/pkg/local/clock"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// ledger is what an engine says of its runs.
type ledger struct {
	workflow.Runs
	runs map[string]workflow.Run // by ARN
	down error
	told []string
}

func (l *ledger) Describe(_ context.Context, run string) (workflow.Run, error) {
	l.told = append(l.told, run)
	r, known := l.runs[run]
	if l.down == nil && !known {
		return r, workflow.ErrNoRun
	}
	return r, l.down
}

// An execution whose run of the machine is over, or gone, does not go on for ever: the drift check closes it. One that goes on is left alone.
func TestAbandonedExecutions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := localclock.Open(t.Context(), localclock.Config{URL: w.p.DB.SuperURL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	l := &ledger{runs: map[string]workflow.Run{}}
	keeper := &pkgschedule.Keeper{DB: w.p.DB.App, Clock: c, Runs: l}
	s := w.schedule(nil)
	w.on(nil, func(string) bool { return true })
	goesOn, _ := w.opened(s)
	stopped, o := w.opened(s)
	gone, _ := w.opened(s)
	succeeded, ended := w.opened(s)
	_, failed := succeeded.run()
	require.Nil(t, failed)
	w.dispatchNow(*ended.TurnID)
	l.runs[goesOn.arn] = workflow.Run{Status: workflow.Running}
	l.runs[stopped.arn] = workflow.Run{Status: workflow.Aborted, Error: "Operator", Cause: "enough"}
	l.runs[succeeded.arn] = workflow.Run{Status: workflow.Failed, Error: "Lambda.ServiceException", Cause: "?"}

	check := func() error {
		l.told = nil
		_, err := keeper.Reconcile(t.Context())
		return err
	}
	require.NoError(t, check())
	require.Empty(t, l.told, "they have just begun")
	later := func() { w.change(`update executions set look_after = look_after - interval '61 minutes'`) }
	later()
	l.down = workflow.ErrThrottled
	require.ErrorIs(t, check(), workflow.ErrThrottled)
	require.Len(t, l.told, 1)
	l.down = nil
	require.NoError(t, check())
	require.Len(t, l.told, 4)
	require.Equal(t, "running", goesOn.record().Status)
	require.Equal(t, "failed: internal error", stopped.record().Status+": "+*stopped.record().Error)
	require.Equal(t, "failed: internal error", gone.record().Status+": "+*gone.record().Error)
	require.Equal(t, "succeeded", succeeded.record().Status, "what its turn's record says")
	require.Equal(t, thread.Failed, w.thread(*o.ThreadID).Status)
	require.Equal(t, pkgturn.Failed, w.turn(*o.TurnID).Status)
	require.NoError(t, check())
	require.Empty(t, l.told)
	later()
	require.NoError(t, check())
	require.Equal(t, []string{goesOn.arn}, l.told)

	w.change(`update executions set look_after = now() - interval '1 minute' where arn = $1`, stopped.arn) // as of one that was closed before it was claimed
	require.NoError(t, check())
	require.Equal(t, []string{stopped.arn}, l.told)
	later()
	require.NoError(t, check())
	require.Equal(t, []string{goesOn.arn}, l.told, "what has its result is looked at once")
}
