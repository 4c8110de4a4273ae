package retention_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/retention"
)

// Exactly so many days old is kept, by each tenant's own policy; a day is 24 hours.
func TestExactlySoManyDays(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	_, err := other.set(retention.Change{StepsDays: days(7)})
	require.NoError(t, err)

	kept, old := w.turn(90*day), w.turn(90*day+time.Microsecond)
	theirs, theirOld := other.turn(7*day), other.turn(7*day+time.Microsecond)
	fresh := w.turn(7*day + time.Microsecond)
	require.Equal(t, retention.Pruned{Turns: 2, Steps: 6}, w.prune())
	require.Equal(t, []bool{false, true, false, true, false}, w.pruned(kept, old, theirs, theirOld, fresh))
	require.Equal(t, now, one[time.Time](w, `select steps_pruned_at from thread_turns where id = $1`, old).UTC())
	require.JSONEq(t, `[{"toolCallId":"c","name":"read","status":"ok","output":null,"error":"\u0000","durationMs":3}]`,
		one[string](w, `select tool_outcomes::text from thread_turns where id = $1`, old), "what came of a tool stays")
	require.Zero(t, w.prune())
}

// What is not over keeps all that it has, however old, and what came with the calls of its thread's runs.
func TestWhatIsNotOverIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	for _, status := range []string{"queued", "running", "waiting"} {
		th := w.thread()
		before := w.run(w.turnIn(th, "failed", 4000*day))
		going := w.run(w.turnIn(th, status, 3999*day))
		alone := w.run(w.turn(4000 * day))
		require.Equal(t, retention.Pruned{Turns: 2, Steps: 6, Payloads: 1}, w.prune(), status)
		require.Equal(t, []bool{true, false, true}, w.pruned(before, going, alone))
		payloads := func() (kept []bool) {
			for _, id := range []string{before, going, alone} {
				kept = append(kept, one[bool](w, `select context_snapshot is not null and payload_pruned_at is null from thread_turns where id = $1`, id))
			}
			return kept
		}
		require.Equal(t, []bool{true, true, false}, payloads())
		require.Zero(t, w.prune())

		w.exec(`update thread_turns set status = 'failed', finished_at = $2 where id = $1`, going, now)
		require.Equal(t, retention.Pruned{Payloads: 1}, w.prune(), "the turn has just ended, and the one before it long ago")
		require.Equal(t, []bool{false, true, false}, payloads())
		w.exec(`delete from turn_steps`)
		w.exec(`update thread_turns set finished_at = null, status = 'succeeded', steps_pruned_at = $1, payload_pruned_at = $1`, now)
	}
}

func TestPayloadsHaveTheirOwnTime(t *testing.T) {
	w := newWorld(t)
	_, err := w.set(retention.Change{StepsDays: days(100), PayloadDays: days(2)})
	require.NoError(t, err)
	kept, old, refused := w.run(w.turn(2*day)), w.run(w.turn(2*day+time.Microsecond)), w.run(w.turn(3*day))
	w.exec(`update thread_turns set thread_uuid = null, number = null where id = $1`, refused) // its target could not be started
	w.exec(`update thread_turns set model_payload = '{"secret":"[x]"}' where id = $1`, old)
	require.Equal(t, retention.Pruned{Payloads: 2}, w.prune())
	require.Equal(t, []bool{false, false, false}, w.pruned(kept, old, refused))
	require.Equal(t, 2, one[int](w, `select count(*) from thread_turns where context_snapshot is null and model_payload::text = '"This call''s body is not kept any more."'
		and payload_pruned_at = $1 and id <> $2`, now, kept))
	require.Zero(t, w.prune())
}

// Many turns go in several transactions, of at most 1,000 rows each; nobody's are forgotten for another's.
func TestManyTurnsGoInBatches(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	w.many(700, 5)
	other.many(300, 76) // as many as a turn has
	var batches int
	p := w.pruner()
	p.Signal = func(point string) {
		if point == "turns" {
			batches++
		}
	}
	done, err := p.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, retention.Pruned{Turns: 1000, Steps: 700*5 + 300*76}, done)
	require.GreaterOrEqual(t, batches, (700*6+300*77)/1000)
	require.Zero(t, one[int](w, `select count(*) from turn_steps`))
}

// many writes old turns with so many steps each.
func (w *world) many(turns, steps int) {
	w.t.Helper()
	th := w.thread()
	w.exec(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, started_at, finished_at)
		select $1, gen_random_uuid(), $2, $3, n, 'succeeded', $4, $4::timestamptz + n * interval '1 second' from generate_series(1, $5) n`,
		w.TenantID, th, w.AgentID, now.Add(-200*day), turns)
	w.exec(`insert into turn_steps (tenant_id, turn_id, number, kind, name, status, response) select tenant_id, id, n, 'model', 'x', 'finished', '{}'
		from thread_turns cross join generate_series(1, $2) n where thread_uuid = $1`, th, steps)
}

// Two that prune at once share the work: each turn is pruned once, and neither waits for the other.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	w.many(3000, 2)
	var both sync.WaitGroup
	var mu sync.Mutex
	var sum retention.Pruned
	for range 2 {
		both.Go(func() {
			done, err := w.pruner().Run(t.Context())
			mu.Lock()
			defer mu.Unlock()
			sum.Turns += done.Turns
			sum.Steps += done.Steps
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	require.Equal(t, retention.Pruned{Turns: 3000, Steps: 6000}, sum)
	require.Equal(t, 3000, one[int](w, `select count(*) from thread_turns where steps_pruned_at is not null`))

	// A turn that somebody holds is left for later, with the others gone.
	held := w.turn(200 * day)
	free := w.turn(199 * day)
	tx, err := w.super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from thread_turns where id = $1 for update`, held)
	require.NoError(t, err)
	require.Equal(t, retention.Pruned{Turns: 1, Steps: 3}, w.prune())
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, []bool{false, true}, w.pruned(held, free))
	require.Equal(t, retention.Pruned{Turns: 1, Steps: 3}, w.prune())
}

// Whoever dies anywhere leaves whole turns, pruned or not, and the next run goes on.
func TestKilledInTheMiddle(t *testing.T) {
	base := newWorld(t)
	var turns []string
	for range 220 { // more than go in one transaction
		turns = append(turns, base.run(base.turn(91*day)))
	}
	for _, point := range []string{"turns chosen", "turns written", "turns", "payloads"} {
		t.Run(point, func(t *testing.T) {
			db := base.db.Clone(t)
			w := &world{World: base.World, t: t, db: db, super: db.Superuser(t)}
			died := make(chan struct{})
			go func() {
				defer close(died)
				p := w.pruner()
				p.Signal = func(at string) {
					if at == point {
						runtime.Goexit()
					}
				}
				_, _ = p.Run(t.Context())
				t.Errorf("it came past %s", point)
			}()
			<-died
			gone := 0
			for _, is := range w.pruned(turns...) {
				if is {
					gone++
				}
			}
			switch point {
			case "turns chosen", "turns written":
				require.Zero(t, gone)
			case "turns":
				require.Positive(t, gone)
				require.Less(t, gone, 220)
			default:
				require.Equal(t, 220, gone)
			}
			w.prune()
			require.NotContains(t, w.pruned(turns...), false)
			require.Zero(t, one[int](w, `select count(*) from thread_turns where context_snapshot is not null`))
			require.Zero(t, w.prune())
		})
	}
}

// A tenant whose rows cannot be pruned keeps nobody else's from it, and is told of.
func TestATenantThatFails(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	stuck, theirs := w.turn(91*day), other.turn(91*day)
	w.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`)
	w.exec(`create trigger stuck before delete on turn_steps for each row when (old.tenant_id = '` + w.TenantID + `') execute function refuse()`)
	done, err := w.pruner().Run(t.Context())
	require.ErrorContains(t, err, "no")
	require.Equal(t, retention.Pruned{Turns: 1, Steps: 3}, done)
	require.Equal(t, []bool{false, true}, w.pruned(stuck, theirs))
}

// A run that has no time left begins nothing, and that is no failure: the next one goes on.
func TestWithoutTime(t *testing.T) {
	w := newWorld(t)
	w.turn(91 * day)
	ctx, cancel := context.WithTimeout(t.Context(), 14*time.Second)
	defer cancel()
	done, err := w.pruner().Run(ctx)
	require.NoError(t, err)
	require.Zero(t, done)
	require.Equal(t, retention.Pruned{Turns: 1, Steps: 3}, w.prune())
}
