package evaluation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimURL) != "" {
		victim() // the process that a crash test kills
		return
	}
	pgtest.Main(m)
}

// world is a tenant whose runs a test works on by hand, with the offline model over the real client.
type world struct {
	pgtest.World
	t     testing.TB
	db    *pgtest.DB
	super *pgx.Conn
	url   string // of the model
	*workers
}

// workers are what a process works on runs with: turns that are dispatched run beside it.
type workers struct {
	db     *postgres.DB
	model  model.Model
	turns  *turn.Runner
	runner *evaluation.Runner
	scorer *evaluation.Scorer

	ctx     context.Context
	running sync.WaitGroup
	mu      sync.Mutex
	again   []evaluation.Job
	open    int // turns that run, now and at the most
	most    int
	lose    bool // dispatches are lost
}

func newWorkers(ctx context.Context, db *postgres.DB, modelURL string) (*workers, error) {
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: modelURL})
	if err != nil {
		return nil, err
	}
	prices, err := model.ParsePrices(schema.Prices)
	w := &workers{db: db, ctx: ctx, model: client}
	w.turns = turn.NewRunner(db, client, deaf{}, w.dispatch)
	grader := grade.Grader{Model: client, Prices: prices}
	w.runner = &evaluation.Runner{DB: db, Grader: grader, Publish: deaf{}, Watch: 20 * time.Millisecond, Dispatch: w.dispatch, Again: func(_ context.Context, j evaluation.Job) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.again = append(w.again, j)
		return nil
	}}
	w.scorer = &evaluation.Scorer{DB: db, Grader: grader}
	return w, err
}

// deaf is a Publisher that nobody listens to.
type deaf struct{}

func (deaf) Publish(context.Context, ...publish.Event) error { return nil }

func (w *workers) dispatch(_ context.Context, tenantID, turnID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose {
		return nil
	}
	w.open++
	w.most = max(w.most, w.open)
	w.running.Go(func() {
		_ = w.turns.Run(w.ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID}) // as a function that fails later
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
	})
	return nil
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	server := httptest.NewServer(offline.New(offline.Config{}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	workers, err := newWorkers(ctx, db.App, server.URL)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		workers.running.Wait()
	})
	return &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), url: server.URL, workers: workers}
}

func (w *world) tx(run func(tx pgx.Tx) error) error {
	return w.db.App.InTenant(w.t.Context(), w.TenantID, run)
}

// fields reads what a caller says of an evaluation.
func fields(t testing.TB, text string) (f evaluation.Fields) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &f), text)
	return f
}

func (w *world) create(f evaluation.Fields) (e evaluation.Evaluation, err error) {
	err = w.tx(func(tx pgx.Tx) (err error) {
		e, err = evaluation.Create(w.t.Context(), tx, w.TenantID, f)
		return err
	})
	return e, err
}

// evaluation is one with so many cases, of which the agent says what input tells it to.
func (w *world) evaluation(n, concurrency int, input func(i int) string) evaluation.Evaluation {
	w.t.Helper()
	cases := make([]map[string]any, n)
	for i := range cases {
		cases[i] = map[string]any{"input": input(i + 1), "expected": fmt.Sprintf("answer %d", i+1)}
	}
	text, err := json.Marshal(map[string]any{"name": "Answers", "agentId": w.AgentID, "cases": cases, "concurrency": concurrency, "evaluators": []any{
		map[string]any{"type": "exact"}, map[string]any{"type": "length", "maxWords": 3},
		map[string]any{"type": "rubric", "rubric": "Gives the answer.", "modelId": offline.ModelID}}})
	require.NoError(w.t, err)
	e, err := w.create(fields(w.t, string(text)))
	require.NoError(w.t, err)
	return e
}

func (w *world) startAs(e evaluation.Evaluation, agentID *string) (r evaluation.Run, err error) {
	err = w.tx(func(tx pgx.Tx) (err error) {
		r, err = evaluation.Start(w.t.Context(), tx, w.TenantID, w.UserID, e.ID, agentID)
		return err
	})
	return r, err
}

func (w *world) start(e evaluation.Evaluation) evaluation.Run {
	w.t.Helper()
	r, err := w.startAs(e, nil)
	require.NoError(w.t, err)
	return r
}

func (w *world) work(r evaluation.Run) {
	w.t.Helper()
	require.NoError(w.t, w.runner.Run(w.t.Context(), evaluation.Job{TenantID: w.TenantID, RunID: r.ID}))
}

func (w *world) run(id string) evaluation.Run {
	w.t.Helper()
	r, err := evaluation.GetRun(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return r
}

func (w *world) results(id string) []evaluation.Result {
	w.t.Helper()
	all, err := evaluation.Results(w.t.Context(), w.db.App.In(w.TenantID), []string{id}, nil, nil, evaluation.MaxCases)
	require.NoError(w.t, err)
	return all[id]
}

// sql is SQL that no policy binds.
func (w *world) sql(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&n))
	return n
}

// abandon makes the leases of dead workers run out now.
func (w *world) abandon() {
	w.t.Helper()
	w.sql(`update evaluation_runs set lease_until = clock_timestamp() - interval '1 hour' where status = 'running'`)
	w.sql(`update thread_turns set lease_until = clock_timestamp() - interval '1 hour' where status in ('queued', 'running')`)
}

// reap dispatches the turns that nobody works on.
func (w *world) reap() {
	w.t.Helper()
	_, err := turn.Reap(w.t.Context(), w.db.App, w.dispatch)
	require.NoError(w.t, err)
}

// patiently is how long a test waits for what must happen.
const patiently = time.Minute
