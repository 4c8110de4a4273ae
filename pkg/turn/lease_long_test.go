//go:build long

package turn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// A model that takes longer than the lease lasts keeps its turn: the attempt renews it, and nobody else takes the turn up.
func TestALeaseIsRenewed(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		s.Text("Slowly, ")
		close(asked)
		<-answer
		return say(s, "but surely."), nil
	}))
	th := w.open()
	message := w.ask(th.ID, "Hello")
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(message.TurnID)
	}()
	<-asked
	db := w.db.Superuser(t)
	const left = 20 * time.Second // the lease would run out now, were it not renewed
	_, err := db.Exec(t.Context(), `update thread_turns set lease_until = clock_timestamp() + $2 where id = $1`, message.TurnID, left)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var renewed bool
		require.NoError(t, db.QueryRow(t.Context(), `select lease_until > clock_timestamp() + $2 from thread_turns where id = $1`, message.TurnID, left+turn.Lease/4).Scan(&renewed))
		return renewed
	}, time.Minute, 50*time.Millisecond)
	require.Empty(t, w.due())
	close(answer)
	<-done
	record := w.turn(message.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Equal(t, 1, record.Attempts)
	require.Equal(t, "Slowly, but surely.", w.messages(th)[1].Body)
}
