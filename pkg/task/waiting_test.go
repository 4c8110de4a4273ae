package task_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/task"
)

// figures is a sink that keeps what it is told of one figure.
type figures struct {
	name string
	told []float64
}

func (f *figures) Take(e metric.Event) []slog.Attr {
	for _, s := range e.Sets {
		for _, figure := range s.Figures {
			if figure.Name == f.name {
				f.told = append(f.told, figure.Value)
			}
		}
	}
	return nil
}

// Each sweep tells how late it is with the oldest event of all tenants. What is tried again later is not late. Alone, for the metrics are the process'.
func TestHowLateEventsAre(t *testing.T) {
	w := newWorld(t)
	n := w.neighbour()
	lateness := &figures{name: "tasks.events.lateness"}
	metric.SetDefault(lateness)
	t.Cleanup(func() { metric.SetDefault(nil) })
	swept := func(ctx context.Context) (float64, error) {
		lateness.told = nil
		err := w.processor.Process(ctx, task.Order{})
		require.Len(t, lateness.told, 1)
		return lateness.told[0], err
	}
	late, err := swept(t.Context())
	require.NoError(t, err)
	require.Zero(t, late, "there is none")

	first := w.deliver(fixture(t, "issue-assigned")).Order
	raw := encode(t, fixture(t, "issue-due-set"))
	theirs, err := n.send(n.receiver, "linear", n.hook.Token, raw, "Linear-Signature", mac("the neighbour's s3cret", raw), "Linear-Delivery", "1")
	require.NoError(t, err)
	late, err = swept(t.Context())
	require.NoError(t, err)
	require.Zero(t, late, "whoever took them in has them processed")

	w.exec(`update task_events set next_at = now() - case id when $1 then interval '20 minutes' else interval '40 minutes' end`, first.EventID)
	w.exec(`alter table messages add constraint broken check (role <> 'system')`)
	late, err = swept(t.Context())
	require.Error(t, err)
	require.InDelta(t, 2400, late, 300, "it is told before the work")
	late, err = swept(t.Context())
	require.NoError(t, err)
	require.Zero(t, late, "both are tried again later")

	w.exec(`alter table messages drop constraint broken`)
	w.exec(`update task_events set next_at = now() - interval '20 minutes' where id = $1`, first.EventID)
	lateness.told = nil
	require.NoError(t, w.processor.Process(t.Context(), theirs.Order))
	require.Empty(t, lateness.told, "whoever processes one does not know of the others")
	late, err = swept(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 1200, late, 300)
	late, err = swept(t.Context())
	require.NoError(t, err)
	require.Zero(t, late, "what is over does not wait")
	require.Equal(t, []string{"done", "done"}, slices.Sorted(slices.Values(column[string](w, `select status::text from task_events`))))
}

// That the figure cannot be told keeps no event back.
func TestASweepThatCannotTell(t *testing.T) {
	w := newWorld(t)
	w.deliver(fixture(t, "issue-assigned"))
	w.exec(`update task_events set next_at = now() - interval '1 second'`)
	w.exec(`drop function lookup_late_task_events()`)
	require.ErrorContains(t, w.processor.Process(t.Context(), task.Order{}), "lookup_late_task_events")
	require.Len(t, w.messages(), 1)
}
