package retention

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// older is SQL for a moment: $1 less the tenant's number of days.
func older(days string) string {
	return `$1::timestamptz - make_interval(hours => 24 * (select ` + days + ` from retention_terms(current_tenant())))`
}

// pruneTurns deletes the steps of turns that ended too long ago, and what their records repeat of them: inputs of approved calls, outputs of
// tools, what the model calls began with.
func pruneTurns(ctx context.Context, tx pgx.Tx, at time.Time, signal func(string)) (turns, steps int, err error) {
	rows, err := tx.Query(ctx, `with due as materialized (
			select t.id, t.finished_at from thread_turns t where t.steps_pruned_at is null and t.finished_at < `+older("steps_days")+`
			order by t.finished_at limit $2 for no key update skip locked),
		sized as (
			select d.id, row_number() over whole as place, sum(1 + (select count(*) from turn_steps s where s.turn_id = d.id)
				+ (select count(*) from tool_approvals p where p.turn_id = d.id)) over whole as rows
			from due d window whole as (order by d.finished_at, d.id))
		select t.id, case when t.tool_outcomes::text <> '[]' then t.tool_outcomes end from sized z join thread_turns t on t.id = z.id
		where z.rows <= $3 or z.place = 1`, at, batchTurns, batchRows)
	if err != nil {
		return 0, 0, err
	}
	var ids []string
	var b pgx.Batch
	var id string
	var outcomes []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &outcomes}, func() error {
		ids = append(ids, id)
		if outcomes == nil {
			return nil
		}
		var short []thread.ToolResult                // the reply that they led to has their outputs
		if json.Unmarshal(outcomes, &short) == nil { // one that is not understood must not keep all others
			for i := range short {
				short[i].Output = nil
			}
			b.Queue(`update thread_turns set tool_outcomes = $2 where id = $1`, id, short)
		}
		outcomes = nil
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	signal("turns chosen")
	b.Queue(`delete from turn_steps where turn_id = any($1::uuid[])`, ids).Exec(func(tag pgconn.CommandTag) error {
		steps = int(tag.RowsAffected())
		return nil
	})
	b.Queue(`update tool_approvals set input = 'null' where turn_id = any($1::uuid[])`, ids)
	b.Queue(`update thread_turns set steps_pruned_at = $2, prompt = null where id = any($1::uuid[])`, ids, ident.Time{Time: at})
	err = tx.SendBatch(ctx, &b).Close()
	signal("turns written")
	return len(ids), steps, err
}

// forgotten is what the model is given, in a payload's place, of a call whose payload is not kept any more.
const forgotten = `"This call's body is not kept any more."`

// idle is SQL that is true of a turn t in whose thread nothing is going on. Each kind of unfinished turn has an index of its own.
const idle = `not exists (select from thread_turns u where u.thread_uuid = t.thread_uuid and u.status = 'queued')
	and not exists (select from thread_turns u where u.thread_uuid = t.thread_uuid and u.status = 'running')
	and not exists (select from thread_turns u where u.thread_uuid = t.thread_uuid and u.status = 'waiting')`

// prunePayloads deletes what came with webhooks' calls, where no turn may still be given it. The threads are locked before their turns, as whoever
// queues a turn does; a statement of its own, behind the lock, sees the turns that were queued until then.
func prunePayloads(ctx context.Context, tx pgx.Tx, at time.Time) (int, error) {
	rows, err := tx.Query(ctx, `select t.id, t.thread_uuid from thread_turns t
		where t.webhook_id is not null and t.payload_pruned_at is null and t.finished_at < `+older("payload_days")+` and `+idle+`
		order by t.finished_at limit $2`, at, batchPayloads)
	if err != nil {
		return 0, err
	}
	var ids []string
	var threads []*string
	var id string
	var uuid *string
	_, err = pgx.ForEachRow(rows, []any{&id, &uuid}, func() error {
		ids, threads = append(ids, id), append(threads, uuid)
		uuid = nil
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	locked, err := collect(ctx, tx, `select uuid::text from threads where uuid = any($1::uuid[]) for no key update skip locked`, threads)
	if err != nil {
		return 0, err
	}
	return affected(tx.Exec(ctx, `update thread_turns set context_snapshot = null, model_payload = $4, payload_pruned_at = $3 where id = any(array(
		select t.id from thread_turns t where t.id = any($1::uuid[]) and t.payload_pruned_at is null and (t.thread_uuid is null or t.thread_uuid = any($2::uuid[])) and `+idle+`
		for no key update skip locked))`, ids, locked, ident.Time{Time: at}, forgotten))
}

// pruneTexts deletes what models were given again and again, and no turn with steps was. Turns that are over are known by the text's age; those that
// are not, which may have waited for a person for years, are looked at.
func pruneTexts(ctx context.Context, tx pgx.Tx, at time.Time) (int, error) {
	return affected(tx.Exec(ctx, `with held as materialized (
			select decode(unnest(array[t.prompt->>'system', t.prompt->>'tools', t.prompt->>'task']), 'hex') as sha256 from (
				select q.prompt from thread_turns q where q.status = 'queued' and q.prompt is not null
				union all select r.prompt from thread_turns r where r.status = 'running' and r.prompt is not null
				union all select w.prompt from thread_turns w where w.status = 'waiting' and w.prompt is not null) t)
		delete from prompt_texts where sha256 = any(array(
			select p.sha256 from prompt_texts p where p.used_at < `+older("steps_days")+` - $2::interval and not exists (select from held h where h.sha256 = p.sha256)
			order by p.used_at limit $3 for update skip locked))`, at, textGrace, batchRows))
}
