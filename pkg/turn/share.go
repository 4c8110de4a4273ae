package turn

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// A tenant has so many turns at work at once (tenants.turns_at_once), and no more: however many it asks for, other tenants' turns start as they come.
// Claims at the same moment do not see one another, so a few more may run. A claim above that puts the turn off; a turn that ends has the one dispatched
// that was put off and has waited longest. A turn that has begun, and waited for a person, goes on without asking again.

const (
	turnsAtWork = `(select count(*) from thread_turns x where x.status = 'running')`
	turnsAtOnce = `(select turns_at_once from tenants)`
)

// putOff notes of a queued turn that could not be claimed, although its thread is idle, that it waits for room. It reports whether there is room by
// now: whoever ended a turn before that was noted has not seen it.
func (r *Runner) putOff(ctx context.Context, tenantID, turnID string) (room bool, err error) {
	noted := false
	var b pgx.Batch
	b.Queue(`update thread_turns t set put_off = true, lease_until = clock_timestamp() + $2 where id = $1 and status = 'queued'
		and not exists (select from thread_turns o where o.thread_uuid = t.thread_uuid and o.status in ('running', 'waiting'))`,
		turnID, maxDuration).Exec(func(tag pgconn.CommandTag) error { // by then a turn has ended
		noted = tag.RowsAffected() > 0
		return nil
	})
	if err := r.DB.OnceRelaxed(ctx, tenantID, &b); err != nil || !noted { // lost in a power cut, the turn is the reaper's
		return false, err
	}
	return postgres.One(ctx, r.DB.In(tenantID), "turn", pgx.RowTo[bool], `select `+turnsAtWork+` < `+turnsAtOnce)
}

// queueRoom takes the turn that has waited longest for room out of those that wait, or two where there is more room: so all of it is used again soon
// after a tenant's number was raised. Their ids come to next, to be dispatched after the commit. It comes behind what gives the turn's own place up.
func queueRoom(b *pgx.Batch, next *[]string) {
	b.Queue(`update thread_turns set put_off = false, lease_until = clock_timestamp() + $1 where put_off and id = any (array(
		select id from thread_turns where put_off order by queued_at limit least(2, greatest(0, `+turnsAtOnce+` - `+turnsAtWork+`)) for update skip locked)) returning id`,
		DispatchGrace).Query(func(rows pgx.Rows) error {
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		*next = ids // the batch may be run again
		return err
	})
}
