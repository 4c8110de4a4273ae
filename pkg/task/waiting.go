package task

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// tellLateness tells for how long the oldest event that is due has not been taken up. One that failed, and that is tried again later, is not late.
func (p *Processor) tellLateness(ctx context.Context) error {
	late, err := postgres.One(ctx, p.DB.Lookup(), "lateness", pgx.RowTo[time.Duration], `select lookup_late_task_events()`)
	if err != nil {
		return err
	}
	metric.Emit(ctx, metric.Event{Line: "task events waiting", Sets: []metric.Set{{Figures: []metric.Figure{{Name: "tasks.events.lateness", Unit: metric.Seconds, Value: late.Seconds()}}}}})
	return nil
}
