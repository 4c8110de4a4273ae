package task_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/task"
)

// Only an assignment, a status and a due date are told, to the devices of whose task it is.
func TestPushes(t *testing.T) {
	w := newWorld(t)
	ada, _ := w.user(adaID)
	w.phone(ada.UserID)
	w.user("somebody-else")
	for i, c := range []struct{ name, line string }{
		{"issue-assigned", "Bo Chen assigned ENG-123 to Ada Byron"},
		{"issue-state-changed", "Bo Chen moved ENG-123 to Done"},
		{"issue-due-set", "Bo Chen set the due date of ENG-123 to 2026-03-06"},
		{"issue-due-removed", "Bo Chen removed the due date of ENG-123"},
		{"comment-create", ""}, {"issue-label-changed", ""}, {"issue-archived", ""},
		{"issue-unassigned", ""}, // it is nobody's
	} {
		before := len(w.pushes())
		w.happen(fixture(t, c.name))
		require.Len(t, w.messages(), i+1)
		if c.line == "" {
			require.Len(t, w.pushes(), before, c.name)
			continue
		}
		require.Equal(t, []string{c.line, c.line}, w.pushes()[before:], c.name)
	}
	mine := fixture(t, "issue-state-changed", fields{"priority": 9})
	mine["actor"] = fields{"id": adaID, "name": "Ada Byron"}
	before := len(w.pushes())
	w.happen(mine)
	require.Len(t, w.pushes(), before, "who has done it knows")
	require.Equal(t, before, query[int](w, `select count(*) from pushes`))
}

// A push has what an app needs to show and to open it.
func TestAPush(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	sent := &carrier{Carrier: w.outbox}
	w.processor.Push = push.New(sent)
	w.happen(fixture(t, "issue-assigned"))
	id := query[string](w, `select metadata ->> 'eventId' from messages`)
	require.Equal(t, []push.Notification{{Title: "ENG-123: Rotate the signing key", Body: "Bo Chen assigned ENG-123 to Ada Byron", DedupeID: id,
		Data: map[string]string{"kind": "assignment", "threadId": "TASK-1", "eventId": id}}}, sent.all)
}

// carrier counts, and carries nothing where it is told so.
type carrier struct {
	push.Carrier
	all  []push.Notification
	fail error
}

func (c *carrier) Send(ctx context.Context, endpoint string, n push.Notification) error {
	c.all = append(c.all, n)
	if c.fail != nil {
		return c.fail
	}
	return c.Carrier.Send(ctx, endpoint, n)
}

// A device that nothing reaches any more is forgotten. A push that is not carried is lost: it may have been, and is not sent twice.
func TestAPushThatIsNotCarried(t *testing.T) {
	w := newWorld(t)
	ada, _ := w.user(adaID)
	gone := w.phone(ada.UserID)
	require.NoError(t, w.outbox.Unregister(t.Context(), query[string](w, `select endpoint from devices where id = $1`, gone)))
	w.happen(fixture(t, "issue-assigned"))
	require.Len(t, w.pushes(), 1)
	require.Zero(t, query[int](w, `select count(*) from devices where id = $1`, gone))
	require.Equal(t, 1, query[int](w, `select count(*) from devices`))

	broken := &carrier{Carrier: w.outbox, fail: errors.New("the service is down")}
	w.processor.Push = push.New(broken)
	got := w.deliver(fixture(t, "issue-due-set"))
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	w.again(got.Order)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Len(t, broken.all, 1)
	require.Len(t, w.messages(), 2)
}

// again has an event processed once more, as if nobody had said that it is over.
func (w *world) again(o task.Order) {
	w.t.Helper()
	w.exec(`update task_events set status = 'queued', lease_id = null, next_at = now() - interval '1 second', finished_at = null,
		body = (select body from deliveries d where d.id = task_events.id) where id = $1`, o.EventID)
}
