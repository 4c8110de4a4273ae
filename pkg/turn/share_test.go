package turn_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func (w *world) turnsAtOnce(n int) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update tenants set turns_at_once = $2 where id = $1`, w.TenantID, n)
	require.NoError(w.t, err)
}

// A tenant's turns above its number wait, in their order; each that ends lets one start. Another tenant's are not kept from anything.
func TestTurnsAboveTheTenantsNumberArePutOff(t *testing.T) {
	asked, answer := make(chan struct{}, 9), make(chan struct{})
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked <- struct{}{}
		<-answer
		return say(s, "ok"), nil
	}))
	w.turnsAtOnce(2)
	var ids []string
	for i := range 5 {
		ids = append(ids, w.ask(w.open().ID, fmt.Sprint(i)).TurnID)
	}
	var running errgroup.Group
	for _, id := range ids[:2] {
		running.Go(func() error { return w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: id}) })
		<-asked
	}
	for _, id := range []string{ids[3], ids[2], ids[4], ids[2]} {
		w.run(id)
		require.Equal(t, turn.Queued, w.turn(id).Status)
	}
	require.Empty(t, w.taken())

	globex := &world{World: w.db.World(t, "globex"), t: t, db: w.db, runner: w.runner}
	other := globex.ask(globex.open().ID, "Hello").TurnID
	running.Go(func() error {
		return w.runner.Run(t.Context(), turn.Dispatch{TenantID: globex.TenantID, TurnID: other})
	})
	<-asked

	answer <- struct{}{}
	answer <- struct{}{}
	answer <- struct{}{}
	require.NoError(t, running.Wait())
	require.Subset(t, w.taken(), ids[2:4], "the two that have waited longest")
	require.Equal(t, turn.Succeeded, globex.turn(other).Status)

	close(answer)
	for _, id := range ids[2:] {
		w.run(id)
	}
	for _, id := range ids {
		require.Equal(t, turn.Succeeded, w.turn(id).Status)
	}
	require.Empty(t, w.taken())
}

// taken is what has been dispatched since it was asked last.
func (w *world) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.dispatched
	w.dispatched = nil
	return out
}

// A turn that stops for a person gives its place up, and goes on when the person has answered although the places are taken again.
func TestAPersonsTimeTakesNoPlace(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 1)
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		switch {
		case last(r) == "ask me" && len(r.Messages) == 1:
			return callTool("ask_user", `{"question":"Which?"}`), nil
		case last(r) == "slow":
			asked <- struct{}{}
			<-release
		}
		return say(s, "ok"), nil
	}))
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	w.turnsAtOnce(1)
	first := w.open()
	one := w.ask(first.ID, "ask me").TurnID
	two := w.ask(w.open().ID, "slow").TurnID
	w.run(one)
	require.Equal(t, turn.Waiting, w.turn(one).Status)
	var running sync.WaitGroup
	running.Go(func() { w.run(two) })
	<-asked
	require.Equal(t, one, w.ask(first.ID, "that one").TurnID)
	w.run(one)
	require.Equal(t, turn.Succeeded, w.turn(one).Status)
	close(release)
	running.Wait()
	require.Equal(t, turn.Succeeded, w.turn(two).Status)
}

// However turns end while others are put off, none is left behind: the dispatches alone, without the reaper, bring all to their end.
func TestNobodyIsForgottenWhileManyArePutOff(t *testing.T) {
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		return say(s, "ok"), nil
	}))
	w.turnsAtOnce(3)
	const turns = 120
	work := make(chan string, 10*turns) // more than can be dispatched
	w.runner.Dispatch = func(_ context.Context, _, id string) error {
		work <- id
		return nil
	}
	var ids []string
	for i := range turns {
		id := w.ask(w.open().ID, fmt.Sprint(i)).TurnID
		ids = append(ids, id)
		work <- id
	}
	var group errgroup.Group
	for range 16 {
		group.Go(func() error {
			for {
				select {
				case id := <-work:
					if err := w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: id}); err != nil {
						return err
					}
				default:
					return nil // what is dispatched later is so by one of the others, who goes on with it
				}
			}
		})
	}
	require.NoError(t, group.Wait())
	for _, id := range ids {
		require.Equal(t, turn.Succeeded, w.turn(id).Status, id)
	}
}

// A number that is raised is used as soon as a turn ends.
func TestAHigherNumberIsUsed(t *testing.T) {
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		return say(s, "ok"), nil
	}))
	var ids []string
	for i := range 5 {
		ids = append(ids, w.ask(w.open().ID, fmt.Sprint(i)).TurnID)
	}
	w.turnsAtOnce(1)
	held, err := w.runner.Claim(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: ids[0]})
	require.NoError(t, err)
	for _, id := range ids[1:] {
		w.run(id)
	}
	require.Empty(t, w.taken())
	w.turnsAtOnce(3)
	_, err = held.Run(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, ids[1:3], w.taken())
}
