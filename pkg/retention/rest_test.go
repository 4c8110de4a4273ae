package retention_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/retention"
)

// text is a prompt's text that was given last so long ago.
func (w *world) text(n int, ago time.Duration) {
	w.t.Helper()
	w.exec(`insert into prompt_texts (tenant_id, sha256, body, used_at) values ($1, decode($2, 'hex'), 'text', $3)`, w.TenantID, sha(n), now.Add(-ago))
}

func (w *world) texts() (left []int) {
	w.t.Helper()
	rows, err := w.super.Query(w.t.Context(), `select get_byte(sha256, 31) from prompt_texts where tenant_id = $1 order by 1`, w.TenantID)
	require.NoError(w.t, err)
	left, err = pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(w.t, err)
	return left
}

// gives makes two texts what a turn was given.
func (w *world) gives(turnID string, system, tools int) {
	w.t.Helper()
	w.exec(`update thread_turns set prompt = json_build_object('system', $2::text, 'tools', $3::text) where id = $1`, turnID, sha(system), sha(tools))
}

// A text outlives the steps of the turns that were given it, by two days; one that a turn was given which is not over stays, however old.
func TestTextsOfPrompts(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	for n, ago := range []time.Duration{0, 90 * day, 92 * day, 92*day + time.Microsecond, 400 * day, 400 * day, 4000 * day} {
		w.text(n, ago)
	}
	other.text(7, 93*day)
	waits := w.turnIn(w.thread(), "waiting", 390*day)
	w.gives(waits, 4, 5)
	require.Equal(t, retention.Pruned{Texts: 3}, w.prune())
	require.Equal(t, []int{0, 1, 2, 4, 5}, w.texts())
	require.Empty(t, other.texts())

	// The turn ends, and has its steps for 90 days from now: what it was given is touched.
	w.exec(`update thread_turns set status = 'cancelled', finished_at = now() where id = $1`, waits)
	require.Zero(t, w.prune())
	require.Equal(t, []int{0, 1, 2, 4, 5}, w.texts())
	require.Equal(t, 2, one[int](w, `select count(*) from prompt_texts where used_at > now() - interval '1 hour' and get_byte(sha256, 31) in (4, 5)`))
}

// A text that a turn is given at the very moment at which it would go stays or is there again: whoever gives it waits for whoever deletes it.
func TestATextThatIsGivenAgain(t *testing.T) {
	w := newWorld(t)
	w.text(1, 200*day)
	tx, err := w.super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `delete from prompt_texts where tenant_id = $1`, w.TenantID)
	require.NoError(t, err)
	given := make(chan error, 1)
	go func() { given <- w.give(1) }()
	waiter := w.db.Superuser(t)
	require.Eventually(t, func() bool {
		var n int
		return waiter.QueryRow(t.Context(), `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`).Scan(&n) == nil && n > 0
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-given)
	require.Equal(t, []int{1}, w.texts())
	require.Zero(t, w.prune())

	// Given today, it is given again without a lock.
	tx, err = w.super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from prompt_texts where tenant_id = $1 for update`, w.TenantID)
	require.NoError(t, err)
	require.NoError(t, w.give(1))
	require.NoError(t, tx.Rollback(t.Context()))
}

func (w *world) give(n int) error {
	var b pgx.Batch
	b.Queue(`select keep_prompt_text(decode($1, 'hex'), 'text')`, sha(n))
	return w.db.App.Once(w.t.Context(), w.TenantID, &b)
}

func TestTokensAndExecutions(t *testing.T) {
	w := newWorld(t)
	_, err := w.set(retention.Change{StepsDays: days(3650)}) // does not concern them
	require.NoError(t, err)
	for _, ago := range []time.Duration{0, retention.TokenKept, retention.TokenKept + time.Microsecond} {
		w.exec(`insert into client_tokens (tenant_id, user_id, operation, token, input_hash, result, created_at) values ($1, $2, 'createThread', $3, '', '{}', $4)`,
			w.TenantID, w.UserID, ident.New(), now.Add(-ago))
	}
	th := w.thread()
	execution := func(status string, ago time.Duration) {
		w.exec(`insert into executions (tenant_id, id, arn, workflow, started_at, turn_id, status, finished_at) values ($1, $2, gen_random_uuid()::text, 'auto-thread', $3, $4, $5::text,
			case when $5::text <> 'running' then $3::timestamptz end)`, w.TenantID, ident.New(), now.Add(-ago), w.turnIn(th, "failed", time.Hour), status)
	}
	for _, ago := range []time.Duration{0, retention.ExecutionKept, retention.ExecutionKept + time.Microsecond} {
		execution("succeeded", ago)
	}
	execution("running", 2*retention.ExecutionKept)
	w.exec(`insert into execution_iterations (tenant_id, execution_id, number, turn_id) select tenant_id, id, 1, turn_id from executions`) // which go with theirs
	require.Equal(t, retention.Pruned{Tokens: 1, Executions: 1}, w.prune())
	require.Equal(t, 3, one[int](w, `select count(*) from execution_iterations`))
	require.Equal(t, []int{2, 3}, []int{one[int](w, `select count(*) from client_tokens`), one[int](w, `select count(*) from executions`)})
	require.Zero(t, w.prune())
}

// Runs of evaluations go with their results, a run at a time; the newest two that finished stay, and whatever is not over.
func TestRunsOfEvaluations(t *testing.T) {
	w := newWorld(t)
	ids := map[int]string{}
	evaluation := func(statuses ...string) {
		id := ident.New()
		w.exec(`insert into evaluations (tenant_id, id, name, agent_id, evaluators, concurrency, pass_threshold, case_count, created_at, updated_at)
			values ($1, $2, 'e', $3, '[]', 1, 1, 2, now(), now())`, w.TenantID, id, w.AgentID)
		for i, status := range statuses {
			ids[i+1] = ident.New()
			w.exec(`insert into evaluation_runs (tenant_id, id, evaluation_id, number, version, agent_id, evaluators, concurrency, pass_threshold, case_count, status, user_id, created_at, finished_at)
				values ($1, $2, $3, $4, 1, $5, '[]', 1, 1, 2, $6::text, $7, $8, case when $6::text <> 'running' then $8::timestamptz end)`,
				w.TenantID, ids[i+1], id, i+1, w.AgentID, status, w.UserID, now.Add(-time.Duration(400-i)*day))
			w.exec(`insert into evaluation_results (tenant_id, run_id, number, key, input, status) select $1, $2, n, '', '', 'passed' from generate_series(1, 2) n`, w.TenantID, ids[i+1])
		}
	}
	left := func() (numbers []int) {
		rows, err := w.super.Query(t.Context(), `select number from evaluation_runs order by number`)
		require.NoError(t, err)
		numbers, err = pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, 2*len(numbers), one[int](w, `select count(*) from evaluation_results`))
		return numbers
	}
	evaluation("finished", "cancelled", "finished", "finished", "cancelled", "running")
	require.Equal(t, retention.Pruned{Runs: 2}, w.prune())
	require.Equal(t, []int{3, 4, 5, 6}, left())
	w.exec(`update evaluation_runs set status = 'finished', finished_at = $1 where number = 6`, now)
	require.Equal(t, retention.Pruned{Runs: 1}, w.prune())
	require.Equal(t, []int{4, 5, 6}, left())
	require.Zero(t, w.prune())
}

// What finds old rows reads indexes that hold no more than what is kept, not the tables.
func TestOldRowsAreFoundByIndex(t *testing.T) {
	w := newWorld(t)
	w.exec(`update thread_turns set steps_pruned_at = finished_at`)
	w.many(5000, 1)
	w.exec(`update thread_turns set webhook_id = id`)
	w.exec(`insert into client_tokens (tenant_id, user_id, operation, token, input_hash, result, created_at) select $1, $2, 'o', n::text, '', '{}', $3 from generate_series(1, 5000) n`,
		w.TenantID, w.UserID, now)
	require.Equal(t, retention.Pruned{Turns: 5000, Steps: 5000, Payloads: 5000}, w.prune())
	w.exec(`vacuum analyze`)
	w.exec(`select pg_stat_force_next_flush()`)
	before := one[string](w, scans)
	require.Zero(t, w.prune())
	w.db.App.Close() // a backend that ends says what it did
	require.Eventually(t, func() bool {
		w.exec(`select pg_stat_clear_snapshot()`)
		return one[int](w, `select count(*) from pg_stat_activity where usename = 'agentplatform_app' and datname = current_database()`) == 0
	}, time.Minute, 5*time.Millisecond)
	require.Equal(t, before, one[string](w, scans))
}

const scans = `select string_agg(relname || seq_scan, chr(32) order by relname) from pg_stat_user_tables where relname in ('thread_turns', 'turn_steps', 'client_tokens', 'threads')`
