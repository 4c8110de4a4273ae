package integration

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// slow is a publisher whose server takes its time: until whoever asks does not wait any longer.
type slow struct{ begins func(ctx context.Context) }

func (s slow) Publish(ctx context.Context, _ ...publish.Event) error {
	s.begins(ctx)
	<-ctx.Done()
	return ctx.Err()
}

// The turn does not wait until its message is published, and a provider does so for a moment only.
func TestTheTurnIsDispatchedBeforeAnythingIsPublished(t *testing.T) {
	w := pgtest.New(t)
	acme := w.World(t, "acme")
	taken := integration.Taken{Delivery: integration.Arrived(acme.TenantID, integration.Generic, nil), TurnID: "a turn"}
	require.NoError(t, w.App.InTenant(t.Context(), acme.TenantID, func(tx pgx.Tx) error {
		th, err := thread.Create(t.Context(), tx, acme.TenantID, thread.New{})
		if err != nil {
			return err
		}
		asked, err := turn.Request(t.Context(), tx, acme.TenantID, turn.Ask{ThreadID: th.ID, Body: "Where is it?", UserID: acme.UserID})
		taken.Notices = asked.Notices
		return err
	}))
	var did []string
	f := follow{db: w.App, signal: func(string) {},
		dispatch: func(_ context.Context, payload any) error {
			raw, err := json.Marshal(payload)
			require.NoError(t, err)
			did = append(did, string(raw))
			return nil
		},
		to: slow{func(ctx context.Context) {
			end, ok := ctx.Deadline()
			require.True(t, ok)
			require.LessOrEqual(t, time.Until(end), publishTime)
			did = append(did, "publish")
		}}}
	f.taken(t.Context(), taken)
	require.GreaterOrEqual(t, len(did), 2)
	require.JSONEq(t, `{"tenantId": "`+acme.TenantID+`", "turnId": "a turn"}`, did[0])
	require.Equal(t, "publish", did[1])
}
