package budget_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/text"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// now is a moment of the tests' own: nothing here asks the clock.
var now = time.Date(2026, 3, 14, 15, 9, 26, 535897000, time.UTC)

// book prices a token of input at a dollar a million, of output at ten: a call is 200 micros at the most, a turn of 3 calls 600.
var book = func() budget.Book {
	prices, err := model.ParsePrices([]byte(`{"currency": "USD", "tokens": 1000000, "models": {"offline.echo-1":
		[{"from": "2020-01-01", "input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 1, "source": "test"}]}}`))
	if err != nil {
		panic(err)
	}
	return budget.Book{Prices: prices, Limits: budget.Limits{Calls: 3, InputTokens: 100, OutputTokens: 10}}
}()

const (
	call  = 200
	worst = 3 * call
)

// world is a tenant whose turns a test writes by hand.
type world struct {
	pgtest.World
	t     testing.TB
	db    *pgtest.DB
	super *pgx.Conn
	at    time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	return &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), at: now}
}

// neighbour is another tenant of the same database.
func (w *world) neighbour(slug string) *world {
	w.t.Helper()
	return &world{World: w.db.World(w.t, slug), t: w.t, db: w.db, super: w.super, at: w.at}
}

// agent makes another agent, space another space.
func (w *world) agent() string {
	w.t.Helper()
	id := ident.New()
	w.exec(`insert into agents (tenant_id, id, name, status, template_id) values ($1, $2, 'Bob', 'active', $3)`, w.TenantID, id, w.TemplateID)
	return id
}

func (w *world) space() string {
	w.t.Helper()
	id := ident.New()
	w.exec(`insert into spaces (tenant_id, id, name) values ($1, $2, 'Lab')`, w.TenantID, id)
	return id
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), sql, args...)
		return err
	}))
}

func (w *world) count(table string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), `select count(*) from `+table).Scan(&n))
	return n
}

// begin writes a queued turn of the agent in the space, with its reservation, as who asks for a turn does.
func (w *world) begin(db *postgres.DB, agentID, spaceID string) (turnID string, err error) {
	turnID = ident.New()
	ctx := w.t.Context()
	err = db.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		t := budget.Turn{ID: turnID, AgentID: agentID, SpaceID: spaceID}
		var terms budget.Terms
		err := tx.QueryRow(ctx, `select tp.model_id, b.capped, b.tokens_per_turn from agents a join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
			cross join lateral budget_terms($1, $2) b where a.id = $1`, agentID, spaceID).Scan(&t.ModelID, &terms.Capped, &terms.TokensPerTurn)
		if err != nil {
			return err
		}
		var b pgx.Batch
		thread := ident.New()
		b.Queue(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, $2, $3, 1, 'CHAT', $4, $5)`, w.TenantID, thread, thread, agentID, spaceID)
		b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number) values ($1, $2, $3, $4, 1)`, w.TenantID, turnID, thread, agentID)
		if err := book.Reserve(&b, t, terms, w.at); err != nil {
			return err
		}
		return tx.SendBatch(ctx, &b).Close()
	})
	return turnID, budget.Refusal(err)
}

// start is begin for the world's agent and space, which must be let.
func (w *world) start() string {
	w.t.Helper()
	id, err := w.begin(w.db.App, w.AgentID, w.SpaceID)
	require.NoError(w.t, err)
	return id
}

// refused is begin for a turn that must be refused; it is told why.
func (w *world) refused() string {
	w.t.Helper()
	before := w.count("thread_turns")
	_, err := w.begin(w.db.App, w.AgentID, w.SpaceID)
	require.Error(w.t, err)
	require.Equal(w.t, fault.BudgetExceeded, fault.From(err).Type, "%v", err)
	require.Equal(w.t, before, w.count("thread_turns"))
	return fault.From(err).Message
}

// settle says what the turn has used so far; what stands against its going on is the answer.
func (w *world) settle(turnID string, used model.Usage) string {
	w.t.Helper()
	var b pgx.Batch
	v := book.Settle(&b, turnID, pgtest.ModelID, used, w.at)
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
	if err := v.Err(); err != nil {
		require.Equal(w.t, fault.BudgetExceeded, err.Type)
		return err.Message
	}
	return ""
}

// end ends the turn with that cost, as its record says; nil is unknown.
func (w *world) end(db *postgres.DB, turnID string, micros any) error {
	return db.InTenant(context.WithoutCancel(w.t.Context()), w.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `update thread_turns set status = 'succeeded', finished_at = $2, cost_micros = $3, model = 'offline.echo-1',
			input_tokens = 7, output_tokens = 5, cache_read_tokens = 2, cache_write_tokens = 1 where id = $1`, turnID, w.at, micros)
		return err
	})
}

func (w *world) ended(turnID string, micros any) {
	w.t.Helper()
	require.NoError(w.t, w.end(w.db.App, turnID, micros))
}

func (w *world) meter() {
	w.t.Helper()
	require.NoError(w.t, budget.Meter(w.t.Context(), w.db.App))
}

// set changes a budget; a cap is a string, a number of tokens an int64, nil is null.
func (w *world) set(scope budget.Scope, id string, monthly any, tokens any) *budget.Budget {
	w.t.Helper()
	b, err := w.trySet(change(scope, id, monthly, tokens))
	require.NoError(w.t, err)
	return b
}

func (w *world) trySet(c budget.Change) (b *budget.Budget, err error) {
	err = w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		b, err = budget.Set(w.t.Context(), tx, w.TenantID, c, w.at)
		return err
	})
	return b, err
}

func change(scope budget.Scope, id string, monthly, tokens any) budget.Change {
	c := budget.Change{Scope: scope, ScopeID: &id, MonthlyUSD: text.Patch[string]{Set: true}, TokensPerTurn: text.Patch[int64]{Set: true}}
	if s, ok := monthly.(string); ok {
		c.MonthlyUSD.Value = &s
	}
	if n, ok := tokens.(int); ok {
		many := int64(n)
		c.TokensPerTurn.Value = &many
	}
	return c
}

// cap sets a monthly cap in micros.
func (w *world) cap(scope budget.Scope, id string, micros int) *budget.Budget {
	w.t.Helper()
	return w.set(scope, id, micros6(micros), nil)
}

func micros6(n int) string { return fmt.Sprintf("%d.%06d", n/1e6, n%1e6) }

func (w *world) budgets() []budget.Budget {
	w.t.Helper()
	all, err := budget.List(w.t.Context(), w.db.App.In(w.TenantID), w.at, nil, 100)
	require.NoError(w.t, err)
	return all
}

// state is the tenant's budget: spent and reserved, in micros.
func (w *world) state() (spent, reserved string) {
	w.t.Helper()
	b := w.budgets()[0]
	return b.SpentUSD, b.ReservedUSD
}
