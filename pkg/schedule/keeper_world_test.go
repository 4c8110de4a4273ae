package schedule_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	localclock "github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type object = map[string]any

// keep is a tenant with the real clock of one machine, whose time a test moves on, and what has been started.
type keep struct {
	pgtest.World
	*testing.T
	db    *pgtest.DB
	super *pgx.Conn
	clock clock.Clock
	runs  *started

	mu   sync.Mutex
	time time.Time
}

func newKeep(t *testing.T) *keep {
	t.Helper()
	db := pgtest.New(t)
	k := &keep{World: db.World(t, "acme"), T: t, db: db, super: db.Superuser(t), runs: &started{by: map[string]string{}, are: map[string]workflow.Run{}}, time: time.Now()}
	k.runs.now = k.now
	c, err := localclock.Open(t.Context(), localclock.Config{URL: db.SuperURL, Now: k.now})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	k.clock = c
	return k
}

func (k *keep) now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.time
}

func (k *keep) advance(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.time = k.time.Add(d)
}

// keeper is a process' Keeper.
func (k *keep) keeper() *schedule.Keeper {
	return &schedule.Keeper{DB: k.db.App, Clock: k.clock, Runs: k.runs, Now: k.now}
}

func fields(t testing.TB, o object) (f schedule.Fields) {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &f))
	return f
}

// make makes a schedule of the world's agent, and the clock is told.
func (k *keep) make(o object) schedule.Schedule {
	k.Helper()
	s := k.written(o)
	require.NoError(k, k.keeper().Settle(k.Context(), k.TenantID, s.ID))
	return s
}

// written is make by a process that dies before it has told the clock.
func (k *keep) written(o object) (s schedule.Schedule) {
	k.Helper()
	all := object{"name": "Report", "agentId": k.AgentID, "prompt": "Sum up the day.", "expression": "rate(1 hour)"}
	for name, value := range o {
		all[name] = value
	}
	require.NoError(k, k.tx(func(tx pgx.Tx) (err error) {
		s, err = schedule.Create(k.Context(), tx, k.TenantID, k.UserID, fields(k, all))
		return err
	}))
	return s
}

func (k *keep) update(id string, o object) (s schedule.Schedule) {
	k.Helper()
	require.NoError(k, k.tx(func(tx pgx.Tx) (err error) {
		s, err = schedule.Update(k.Context(), tx, id, fields(k, o))
		return err
	}))
	return s
}

func (k *keep) delete(id string) {
	k.Helper()
	require.NoError(k, k.tx(func(tx pgx.Tx) error {
		_, err := schedule.Delete(k.Context(), tx, id)
		return err
	}))
}

func (k *keep) tx(run func(tx pgx.Tx) error) error {
	return k.db.App.InTenant(k.World.Context, k.TenantID, run)
}

// Context is the test's: the world has one of its own.
func (k *keep) Context() context.Context { return k.T.Context() }

func (k *keep) change(sql string, args ...any) {
	k.Helper()
	_, err := k.super.Exec(k.Context(), sql, args...)
	require.NoError(k, err)
}

func (k *keep) onClock(id string) clock.Schedule {
	k.Helper()
	s, err := k.clock.Get(k.Context(), id)
	require.NoError(k, err)
	return s
}

func (k *keep) notOnClock(id string) {
	k.Helper()
	_, err := k.clock.Get(k.Context(), id)
	require.ErrorIs(k, err, clock.ErrNotFound)
}

func (k *keep) rows() (n int) {
	k.Helper()
	require.NoError(k, k.super.QueryRow(k.Context(), `select count(*) from schedules`).Scan(&n))
	return n
}

// reconcile is one drift check that settles everything.
func (k *keep) reconcile() schedule.Report {
	k.Helper()
	r, err := k.keeper().Reconcile(k.Context())
	require.NoError(k, err)
	return r
}

// started is the workflow engine as far as it is asked to start: by the port's contract, once by name and input.
type started struct {
	workflow.Runs
	mu   sync.Mutex
	by   map[string]string       // inputs, by name
	are  map[string]workflow.Run // how they are, by ARN
	fail error
	now  func() time.Time
}

func (s *started) Start(_ context.Context, machine, name string, input json.RawMessage) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return "", s.fail
	}
	if was, ok := s.by[name]; ok && was != string(input) {
		return "", workflow.ErrRunExists
	}
	arn := "arn:" + machine + ":" + name
	if _, had := s.by[name]; !had {
		s.by[name], s.are[arn] = string(input), workflow.Run{ID: arn, Status: workflow.Running, Started: s.now()}
	}
	return arn, nil
}

func (s *started) Describe(_ context.Context, run string) (workflow.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.are[run]
	if !known {
		return r, workflow.ErrNoRun
	}
	return r, nil
}

// fails ends all runs that go on.
func (s *started) fails() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for arn, r := range s.are {
		r.Status = workflow.Failed
		s.are[arn] = r
	}
}

func (s *started) inputs() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, input := range s.by {
		all = append(all, input)
	}
	return all
}
