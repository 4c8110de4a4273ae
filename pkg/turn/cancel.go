package turn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Cancel ends a turn. One that is queued or waits is over at once; one that runs ends within seconds with what it has said so far. A cancelled turn
// stays as it is.
func Cancel(ctx context.Context, tx pgx.Tx, tenantID, id string) (Decided, error) {
	s, err := lockTurn(ctx, tx, id)
	if err != nil {
		return Decided{}, err
	}
	var b pgx.Batch
	var out Decided
	switch s.status {
	case Cancelled:
		return decided(ctx, tx, id, "", nil)
	case Running:
		b.Queue(`update thread_turns set cancel = true where id = $1`, id)
	case Queued, Waiting:
		b.Queue(`update thread_turns set status = 'cancelled', waits_for = null, lease_id = null, lease_until = null, finished_at = $2 where id = $1
			returning coalesce(callback_id::text, '')`, id, ident.Now()).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Callback) })
		out.Notices = s.reopen(&b, tenantID)
		b.Queue(`select id from thread_turns where thread_uuid = $1 and status = 'queued'`, s.uuid).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&out.Due}, func() error { return nil })
			return err
		})
	default:
		return Decided{}, fault.Invalid("the turn is over: it is %s", s.status)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return Decided{}, err
	}
	out.Turn, err = Get(ctx, tx, id)
	return out, err
}

// Retry queues a turn that answers again what the thread's last turn did not: one that failed, or was interrupted or cancelled. What that one said is
// not part of the new one's conversation.
func Retry(ctx context.Context, tx pgx.Tx, tenantID, id string) (Decided, error) {
	t, err := lockTurn(ctx, tx, id)
	if err != nil {
		return Decided{}, err
	}
	switch t.status {
	case Failed, Interrupted, Cancelled:
	default:
		return Decided{}, fault.Invalid("a turn that is %s cannot be repeated", t.status)
	}
	s, err := lockThread(ctx, tx, t.th.ID)
	switch {
	case err != nil:
		return Decided{}, err
	case s.running != "" || s.queued != "" || s.waiting != "" || s.turnNumber != t.number:
		return Decided{}, fault.Invalid("only the last turn of a thread can be repeated")
	}
	if err := s.agent.CheckTurns(); err != nil {
		return Decided{}, err
	}
	turnID := ident.New()
	if err := CheckRate(ctx, tx, s.agentID, s.limits); err != nil {
		return Decided{}, err
	}
	var b pgx.Batch
	b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, lease_until, retry_of) values ($1, $2, $3, $4, $5, clock_timestamp() + $6, $7)`,
		tenantID, turnID, s.uuid, s.agentID, t.number+1, DispatchGrace, id)
	th := publish.Thread{ID: t.th.ID, Status: string(thread.Open), Title: s.title, Metadata: s.metadata, UpdatedAt: ident.Now()}
	b.Queue(`update threads set turn_count = $2, status = 'open', updated_at = greatest(updated_at, $3) where uuid = $1`, s.uuid, t.number+1, th.UpdatedAt)
	if err := reserve(&b, budget.Turn{ID: turnID, AgentID: s.agentID, SpaceID: s.spaceID}, s.price); err != nil {
		return Decided{}, err
	}
	var notices []notify.Notice
	if s.status != thread.Open {
		notices = append(notices, notify.Queue(&b, tenantID, s.uuid, publish.ThreadUpdate{TenantID: tenantID, ThreadID: th.ID, Thread: th}))
	}
	if err := budget.Refusal(tx.SendBatch(ctx, &b).Close()); err != nil {
		return Decided{}, err
	}
	out, err := decided(ctx, tx, turnID, turnID, nil)
	out.Notices = notices
	return out, err
}
