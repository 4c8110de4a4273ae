package budget_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/budget"
	threads "github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

// platform is a tenant with its callers.
type platform struct {
	pgtest.World
	t                    *testing.T
	p                    *handlertest.Platform
	owner, admin, member tenant.Claims
}

func open(t *testing.T, p *handlertest.Platform, slug string) *platform {
	w := p.DB.World(t, slug)
	return &platform{w, t, p, handlertest.Claims(w, tenant.Owner), handlertest.Claims(w, tenant.Admin), handlertest.Claims(w, tenant.Member)}
}

func (w *platform) set(by tenant.Claims, input args) (*budget.Budget, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[*budget.Budget](w.t, w.p, "set-budget", functions.SetBudget, by, args{"input": input})
}

func (w *platform) list(by tenant.Claims, a args) (page.Page[budget.Budget], *fault.Error) {
	w.t.Helper()
	return handlertest.Call[page.Page[budget.Budget]](w.t, w.p, "list-budgets", functions.ListBudgets, by, a)
}

// usage is today's.
func (w *platform) usage(by tenant.Claims, a args) budget.Usage {
	w.t.Helper()
	today := time.Now().UTC()
	a["from"], a["to"] = today.AddDate(0, 0, -1).Format(time.DateOnly), today.AddDate(0, 0, 1).Format(time.DateOnly)
	u, err := handlertest.Call[budget.Usage](w.t, w.p, "usage", functions.Usage, by, a)
	require.Nil(w.t, err)
	return u
}

func (w *platform) thread() string {
	w.t.Helper()
	th, err := handlertest.Call[thread.Thread](w.t, w.p, "create-thread", threads.CreateThread, w.member, args{"input": args{}})
	require.Nil(w.t, err)
	return th.ID
}

func (w *platform) send(threadID string) (thread.Message, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[thread.Message](w.t, w.p, "send-message", threads.SendMessage, w.member, args{"input": args{"threadId": threadID, "body": "Hello"}})
}

// end ends a turn with that cost.
func (w *platform) end(turnID string, micros int) {
	w.t.Helper()
	require.NoError(w.t, w.p.DB.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `update thread_turns set status = 'succeeded', finished_at = now(), model = $2, input_tokens = 10, output_tokens = 5, cost_micros = $3
			where id = $1`, turnID, pgtest.ModelID, micros)
		return err
	}))
}

// The way of a budget through the API. The offline model costs 12,500 micros of input and 2,048 of output a call at the most, so 363,700 a turn.
func TestTheWayOfABudget(t *testing.T) {
	w := open(t, handlertest.New(t), "acme")
	set, refusal := w.set(w.admin, args{"scope": "AGENT", "scopeId": w.AgentID, "monthlyUsd": "0.40"})
	require.Nil(t, refusal)
	require.Equal(t, "0.400000", *set.MonthlyUSD)
	first, second := w.thread(), w.thread()
	message, refusal := w.send(first)
	require.Nil(t, refusal)
	joins, refusal := w.send(first)
	require.Nil(t, refusal, "it joins the turn that waits")
	require.Equal(t, message.TurnID, joins.TurnID)
	_, refusal = w.send(second)
	require.Equal(t, fault.New(fault.BudgetExceeded, "the agent's monthly budget of 0.40 USD does not cover another turn"), refusal)
	listed, refusal := w.list(w.member, args{})
	require.Nil(t, refusal)
	require.Len(t, listed.Items, 1)
	require.Equal(t, []string{"0.000000", "0.363700", "0.036300"}, []string{listed.Items[0].SpentUSD, listed.Items[0].ReservedUSD, *listed.Items[0].RemainingUSD})
	var messages int
	require.NoError(t, w.p.DB.Superuser(t).QueryRow(t.Context(), `select count(*) from messages`).Scan(&messages))
	require.Equal(t, 2, messages, "nothing of the refused one")

	w.end(*message.TurnID, 20_000)
	message, refusal = w.send(second)
	require.Nil(t, refusal)
	w.end(*message.TurnID, 330_000)
	_, err := functions.MeterUsage(w.p.Env(t, "meter-usage")).Invoke(t.Context(), []byte(`{}`))
	require.NoError(t, err)
	u := w.usage(w.member, args{"groupBy": []string{"AGENT", "MODEL"}, "filter": args{"spaceId": w.SpaceID}})
	require.Len(t, u.Items, 1)
	require.Equal(t, []any{w.AgentID, pgtest.ModelID, int64(2), "0.350000"}, []any{*u.Items[0].AgentID, *u.Items[0].Model, u.Items[0].Turns, u.Items[0].CostUSD})
	require.Equal(t, "0.350000", u.Total.CostUSD)
	require.Len(t, u.Warnings, 2)
	require.Equal(t, []int{80, 50}, []int{u.Warnings[0].Percent, u.Warnings[1].Percent})
	_, refusal = w.send(first)
	require.Equal(t, fault.BudgetExceeded, refusal.Type)

	gone, refusal := w.set(w.owner, args{"scope": "AGENT", "scopeId": w.AgentID, "monthlyUsd": nil})
	require.Nil(t, refusal)
	require.Nil(t, gone)
	_, refusal = w.send(first)
	require.Nil(t, refusal)
}

func TestWhoMayDoWhat(t *testing.T) {
	p := handlertest.New(t)
	w, theirs := open(t, p, "acme"), open(t, p, "globex")
	_, refusal := w.set(w.member, args{"scope": "TENANT", "monthlyUsd": "1"})
	require.Equal(t, fault.Forbidden, refusal.Type)
	_, refusal = theirs.set(theirs.owner, args{"scope": "AGENT", "scopeId": w.AgentID, "monthlyUsd": "1"})
	require.Equal(t, fault.Missing("agent"), refusal)
	_, refusal = w.set(tenant.Claims{}, args{"scope": "TENANT", "monthlyUsd": "1"})
	require.Equal(t, fault.Forbidden, refusal.Type)
	_, refusal = w.list(tenant.Claims{}, args{})
	require.Equal(t, fault.Forbidden, refusal.Type)
	_, refusal = handlertest.Call[budget.Usage](t, p, "usage", functions.Usage, tenant.Claims{}, args{"from": "2026-01-01", "to": "2026-01-01"})
	require.Equal(t, fault.Forbidden, refusal.Type)

	for _, input := range []args{{"scope": "TENANT", "monthlyUsd": "1"}, {"scope": "SPACE", "scopeId": w.SpaceID, "tokensPerTurn": 5}, {"scope": "AGENT", "scopeId": w.AgentID, "monthlyUsd": "1"}} {
		_, refusal = w.set(w.owner, input)
		require.Nil(t, refusal)
	}
	listed, refusal := theirs.list(theirs.member, args{})
	require.Nil(t, refusal)
	require.Empty(t, listed.Items)
	listed, refusal = w.list(w.member, args{"limit": 2})
	require.Nil(t, refusal)
	require.Equal(t, []budget.Scope{budget.Tenant, budget.Space}, []budget.Scope{listed.Items[0].Scope, listed.Items[1].Scope})
	_, refusal = theirs.list(theirs.member, args{"nextToken": listed.NextToken})
	require.Equal(t, fault.ValidationError, refusal.Type)
	listed, refusal = w.list(w.member, args{"nextToken": listed.NextToken})
	require.Nil(t, refusal)
	require.Equal(t, budget.Agent, listed.Items[0].Scope)
	require.Nil(t, listed.NextToken)
}
