package evaluation_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// What the victim is told.
const (
	victimURL    = "EVALUATION_VICTIM_DATABASE"
	victimModel  = "EVALUATION_VICTIM_MODEL"
	victimTenant = "EVALUATION_VICTIM_TENANT"
	victimRun    = "EVALUATION_VICTIM_RUN"
	victimPoint  = "EVALUATION_VICTIM_POINT" // it kills itself at the n-th signal
)

// victim is a process that works on a run, and on its turns, and dies without a word at the point it is told.
func victim() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv(victimURL)})
	check(err)
	w, err := newWorkers(ctx, db, os.Getenv(victimModel))
	check(err)
	point, err := strconv.ParseInt(os.Getenv(victimPoint), 10, 64)
	check(err)
	var seen atomic.Int64
	w.runner.Signal = func(string) {
		if seen.Add(1) >= point {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		}
	}
	check(w.runner.Run(ctx, evaluation.Job{TenantID: os.Getenv(victimTenant), RunID: os.Getenv(victimRun)}))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// kill works on the run in a process that dies at the point.
func (w *world) kill(r evaluation.Run, point int) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimURL+"="+w.db.AppURL, victimModel+"="+w.url, victimTenant+"="+w.TenantID, victimRun+"="+r.ID, victimPoint+"="+strconv.Itoa(point))
	out, err := cmd.CombinedOutput()
	require.Error(w.t, err, "it came to the end alive: %s", out)
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(w.t, ok && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)
}

// A run of thirty cases, whose worker is killed again and again: each case has one thread, one turn, one reply and one result in the end, and the
// tenant's usage has each grading that counted once.
func TestARunSurvivesItsWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.evaluation(30, 4, func(i int) string { return fmt.Sprintf("/say answer %d", i) })
	r := w.start(e)
	for _, point := range []int{1, 2, 9, 30} {
		w.kill(r, point)
		w.abandon()
		w.reap() // what died with its process goes on here
		w.running.Wait()
	}
	killed := w.run(r.ID)
	require.Equal(t, evaluation.Running, killed.Status)
	require.Positive(t, killed.PassedCount, "it got somewhere")
	w.work(r)

	done := w.run(r.ID)
	require.Equal(t, evaluation.Finished, done.Status)
	require.Equal(t, 30, done.PassedCount)
	require.Equal(t, 1.0, *done.PassRate)
	require.LessOrEqual(t, w.most, 4)
	threads := map[string]bool{}
	for _, x := range w.results(r.ID) {
		require.Equal(t, evaluation.CasePassed, x.Status)
		require.Equal(t, fmt.Sprintf("answer %d", x.Number), *x.Output)
		require.Len(t, x.Scores, 3)
		threads[*x.ThreadID] = true
	}
	require.Len(t, threads, 30)
	require.Equal(t, 30, w.count(`select count(*) from threads where channel = 'EVAL' and status = 'closed' and tenant_id = $1`, w.TenantID))
	require.Equal(t, 30, w.count(`select count(*) from thread_turns where status = 'succeeded' and json_array_length(evaluator_scores) = 3`))
	require.Equal(t, 60, w.count(`select count(*) from messages`))
	require.Equal(t, 30, w.count(`select count(*) from usage_unmetered where turns = 0 and model = 'offline.echo-1' and input_tokens > 0`))
}
