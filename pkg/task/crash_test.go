package task_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/task"
)

// die runs do with a process that is killed the first time that it comes to a point.
func die(t *testing.T, point string, do func(signal func(string))) {
	t.Helper()
	type killed struct{}
	defer func() {
		r := recover()
		require.Equal(t, killed{}, r, "it did not come to %q", point)
	}()
	do(func(at string) {
		if at == point {
			panic(killed{})
		}
	})
}

// Whoever dies wherever, the sweep goes on: the message is there once, and a push was sent at most once.
func TestKilledAtEachPoint(t *testing.T) {
	for _, c := range []struct {
		point  string
		pushes int
	}{{"task event claimed", 1}, {"task event written", 1}, {"push claimed", 0}, {"push sent", 1}, {"task event over", 1}} {
		t.Run(c.point, func(t *testing.T) {
			w := newWorld(t)
			w.user(adaID)
			o := w.deliver(fixture(t, "issue-assigned")).Order
			die(t, c.point, func(signal func(string)) {
				w.processor.Signal = signal
				_ = w.processor.Process(t.Context(), o)
			})
			_, next := w.process()
			require.NoError(t, next.Process(t.Context(), o), "somebody has it")
			require.NoError(t, next.Process(t.Context(), task.Order{}), "the sweep leaves it to whoever has it")
			w.exec(`update task_events set next_at = now() - interval '1 second' where next_at is not null`) // its lease is over
			require.NoError(t, next.Process(t.Context(), task.Order{}))
			require.Equal(t, "done", query[string](w, `select status from task_events`))
			require.Equal(t, []string{"Bo Chen assigned ENG-123 to Ada Byron"}, w.messages())
			require.Len(t, w.pushes(), c.pushes)
			require.Equal(t, 1, query[int](w, `select count(*) from pushes`))
			w.whole()
			w.again(o)
			require.NoError(t, next.Process(t.Context(), o))
			require.Len(t, w.messages(), 1)
			require.Len(t, w.pushes(), c.pushes)
		})
	}
}

// A process that dies when it has taken a delivery in has not answered: the tracker's next attempt is told that it is known, and the sweep does the rest.
func TestKilledWhenItWasTakenIn(t *testing.T) {
	w := newWorld(t)
	raw := encode(t, fixture(t, "issue-assigned"))
	headers := []string{"Linear-Signature", mac(signing, raw), "Linear-Delivery", "1"}
	die(t, "task event taken in", func(signal func(string)) {
		w.receiver.Signal = signal
		_, _ = w.send(w.receiver, "linear", w.hook.Token, raw, headers...)
	})
	next, processor := w.process()
	got, err := w.send(next, "linear", w.hook.Token, raw, headers...)
	require.NoError(t, err)
	require.Empty(t, got.Order.EventID)
	w.exec(`update task_events set next_at = now() - interval '1 second'`)
	require.NoError(t, processor.Process(t.Context(), task.Order{}))
	require.Len(t, w.messages(), 1)
}

// An event whose worker dies again and again is given up, and stands in nobody's way.
func TestAnEventThatKills(t *testing.T) {
	w := newWorld(t)
	o := w.deliver(fixture(t, "issue-assigned")).Order
	for range 5 {
		die(t, "task event claimed", func(signal func(string)) {
			_, p := w.process()
			p.Signal = signal
			_ = p.Process(t.Context(), o)
		})
		w.exec(`update task_events set next_at = now() - interval '1 second'`)
	}
	require.NoError(t, w.processor.Process(t.Context(), task.Order{}))
	require.Equal(t, "failed it was tried too often", query[string](w, `select status || ' ' || error from task_events where body is not null`))
	require.Equal(t, "error it was tried too often", query[string](w, `select outcome || ' ' || error from deliveries where id = $1`, o.EventID))
	require.Empty(t, w.messages())
	w.happen(at(fixture(t, "issue-due-set"), "2026-03-02T10:10:00.000Z"))
	require.Len(t, w.messages(), 1)
}

// What fails for a reason of the platform's is tried again, later each time.
func TestAFailureIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	o := w.deliver(fixture(t, "issue-assigned")).Order
	w.exec(`alter table messages add constraint broken check (role <> 'system')`)
	for i := range 4 {
		require.Error(t, w.processor.Process(t.Context(), o))
		require.Equal(t, i+1, query[int](w, `select round(extract(epoch from next_at - clock_timestamp()) / 60)::integer from task_events where lease_id is null and status = 'queued'`))
		w.exec(`update task_events set next_at = now() - interval '1 second'`)
	}
	w.exec(`alter table messages drop constraint broken`)
	require.NoError(t, w.processor.Process(t.Context(), o))
	require.Len(t, w.messages(), 1)
	w.whole()
}

// Subscribers that cannot be told keep nothing: what they miss is told by the sweep of events.
func TestSubscribersCannotBeTold(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	w.events.fail = errors.New("the API is down")
	w.happen(fixture(t, "issue-assigned"))
	require.Len(t, w.messages(), 1)
	require.Len(t, w.pushes(), 1)
	require.Equal(t, 2, query[int](w, `select count(*) from thread_events where undelivered`))
	require.Empty(t, w.events.all)
	var _ publish.Publisher = w.events
}
