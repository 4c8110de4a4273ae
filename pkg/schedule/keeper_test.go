package schedule_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// Put implements clock.Clock.
func (r *refusing) Put(ctx context.Context, s clock.Schedule) error {
	if err := r.put[s.Name]; err != nil {
		return err
	}
	return r.Clock.Put(ctx, s)
}

// Whatever is done to a schedule at the same time, the clock has what the database has when all is done.
func TestUpdatesAndADeletionAtOnce(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	for round := range 15 {
		s := k.make(object{"name": fmt.Sprint("Round ", round)})
		var wg sync.WaitGroup
		barrier := make(chan struct{})
		together := func(change func(tx pgx.Tx) error) {
			wg.Go(func() {
				<-barrier
				err := k.tx(change)
				if !fault.IsMissing(err) { // the deletion came first
					require.NoError(t, err)
				}
				require.NoError(t, k.keeper().Settle(t.Context(), k.TenantID, s.ID))
			})
		}
		for n := range 3 {
			together(func(tx pgx.Tx) error {
				_, err := schedule.Update(t.Context(), tx, s.ID, fields(t, object{"expression": fmt.Sprintf("rate(%d hours)", n+2)}))
				return err
			})
		}
		deletes := round%2 == 0
		if deletes {
			together(func(tx pgx.Tx) error { _, err := schedule.Delete(t.Context(), tx, s.ID); return err })
		}
		wg.Go(func() {
			<-barrier
			_, err := k.keeper().Reconcile(t.Context())
			require.NoError(t, err)
		})
		close(barrier)
		wg.Wait()
		got, err := schedule.Get(t.Context(), k.db.App.In(k.TenantID), s.ID)
		if deletes {
			require.True(t, fault.IsMissing(err))
			k.notOnClock(s.ID)
			continue
		}
		require.NoError(t, err)
		require.True(t, got.Settled)
		require.Equal(t, got.Expression, k.onClock(s.ID).Expression)
	}
	require.Equal(t, 7, k.rows())
}

// A rate without a start is counted from its making, by database and clock alike.
func TestARateIsCountedFromItsMaking(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	s := k.make(object{"expression": "rate(20 minutes)"})
	require.WithinDuration(t, time.Now().Add(5*time.Second), s.NextRuns[0].Time, 30*time.Second)
	require.Equal(t, 80*time.Minute, s.NextRuns[4].Sub(s.NextRuns[0].Time))
	c := k.onClock(s.ID)
	require.Equal(t, s.NextRuns[0].Time, c.Start)
	var due time.Time
	require.NoError(t, k.super.QueryRow(t.Context(), `select occurrence from local_clock.schedules where name = $1`, s.ID).Scan(&due))
	require.Equal(t, s.NextRuns[0].Time, due.UTC())
	require.JSONEq(t, fmt.Sprintf(`{"tenantId":"%s","scheduleId":"%s","occurrence":"<aws.scheduler.scheduled-time>"}`, k.TenantID, s.ID), string(c.Input))

	// What does not change when it runs changes nothing of its occurrences.
	k.change(`update schedules set since = since - interval '7 minutes'`)
	changed := k.update(s.ID, object{"title": "Another", "expression": "rate(20 minutes)"})
	require.Equal(t, 13*time.Minute, changed.NextRuns[0].Sub(s.NextRuns[0].Time))
	changed = k.update(s.ID, object{"expression": "rate(1 hour)"})
	require.WithinDuration(t, time.Now().Add(5*time.Second), changed.NextRuns[0].Time, 30*time.Second)
}

// Two that make the last one that a tenant may have: one is refused.
func TestATenantHasSoManySchedules(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.change(`insert into schedules (tenant_id, id, name, agent_id, prompt, expression, time_zone, enabled, missed, since, created_by, created_at, updated_at)
		select $1, gen_random_uuid(), 'Many', $2, 'Go.', 'rate(1 hour)', 'UTC', false, 'skip', now(), $1, now(), now() from generate_series(1, $3)`, k.TenantID, k.AgentID, schedule.MaxSchedules-1)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	barrier := make(chan struct{})
	for i := range errs {
		wg.Go(func() {
			<-barrier
			errs[i] = k.tx(func(tx pgx.Tx) error {
				_, err := schedule.Create(t.Context(), tx, k.TenantID, k.UserID, fields(t, object{"name": "One more", "agentId": k.AgentID, "prompt": "Go.", "expression": "rate(1 day)"}))
				return err
			})
		})
	}
	close(barrier)
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		require.EqualError(t, err, "a tenant has at most 100 schedules")
	}
	require.Equal(t, 1, made)
	require.Equal(t, schedule.MaxSchedules, k.rows())
}
