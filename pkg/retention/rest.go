package retention

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pruneTokens forgets what calls with a clientToken were answered.
func pruneTokens(ctx context.Context, tx pgx.Tx, at time.Time) (int, error) {
	return affected(tx.Exec(ctx, `delete from client_tokens where ctid = any(array(
		select ctid from client_tokens where created_at < $1::timestamptz - $2::interval order by created_at limit $3 for update skip locked))`, at, TokenKept, batchRows))
}

// pruneExecutions forgets executions that the workflow engine has forgotten. One that still runs, as a loop may for months, stays.
func pruneExecutions(ctx context.Context, tx pgx.Tx, at time.Time) (int, error) {
	return affected(tx.Exec(ctx, `delete from executions where ctid = any(array(
		select ctid from executions where started_at < $1::timestamptz - $2::interval and status <> 'running' order by started_at limit $3 for update skip locked))`, at, ExecutionKept, batchRows))
}

// pruneRun deletes an evaluation's run with its results, at most 1,000. The newest two that finished stay: they are what the next one is compared with,
// and each other.
func pruneRun(ctx context.Context, tx pgx.Tx, at time.Time) (int, error) {
	ids, err := collect(ctx, tx, `select r.id::text from evaluation_runs r where r.finished_at < `+older("evaluation_days")+`
		and (select count(*) from evaluation_runs n where n.evaluation_id = r.evaluation_id and n.number > r.number and n.status = 'finished') >= 2
		order by r.finished_at limit 1 for update skip locked`, at)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `delete from evaluation_results where run_id = any($1::uuid[])`, ids); err != nil {
		return 0, err
	}
	return affected(tx.Exec(ctx, `delete from evaluation_runs where id = any($1::uuid[])`, ids))
}

func collect(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func affected(tag pgconn.CommandTag, err error) (int, error) { return int(tag.RowsAffected()), err }
