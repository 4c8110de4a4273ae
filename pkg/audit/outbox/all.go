package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// RecordAll records several events of one act, in their order.
func (o *Outbox) RecordAll(ctx context.Context, tx pgx.Tx, events []audit.Event) error {
	for _, e := range events {
		if err := o.Record(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}
