package callback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestTheEndOfATurnIsTold(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ status, reply, reason, want string }{
		{"succeeded", "All is well.", "", `succeed {"threadId":"AUTO-1","turnId":"%s","status":"succeeded","reply":"All is well."}`},
		{"succeeded", "", "", `succeed {"threadId":"AUTO-2","turnId":"%s","status":"succeeded","reply":""}`},
		{"failed", "", "No access.", "fail TurnFailed: No access."},
		{"interrupted", "As I was", "", "fail TurnFailed: a later message in the thread interrupted the run"},
		{"cancelled", "", "", "fail TurnFailed: a person cancelled the run"},
	} {
		id := w.turn()
		a := w.add(callback.Callback{TurnID: id, Heartbeat: true})
		require.False(t, a.Due)
		require.NoError(t, w.deliver(a.ID))
		require.Equal(t, []string{"heartbeat"}, w.said(), "it goes on")
		w.ends(id, c.status, c.reply, c.reason)
		for range 2 { // a call that comes twice
			require.NoError(t, w.deliver(a.ID))
		}
		want := c.want
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, id)
		}
		require.Equal(t, []string{want}, w.said())
		require.Zero(t, w.count())
	}
}

// Whoever ends a turn in one transaction makes its callback due in that one: also where nobody knows of callbacks.
func TestWhoeverEndsATurn(t *testing.T) {
	w := newWorld(t)
	id := w.turn()
	w.add(callback.Callback{TurnID: id})
	require.NoError(t, w.tx(func(tx pgx.Tx) error {
		given, err := turn.GiveUp(t.Context(), tx, id, "enough")
		require.True(t, given)
		return err
	}))
	require.NoError(t, w.deliver(""))
	require.Equal(t, []string{"fail TurnFailed: enough"}, w.said())

	id = w.turn()
	a := w.add(callback.Callback{TurnID: id})
	w.exec(`update thread_turns set status = 'waiting', waits_for = 'answer' where id = $1`, id)
	var d turn.Decided
	require.NoError(t, w.tx(func(tx pgx.Tx) (err error) {
		d, err = turn.Cancel(t.Context(), tx, w.TenantID, id)
		return err
	}))
	require.Equal(t, a.ID, d.Callback)
	require.NoError(t, w.deliver(a.ID))
	require.Equal(t, []string{"fail TurnFailed: a person cancelled the run"}, w.said())
}

func TestATurnThatWasOver(t *testing.T) {
	w := newWorld(t)
	id := w.turn()
	w.ends(id, "succeeded", "Done.", "")
	a := w.add(callback.Callback{TurnID: id, Heartbeat: true})
	require.True(t, a.Due)
	require.NoError(t, w.deliver(""))
	require.Len(t, w.said(), 1)
	require.Zero(t, w.count())
}

// The engine tries a task again with another token, while the turn goes on: the newest is answered, and nobody waits with the others any more.
func TestSeveralTokensOfATurn(t *testing.T) {
	w := newWorld(t)
	id := w.turn()
	old := w.tasks.task()
	w.add(callback.Callback{TurnID: id, Token: old, Heartbeat: true})
	w.tasks.waiting[old] = false // it timed out
	w.add(callback.Callback{TurnID: id, Heartbeat: true})
	w.passes(minute)
	require.NoError(t, w.deliver(""))
	require.Equal(t, []string{"heartbeat"}, w.said())
	require.Equal(t, 1, w.count(), "the old one is forgotten with its heartbeat")
	w.ends(id, "succeeded", "Done.", "")
	require.NoError(t, w.deliver(""))
	require.Len(t, w.said(), 1)
	require.Zero(t, w.count())
}

func TestAddTogether(t *testing.T) {
	w := newWorld(t)
	id, token := w.turn(), w.tasks.task()
	added := make([]callback.Added, 8)
	var all sync.WaitGroup
	barrier := make(chan struct{})
	for i := range added {
		all.Go(func() {
			<-barrier
			_ = w.tx(func(tx pgx.Tx) (err error) {
				added[i], err = callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: token, TurnID: id})
				return err
			})
		})
	}
	close(barrier)
	all.Wait()
	for _, a := range added {
		require.NotEmpty(t, a.ID)
		require.Equal(t, added[0], a)
	}
	require.Equal(t, 1, w.count())
}

// The turn ends at the moment at which its callback is added: whoever comes first, it is told.
func TestTheEndMeetsTheBeginning(t *testing.T) {
	w := newWorld(t)
	const turns = 30
	var ids []string
	for range turns {
		ids = append(ids, w.turn())
	}
	var all sync.WaitGroup
	barrier := make(chan struct{})
	for _, id := range ids {
		token := w.tasks.task()
		all.Go(func() {
			<-barrier
			_ = w.tx(func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `update thread_turns set status = 'failed', error = 'over', finished_at = clock_timestamp() where id = $1`, id)
				return err
			})
		})
		all.Go(func() {
			<-barrier
			_ = w.tx(func(tx pgx.Tx) error {
				_, err := callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: token, TurnID: id, Heartbeat: true})
				return err
			})
		})
	}
	close(barrier)
	all.Wait()
	require.Equal(t, turns, w.count())
	require.NoError(t, w.deliver(""))
	told := w.said()
	require.Len(t, told, turns)
	for _, said := range told {
		require.Equal(t, "fail TurnFailed: over", said)
	}
	require.Zero(t, w.count())
}

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	answer := func(do func(tx pgx.Tx, id string) error) callback.Added {
		a := w.add(callback.Callback{})
		require.NoError(t, w.tx(func(tx pgx.Tx) error { return do(tx, a.ID) }))
		require.NoError(t, w.tx(func(tx pgx.Tx) error { return callback.Fail(t.Context(), tx, a.ID, "Late", "the first counts") }))
		require.NoError(t, w.deliver(a.ID))
		require.Zero(t, w.count())
		return a
	}
	a := answer(func(tx pgx.Tx, id string) error {
		return callback.Answer(t.Context(), tx, id, json.RawMessage(`{"a": ["\u0000", 1.50]}`))
	})
	require.Equal(t, []string{`succeed {"a":["\u0000",1.50]}`}, w.said())
	require.NoError(t, w.tx(func(tx pgx.Tx) error { return callback.Answer(t.Context(), tx, a.ID, json.RawMessage(`1`)) }), "it has been told")
	answer(func(tx pgx.Tx, id string) error { return callback.Fail(t.Context(), tx, id, "Denied", "not today") })
	require.Equal(t, []string{"fail Denied: not today"}, w.said())
	answer(func(tx pgx.Tx, id string) error {
		return callback.Fail(t.Context(), tx, id, "No\x00Way", "of \x00 and \xff")
	})
	require.Equal(t, []string{"fail No Way: of   and \uFFFD"}, w.said())
	large := json.RawMessage(`"` + strings.Repeat("x", workflow.MaxData) + `"`)
	answer(func(tx pgx.Tx, id string) error { return callback.Answer(t.Context(), tx, id, large) })
	require.Equal(t, []string{"fail States.DataLimitExceeded: the result is larger than 262144 bytes"}, w.said())
	require.Error(t, w.tx(func(tx pgx.Tx) error { return callback.Answer(t.Context(), tx, a.ID, json.RawMessage(`{`)) }))
}

func TestALongReplyIsCut(t *testing.T) {
	w := newWorld(t)
	id := w.turn()
	a := w.add(callback.Callback{TurnID: id})
	w.ends(id, "succeeded", strings.Repeat("<é>", 100_000), "")
	require.NoError(t, w.deliver(a.ID))
	told := w.said()
	require.Len(t, told, 1)
	var r callback.Turn
	text := strings.TrimPrefix(told[0], "succeed ")
	require.LessOrEqual(t, len(text), workflow.MaxData/4)
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.True(t, r.Cut)
	require.Greater(t, len(r.Reply), 10_000)
	require.True(t, strings.HasPrefix(r.Reply, "<é><é>"))
}

// Whoever dies between the commit and the engine, or behind the engine, leaves it to the sweep: the engine hears it at least once, and takes it once.
func TestTheCourierDies(t *testing.T) {
	for _, point := range []string{"callback claimed", "callback told"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			id := w.turn()
			a := w.add(callback.Callback{TurnID: id})
			w.ends(id, "failed", "", "over")
			ctx, die := context.WithCancel(t.Context())
			w.courier.Signal = func(at string) {
				if at == point {
					die()
				}
			}
			require.ErrorIs(t, w.courier.Deliver(ctx, callback.Task{TenantID: w.TenantID, CallbackID: a.ID}), context.Canceled)
			w.courier.Signal = nil
			require.Equal(t, 1, w.count())
			require.NoError(t, w.deliver(""))
			require.Equal(t, 1, w.count(), "the sweep gives a call that may still be under way a minute")
			w.passes(minute)
			require.NoError(t, w.deliver(""))
			require.Equal(t, []string{"fail TurnFailed: over"}, w.said())
			require.Zero(t, w.count())
		})
	}
}

func TestTheEngineIsAway(t *testing.T) {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	w := newWorld(t)
	id, token := w.turn(), w.tasks.task()
	a := w.add(callback.Callback{TurnID: id, Token: token})
	w.ends(id, "failed", "", "over")
	for _, down := range []error{workflow.ErrThrottled, errors.New("no route to host")} {
		w.tasks.down = down
		err := w.deliver(a.ID)
		require.ErrorIs(t, err, down)
		require.NotContains(t, err.Error(), token)
		require.Equal(t, 1, w.count())
	}
	w.passes(minute)
	require.Error(t, w.deliver(""))
	w.tasks.down = nil
	w.passes(minute)
	require.NoError(t, w.deliver(""))
	require.Len(t, w.said(), 1)
	require.NotContains(t, log.String(), token)
}

// An engine may give out a token that it does not know yet.
func TestATokenThatIsKnownLater(t *testing.T) {
	w := newWorld(t)
	id := w.turn()
	a := w.add(callback.Callback{TurnID: id, Token: "young"})
	w.ends(id, "failed", "", "over")
	w.courier.Signal = func(at string) {
		if at == "callback claimed" {
			time.AfterFunc(tick, func() {
				w.tasks.mu.Lock()
				defer w.tasks.mu.Unlock()
				w.tasks.waiting["young"] = true
			})
		}
	}
	require.NoError(t, w.deliver(a.ID))
	require.Equal(t, []string{"fail TurnFailed: over"}, w.said())

	w.courier.Signal = nil
	w.add(callback.Callback{Token: "of another engine"})
	w.passes(25 * time.Hour)
	require.NoError(t, w.deliver(""))
	require.Zero(t, w.count())
}

// Heartbeats come as long as nothing is due: each minute where they are wanted, else every five, for whether the task is still there.
func TestHeartbeats(t *testing.T) {
	w := newWorld(t)
	id, forgotten := w.turn(), w.tasks.task()
	w.add(callback.Callback{TurnID: id, Heartbeat: true})
	w.add(callback.Callback{Token: forgotten})
	require.NoError(t, w.deliver(""))
	require.Empty(t, w.said(), "it has just begun")
	var said []int
	for range 10 {
		w.passes(minute)
		require.NoError(t, w.deliver(""))
		require.NoError(t, w.deliver(""))
		said = append(said, len(w.said()))
	}
	require.Equal(t, []int{1, 1, 1, 1, 2, 1, 1, 1, 1, 2}, said)
	w.exec(`update thread_turns set status = 'waiting', waits_for = 'answer' where id = $1`, id)
	w.passes(minute)
	require.NoError(t, w.deliver(""))
	require.Equal(t, []string{"heartbeat"}, w.said(), "it waits for a person")
	w.tasks.waiting[forgotten] = false // its run was stopped
	w.ends(id, "failed", "", "over")
	w.passes(25 * time.Hour)
	require.NoError(t, w.deliver(""))
	require.Equal(t, []string{"fail TurnFailed: over"}, w.said())
	require.Zero(t, w.count())
}

func TestTheSweepTellsThemAll(t *testing.T) {
	w := newWorld(t)
	const many = 1200
	var b pgx.Batch
	for range many {
		token := w.tasks.task()
		b.Queue(`insert into callbacks (tenant_id, id, token, token_hash, output, due_at, next_at) values ($1, $2, $3, sha256($3::text::bytea), '1', clock_timestamp(), clock_timestamp())`,
			w.TenantID, ident.New(), token)
	}
	require.NoError(t, w.db.App.Once(t.Context(), w.TenantID, &b))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { _ = w.deliver("") })
	}
	both.Wait()
	require.Len(t, w.said(), many)
	require.Zero(t, w.count())
}

func TestWhatIsNotTheTenants(t *testing.T) {
	w := newWorld(t)
	other := w.db.World(t, "globex")
	id := w.turn()
	a := w.add(callback.Callback{TurnID: id})
	in := func(tenantID string, c callback.Callback) error {
		return w.db.App.InTenant(t.Context(), tenantID, func(tx pgx.Tx) error {
			_, err := callback.Add(t.Context(), tx, c)
			return err
		})
	}
	require.True(t, fault.IsMissing(in(other.TenantID, callback.Callback{TenantID: other.TenantID, Token: "t", TurnID: id})))
	require.True(t, fault.IsMissing(in(w.TenantID, callback.Callback{TenantID: w.TenantID, Token: "t", TurnID: "no id"})))
	require.Equal(t, "token is not one", fault.From(in(w.TenantID, callback.Callback{TenantID: w.TenantID, TurnID: id})).Message)
	require.NoError(t, w.db.App.InTenant(t.Context(), other.TenantID, func(tx pgx.Tx) error {
		return callback.Fail(t.Context(), tx, a.ID, "Mine", "")
	}))
	require.NoError(t, w.courier.Deliver(t.Context(), callback.Task{TenantID: other.TenantID, CallbackID: a.ID}))
	require.Empty(t, w.said())
	require.Equal(t, 1, w.count())
}
