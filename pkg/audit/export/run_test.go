package export_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// TestFiles: both forms of a small export, to the byte, with nothing in them that redaction took out.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	e := w.log.Append(
		audit.Event{TenantID: w.acme, OccurredAt: at(1), Actor: "=1+1,\"x\"", ActorType: audit.ActorUser, Payload: map[string]any{"agentId": "a", "name": "Ada", "password": "hunter2"}},
		audit.Event{TenantID: w.globex, OccurredAt: at(2), Type: audit.ToolServerAdded, Source: audit.SourceSystem,
			Payload: map[string]any{"mcpId": "m", "url": "https://u:hunter2@mcp.test/?token=hunter2", "scopes": []any{"Bearer hunter2hunter2hunter2hunter2"}}},
		audit.Event{TenantID: w.acme, OccurredAt: at(24 * 60)}, // not that day
		audit.Event{TenantID: w.acme, OccurredAt: at(0)},
	)
	row := func(i int, actor, payload string) string {
		return strings.Join([]string{e[i].EventID, e[i].TenantID, e[i].OccurredAt.String(), e[i].RecordedAt.String(), actor, "user", string(e[i].Source), string(e[i].Type),
			e[i].Hash, e[i].Prev, payload}, ",") + "\r\n"
	}
	quoted := func(i int) string { return `"` + strings.ReplaceAll(string(e[i].Payload), `"`, `""`) + `"` }
	const header = "event_id,tenant_id,occurred_at,recorded_at,actor,actor_type,source,event_type,event_hash,prev_hash,payload_json\r\n"

	all := w.queue(export.CSV, "")
	w.run(all)
	file := w.file(all)
	require.Equal(t, header+row(1, "somebody", quoted(1))+row(0, `"'=1+1,""x"""`, quoted(0))+row(3, "somebody", quoted(3)), file)
	require.NotContains(t, file, "hunter2")
	require.Contains(t, file, `""name"":""Ada""`)
	m := w.manifest(export.Key(all, export.CSV))
	require.Len(t, m.Heads, 2)

	one := w.queue(export.NDJSON, `,"tenantId":"`+w.acme+`","eventType":"agent.created","actor":"somebody"`)
	w.run(one)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.file(one)), &line))
	require.Equal(t, e[3].EventID, line["event_id"])
	require.Equal(t, "Ada", line["payload_json"].(map[string]any)["name"])
	m = w.manifest(export.Key(one, export.NDJSON))
	require.Len(t, m.Heads, 1)
	require.Equal(t, w.acme, m.Heads[0].TenantID)
	require.EqualValues(t, 3, m.Heads[0].Length)

	for format, want := range map[export.Format]string{export.CSV: header, export.NDJSON: ""} {
		none := w.queue(format, `,"actor":"nobody"`)
		w.run(none)
		require.Equal(t, want, w.file(none))
		require.Zero(t, *w.job(none).Rows)
	}
	w.run(all) // a finished job is left alone
	require.True(t, missing(w.runner.Run(t.Context(), ident.New())))
	require.True(t, missing(w.runner.Run(t.Context(), "x")))
}

// TestManyRowsManyReads: the batches of the reading do not show.
func TestManyRowsManyReads(t *testing.T) {
	w := newWorld(t)
	events := make([]audit.Event, 1000)
	for i := range events {
		events[i] = audit.Event{TenantID: w.acme, OccurredAt: at(i % 10)} // a hundred at the same instant
	}
	w.log.Append(events...)
	var files []string
	for _, batch := range []int{0, 1000, 999, 7} {
		w.runner.Batch = batch
		id := w.queue(export.CSV, "")
		w.run(id)
		files = append(files, w.file(id))
		require.EqualValues(t, 1000, *w.job(id).Rows)
		require.Equal(t, files[0], files[len(files)-1])
	}
}

// TestDamagedEvent: a file never repeats what does not hold.
func TestDamagedEvent(t *testing.T) {
	w := newWorld(t)
	e := w.log.Append(audit.Event{TenantID: w.acme, OccurredAt: at(0)}, audit.Event{TenantID: w.acme, OccurredAt: at(1)})
	w.log.Tamper(`update audit_events set canonical = replace(canonical, '"Ada"', '"Eve"') where event_id = $1`, e[0].EventID)
	id := w.queue(export.CSV, "")
	w.run(id)
	job := w.job(id)
	require.Equal(t, export.Failed, job.Status)
	require.Contains(t, *job.Error, e[0].EventID)
	_, err := w.bucket.Get(t.Context(), export.Key(id, export.CSV), 1<<20)
	require.True(t, missing(err))
}

// TestOneRunAtATime: of several runs of a job at once one works.
func TestOneRunAtATime(t *testing.T) {
	w := newWorld(t)
	w.log.Append(audit.Event{TenantID: w.acme, OccurredAt: at(0)})
	id := w.queue(export.CSV, "")
	var claims atomic.Int32
	release := make(chan struct{})
	var others sync.WaitGroup
	w.runner.Signal = func(point string) {
		if point == "claimed" {
			claims.Add(1)
			<-release // holds the lease until the others have looked
		}
	}
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(t.Context(), id) }()
	require.Eventually(t, func() bool { return claims.Load() == 1 }, time.Minute, time.Millisecond)
	for range 4 {
		others.Go(func() { require.NoError(t, w.runner.Run(t.Context(), id)) })
	}
	others.Wait()
	close(release)
	require.NoError(t, <-done)
	require.EqualValues(t, 1, claims.Load())
	w.file(id)
}

// TestLostLease: a run that lost its job ends without a word in the job's row, also when it only learns by renewing.
func TestLostLease(t *testing.T) {
	w := newWorld(t)
	w.big(60)
	reference := w.queue(export.CSV, "")
	w.run(reference)
	id := w.queue(export.CSV, "")
	slow := *w.runner
	slow.PartSize = object.MinPart
	taken := false
	slow.Signal = func(point string) {
		if point == "part written" && !taken {
			taken = true
			w.expireLeases()
			w.run(id) // somebody else, to the end
		}
	}
	require.NoError(t, slow.Run(t.Context(), id))
	require.True(t, taken)
	require.Equal(t, w.file(reference), w.file(id))

	id = w.queue(export.CSV, "")
	renewing := *w.runner
	renewing.Lease = 40 * time.Millisecond
	renewing.Signal = func(point string) {
		if point == "claimed" {
			_, err := w.db.Superuser(t).Exec(t.Context(), `update export_jobs set status = 'Failed', error = 'by hand' where id = $1`, id)
			require.NoError(t, err)
		}
	}
	require.NoError(t, renewing.Run(t.Context(), id))
	require.Equal(t, "by hand", *w.job(id).Error)
}

// TestHandOver: a run whose time is nearly up asks for another one; that costs an attempt only when it got nowhere.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.big(120) // three parts and a bit
	reference := w.queue(export.NDJSON, "")
	w.run(reference)
	w.runner.PartSize = object.MinPart
	id := w.queue(export.NDJSON, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	runs := 0
	for ; w.job(id).Status != export.Complete; runs++ {
		w.runner.Margin = time.Minute
		w.runner.Signal = func(point string) {
			if point == "part recorded" {
				w.runner.Margin = 2 * time.Hour // from now on it is late
			}
		}
		require.NoError(t, w.runner.Run(ctx, id))
	}
	require.Greater(t, runs, export.MaxAttempts-1)
	require.Equal(t, w.file(reference), w.file(id))

	w.runner.Margin = 2 * time.Hour // late from the start
	w.again = nil
	id = w.queue(export.NDJSON, "")
	for range export.MaxAttempts {
		if err := w.runner.Run(ctx, id); err != nil {
			require.ErrorContains(t, err, "the time is nearly up") // when it gives up
		}
	}
	require.Equal(t, []string{id, id}, w.again)
	require.Equal(t, export.Failed, w.job(id).Status)
	require.Contains(t, *w.job(id).Error, "narrow the filter")
}

// TestTrouble: what may pass is tried three times; a stopped process does not count.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	w.log.Append(audit.Event{TenantID: w.acme, OccurredAt: at(0)})
	id := w.queue(export.CSV, "")

	ctx, cancel := context.WithCancel(t.Context())
	w.runner.Signal = func(string) { cancel() }
	for range export.MaxAttempts + 1 {
		require.ErrorContains(t, w.runner.Run(ctx, id), "context canceled")
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
	w.runner.Signal = nil

	broken := *w.runner
	broken.Bucket = object.New(object.Config{Region: "us-east-1", Endpoint: w.endpoint, AccessKey: "root", Secret: "root-secret", PathStyle: true}).In("no-such-bucket")
	for range export.MaxAttempts {
		require.NotEqual(t, export.Failed, w.job(id).Status)
		require.Error(t, broken.Run(t.Context(), id))
	}
	job := w.job(id)
	require.Equal(t, export.Failed, job.Status)
	require.Equal(t, "internal error, in each of 3 attempts", *job.Error)
	require.NotNil(t, job.FinishedAt)
	w.run(id) // stays failed
	require.Equal(t, job, w.job(id))
}

func TestSweep(t *testing.T) {
	w := newWorld(t)
	fresh, lost, held, dead, finished := w.queue(export.CSV, ""), w.queue(export.CSV, ""), w.queue(export.CSV, ""), w.queue(export.CSV, ""), w.queue(export.CSV, "")
	w.run(finished)
	_, err := w.db.Superuser(t).Exec(t.Context(), `update export_jobs set requested_at = now() - interval '1 minute' where id = $1`, lost)
	require.NoError(t, err)
	_, err = w.db.Superuser(t).Exec(t.Context(), `update export_jobs set status = 'Running', lease_until = now() + interval '1 minute' where id = $1`, held)
	require.NoError(t, err)
	_, err = w.db.Superuser(t).Exec(t.Context(), `update export_jobs set status = 'Running', lease_until = now() - interval '1 second' where id = $1`, dead)
	require.NoError(t, err)
	require.NoError(t, w.runner.Sweep(t.Context()))
	require.ElementsMatch(t, []string{lost, dead}, w.again)
	require.NotContains(t, w.again, fresh)

	asked := 0
	w.runner.Again = func(context.Context, string) error { asked++; return errors.New("no") }
	require.Error(t, w.runner.Sweep(t.Context()))
	require.Equal(t, 2, asked, "one that cannot be invoked does not stop the others")
}
