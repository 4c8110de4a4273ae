package turn_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// stop runs the turn in a process that is told to stop at the point.
func (w *world) stop(turnID, point string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	runner := *w.runner
	runner.Signal = func(at string) {
		if at == point {
			cancel()
		}
	}
	require.NoError(w.t, runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: turnID}))
}

// due are the turns that the reaper would dispatch.
func (w *world) due() (ids []string) {
	w.t.Helper()
	_, err := turn.Reap(w.t.Context(), w.db.App, func(_ context.Context, _, turnID string) error {
		ids = append(ids, turnID)
		return nil
	})
	require.NoError(w.t, err)
	return ids
}

// A process that stops, wherever its turn is, leaves it to whoever comes next, at once; what was finished is not done again.
func TestStopHandsTheLeaseBack(t *testing.T) {
	for _, c := range []struct {
		point string
		calls int // of the model, in all
		tools int
	}{{"claimed", 2, 1}, {"tools started", 2, 1}, {"tools finished", 2, 1}} {
		t.Run(c.point, func(t *testing.T) {
			calls, tools := 0, 0
			w := newWorld(t, nil)
			w.runner.Model = script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
				if err := ctx.Err(); err != nil {
					return model.Response{}, err
				}
				if calls++; calls == 1 {
					return callTool("read_thread", `{}`), nil
				}
				return say(s, "Done."), nil
			})
			w.runner.Tools = tool.Of(tool.Tool{Name: "read_thread", Idempotent: true, Run: func(ctx context.Context, _ tool.Call) (any, error) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				tools++
				return "read", nil
			}})
			th := w.open()
			asked := w.ask(th.ID, "Hello")
			w.stop(asked.TurnID, c.point)

			require.Equal(t, turn.Running, w.turn(asked.TurnID).Status)
			require.Equal(t, 0, w.turn(asked.TurnID).Attempts, "a stop is no death")
			require.Equal(t, []string{asked.TurnID}, w.dispatched, "somebody is woken")
			require.Equal(t, []string{asked.TurnID}, w.due(), "and if nobody wakes, the reaper finds it")
			w.run(asked.TurnID)
			record := w.turn(asked.TurnID)
			require.Equal(t, turn.Succeeded, record.Status)
			require.Equal(t, 1, record.Attempts)
			require.Equal(t, []int{c.calls, c.tools}, []int{calls, tools})
			require.Len(t, w.messages(th), 2)
			for _, p := range record.Phases {
				require.NotNil(t, p.FinishedAt)
			}
		})
	}
}

// A turn may be handed back more often than it may die, also when its agent takes no more turns: it has begun.
func TestHandedBackAnyNumberOfTimes(t *testing.T) {
	w := newWorld(t, script(func(ctx context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		if err := ctx.Err(); err != nil {
			return model.Response{}, err
		}
		return say(s, "Done."), nil
	}))
	asked := w.ask(w.open().ID, "Hello")
	for range 5 {
		w.stop(asked.TurnID, "claimed")
	}
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agents set status = 'suspended'`)
	require.NoError(t, err)
	w.run(asked.TurnID)
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
}

// An answer that is complete is written although the process stops: nobody is asked for it again.
func TestStopAfterTheAnswer(t *testing.T) {
	for _, point := range []string{"answered", "reply made", "committed", "published"} {
		w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
			return say(s, "Done."), nil
		}))
		th := w.open()
		asked := w.ask(th.ID, "Hello")
		w.stop(asked.TurnID, point)
		require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status, point)
		require.Equal(t, "Done.", w.messages(th)[1].Body)
		require.Len(t, w.events.newMessages(), 1)
	}
}

// With a turn waiting in the thread, the handed-back one still comes first.
func TestHandedBackBeforeTheWaitingOne(t *testing.T) {
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if err := ctx.Err(); err != nil {
			return model.Response{}, err
		}
		return say(s, "to "+last(r)), nil
	}))
	th := w.open()
	first := w.ask(th.ID, "first")
	runner := *w.runner
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var second turn.Asked
	runner.Signal = func(at string) {
		if at == "claimed" {
			second = w.ask(th.ID, "second")
			cancel()
		}
	}
	require.NoError(t, runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: first.TurnID}))
	w.run(second.TurnID) // not due
	require.Equal(t, turn.Queued, w.turn(second.TurnID).Status)
	w.run(first.TurnID)
	w.run(second.TurnID)
	var bodies []string
	for _, m := range w.messages(th) {
		bodies = append(bodies, m.Body)
	}
	require.ElementsMatch(t, []string{"first", "second", "to first", "to second"}, bodies)
}

// Tools that were done when the process was told to stop keep their outcome; one that was cut short has none, and may have had an effect.
func TestStopKeepsFinishedTools(t *testing.T) {
	ran := map[string]int{}
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	w.runner.Model = script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if len(r.Messages) > 1 {
			return say(s, "Done."), nil
		}
		a, b := callTool("quick", `{}`), callTool("slow", `{}`)
		a.Blocks = append(a.Blocks, b.Blocks...)
		return a, nil
	})
	w.runner.Tools = tool.Of(
		tool.Tool{Name: "quick", Run: func(context.Context, tool.Call) (any, error) {
			ran["quick"]++
			close(done)
			return "quick", nil
		}},
		tool.Tool{Name: "slow", Run: func(ctx context.Context, _ tool.Call) (any, error) {
			<-done
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	w.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update agent_templates set tools = '{quick,slow}'`)
		return err
	})
	asked := w.ask(w.open().ID, "Hello")
	require.NoError(t, w.runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}))
	w.run(asked.TurnID)
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Equal(t, 1, ran["quick"])
	require.Len(t, record.ToolOutcomes, 2)
	require.Equal(t, `"quick"`, *record.ToolOutcomes[0].Output)
	require.Equal(t, "interrupted, outcome unknown", *record.ToolOutcomes[1].Error)
}

// An attempt that lost its turn hands nothing back.
func TestALostLeaseIsNotHandedBack(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.runner.Model = script(func(mctx context.Context, _ model.Request, _ model.Stream) (model.Response, error) {
		_, err := w.db.Superuser(t).Exec(t.Context(), `update thread_turns set lease_id = id, attempts = 2`) // another attempt's
		require.NoError(t, err)
		cancel()
		<-mctx.Done()
		return model.Response{}, mctx.Err()
	})
	asked := w.ask(w.open().ID, "Hello")
	require.NoError(t, w.runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID}))
	require.Equal(t, 2, w.turn(asked.TurnID).Attempts)
	require.Empty(t, w.dispatched)
	require.Empty(t, w.due())
}
