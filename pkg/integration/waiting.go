package integration

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// tellLateness tells for how long the oldest reply that is due has not been taken up. One that a provider would not take, and that is tried again later, is not late.
func (c *Courier) tellLateness(ctx context.Context) error {
	late, err := postgres.One(ctx, c.DB.Lookup(), "lateness", pgx.RowTo[time.Duration], `select lookup_late_replies()`)
	if err != nil {
		return err
	}
	metric.Emit(ctx, metric.Event{Line: "replies waiting", Sets: []metric.Set{{Figures: []metric.Figure{{Name: "integrations.replies.lateness", Unit: metric.Seconds, Value: late.Seconds()}}}}})
	return nil
}
