package export_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// What the victim is told.
const (
	victimJob    = "EXPORT_VICTIM_JOB"
	victimApp    = "EXPORT_VICTIM_APP_URL"
	victimReader = "EXPORT_VICTIM_READER_URL"
	victimBucket = "EXPORT_VICTIM_BUCKET"
	victimKey    = "EXPORT_VICTIM_KEY"
	victimPoint  = "EXPORT_VICTIM_POINT" // it kills itself at the n-th signal
)

// victim is a process that runs one job, and dies without a word at the point it is told.
func victim() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv(victimApp)})
	check(err)
	reader, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv(victimReader)})
	check(err)
	key, err := sign.File(os.Getenv(victimKey))
	check(err)
	point, err := strconv.Atoi(os.Getenv(victimPoint))
	check(err)
	seen := 0
	runner := &export.Runner{DB: db, Reader: reader, Bucket: exportsAt(os.Getenv(victimBucket)), Sign: key, PartSize: object.MinPart,
		Again: func(context.Context, string) error { return nil },
		Signal: func(name string) {
			if seen++; seen == point {
				fmt.Println(name)
				check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
				select {}
			}
		}}
	check(runner.Run(ctx, os.Getenv(victimJob)))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// kill runs the job in a process that dies at the point, which is named; empty: it came to the end alive.
func (w *world) kill(id string, point int) string {
	w.t.Helper()
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), self)
	cmd.Dir = "/" // the bucket's server has this process's
	cmd.Env = append(os.Environ(), victimJob+"="+id, victimApp+"="+w.db.AppURL, victimReader+"="+w.db.ReaderURL, victimBucket+"="+w.endpoint, victimKey+"="+w.keyFile,
		victimPoint+"="+strconv.Itoa(point))
	out, err := cmd.Output()
	if err == nil {
		return ""
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(w.t, ok && status.Signal() == syscall.SIGKILL, "%v: %s", err, out)
	return string(out)
}

// TestKillAtEveryPoint: a run that is killed at any point, and the run after it that is killed too, leave nothing that shows in the file.
func TestKillAtEveryPoint(t *testing.T) {
	newWorld(t).killAtEveryPoint(export.CSV, 60) // a part and a bit
}

func (w *world) killAtEveryPoint(format export.Format, events int) {
	w.big(events)
	whole := w.queue(format, "")
	w.run(whole)
	want := w.file(whole)
	w.runner.PartSize = object.MinPart
	points := 0
	for ; ; points++ {
		id := w.queue(format, "")
		at := w.kill(id, points+1)
		if at == "" {
			require.Equal(w.t, want, w.file(id))
			break
		}
		w.expireLeases()
		w.kill(id, 3)
		w.expireLeases()
		w.run(id)
		require.True(w.t, want == w.file(id), "killed at %s", at)
	}
	w.t.Logf("%s: killed at each of %d points", format, points)
	require.Equal(w.t, 5+2*(len(want)/object.MinPart+1), points)
}

// TestKillSmall: the same for a file of one PUT.
func TestKillSmall(t *testing.T) {
	w := newWorld(t)
	w.log.Append(audit.Event{TenantID: w.acme, OccurredAt: at(0)})
	for point := 1; ; point++ {
		id := w.queue(export.CSV, "")
		killed := w.kill(id, point) != ""
		w.expireLeases()
		w.run(id)
		require.EqualValues(t, 1, *w.job(id).Rows)
		w.file(id)
		if !killed {
			break
		}
	}
}

// TestKilledThreeTimes: a job that kills whoever runs it is given up, and its parts go.
func TestKilledThreeTimes(t *testing.T) {
	w := newWorld(t)
	w.big(60)
	id := w.queue(export.CSV, "")
	for _, point := range []int{4, 1, 1} {
		require.NotEmpty(t, w.kill(id, point))
		require.Equal(t, export.Running, w.job(id).Status)
		w.expireLeases()
	}
	var upload string
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select progress->>'upload' from export_jobs where id = $1`, id).Scan(&upload))
	w.run(id)
	require.Equal(t, export.Failed, w.job(id).Status)
	require.Equal(t, "the export was begun 3 times and never finished", *w.job(id).Error)
	_, err := w.bucket.ResumeUpload(export.Key(id, export.CSV), upload).Parts(t.Context())
	require.ErrorIs(t, err, object.ErrNoUpload)
}

// TestAsOfTheStart: what is chained after the first run began, and occurred within the window, is not in the file of a later run.
func TestAsOfTheStart(t *testing.T) {
	w := newWorld(t)
	w.big(60)
	whole := w.queue(export.CSV, "")
	w.run(whole)
	id := w.queue(export.CSV, "")
	require.Equal(t, "part recorded\n", w.kill(id, 5))
	w.expireLeases()
	initech := w.db.Tenant(t, "initech")
	late := w.log.Append(audit.Event{TenantID: w.acme, OccurredAt: at(200)}, audit.Event{TenantID: w.globex, OccurredAt: at(0)}, audit.Event{TenantID: initech, OccurredAt: at(0)})
	w.runner.PartSize = object.MinPart
	w.run(id)
	require.True(t, w.file(whole) == w.file(id))
	require.Len(t, w.manifest(export.Key(id, export.CSV)).Heads, 2)

	next := w.queue(export.CSV, "")
	w.run(next)
	for _, e := range late {
		require.Contains(t, w.file(next), e.EventID)
	}
}

// TestDroppedUpload: storage that forgets an unfinished upload costs the work, not the file.
func TestDroppedUpload(t *testing.T) {
	w := newWorld(t)
	w.big(60)
	whole := w.queue(export.CSV, "")
	w.run(whole)
	w.runner.PartSize = object.MinPart
	for _, point := range []int{4, 5, 7} { // part written, recorded, and the last one recorded
		id := w.queue(export.CSV, "")
		require.Contains(t, w.kill(id, point), "part")
		w.expireLeases()
		var upload string
		require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select progress->>'upload' from export_jobs where id = $1`, id).Scan(&upload))
		require.NoError(t, w.bucket.ResumeUpload(export.Key(id, export.CSV), upload).Abort(t.Context()))
		w.run(id)
		require.True(t, w.file(whole) == w.file(id))
	}
}
