package budget_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestSetting(t *testing.T) {
	w := newWorld(t)
	b := w.set(budget.Tenant, w.TenantID, "100.5", 20_000)
	name, monthly, remaining, tokens, percent := "acme", "100.500000", "100.500000", int64(20_000), 0.0
	at := ident.Time{Time: w.at.Truncate(time.Microsecond)}
	want := budget.Budget{Scope: budget.Tenant, ScopeID: w.TenantID, Name: &name, MonthlyUSD: &monthly, TokensPerTurn: &tokens, Month: "2026-03-01",
		SpentUSD: "0.000000", ReservedUSD: "0.000000", RemainingUSD: &remaining, Percent: &percent, Warnings: []budget.Warning{}, CreatedAt: at, UpdatedAt: at}
	require.Equal(t, want, *b)
	require.Equal(t, []budget.Budget{want}, w.budgets())

	apply := func(body string) *budget.Budget {
		t.Helper()
		var c budget.Change
		require.NoError(t, json.Unmarshal([]byte(body), &c))
		b, err := w.trySet(c)
		require.NoError(t, err)
		return b
	}
	require.Equal(t, "7.000000", *apply(`{"scope": "TENANT", "monthlyUsd": "7"}`).MonthlyUSD)
	b = apply(`{"scope": "TENANT", "monthlyUsd": null}`)
	require.Nil(t, b.MonthlyUSD)
	require.Nil(t, b.RemainingUSD)
	require.Nil(t, b.Percent)
	require.EqualValues(t, 20_000, *b.TokensPerTurn, "what is left out stays")
	require.NotNil(t, apply(`{"scope": "TENANT"}`))
	require.Nil(t, apply(`{"scope": "TENANT", "tokensPerTurn": null}`))
	require.Nil(t, apply(`{"scope": "TENANT", "tokensPerTurn": null}`), "nothing to take away")
	require.Empty(t, w.budgets())
}

func TestSettingWhatCannotBe(t *testing.T) {
	w := newWorld(t)
	theirs := w.neighbour("globex")
	for _, c := range []struct {
		scope budget.Scope
		id    string
		usd   any
		tok   any
		want  fault.Type
	}{
		{budget.Tenant, theirs.TenantID, "1", nil, fault.NotFound},
		{budget.Agent, theirs.AgentID, "1", nil, fault.NotFound},
		{budget.Space, theirs.SpaceID, "1", nil, fault.NotFound},
		{budget.Space, w.AgentID, "1", nil, fault.NotFound},
		{budget.Agent, "no id", nil, nil, fault.NotFound},
		{budget.Agent, ident.New(), nil, nil, fault.NotFound},
		{"USER", w.UserID, "1", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "-1", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "+1", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "1e3", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "1.", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, ".5", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "1.0000001", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "1000000000.000001", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "99999999999999999999", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, "１", nil, fault.ValidationError},
		{budget.Agent, w.AgentID, nil, 0, fault.ValidationError},
		{budget.Agent, w.AgentID, nil, -5, fault.ValidationError},
	} {
		_, err := w.trySet(change(c.scope, c.id, c.usd, c.tok))
		require.Error(t, err, "%+v", c)
		require.Equal(t, c.want, fault.From(err).Type, "%+v: %v", c, err)
	}
	require.Zero(t, w.count("budgets"))
	_, err := w.trySet(budget.Change{Scope: budget.Agent})
	require.Equal(t, fault.Missing("agent"), err)
	for _, usd := range []string{"0", "0.000001", "1000000000", "1000000000.000000", "007.50"} {
		w.set(budget.Agent, w.AgentID, usd, nil)
	}
}

// An agent that is archived keeps its budget, and what is gone altogether can lose it.
func TestBudgetsOfWhatIsGone(t *testing.T) {
	w := newWorld(t)
	lab := w.space()
	w.set(budget.Space, lab, "1", nil)
	w.set(budget.Agent, w.AgentID, "2", nil)
	w.exec(`update agents set status = 'archived'`)
	_, err := w.super.Exec(t.Context(), `delete from spaces where id = $1`, lab)
	require.NoError(t, err)
	all := w.budgets()
	require.Len(t, all, 2)
	require.Nil(t, all[0].Name)
	require.Equal(t, "Ada", *all[1].Name)
	w.set(budget.Agent, w.AgentID, "3", nil)
	_, err = w.trySet(change(budget.Space, lab, "1", nil))
	require.Equal(t, fault.Missing("space"), err)
	require.Nil(t, w.set(budget.Space, lab, nil, nil))
	_, err = w.trySet(change(budget.Space, lab, nil, nil))
	require.Equal(t, fault.Missing("space"), err)
	require.Len(t, w.budgets(), 1)
}

// The tenant's budget, the spaces', the agents', page by page; nobody else's.
func TestListing(t *testing.T) {
	w := newWorld(t)
	var want []string
	for range 3 {
		id := w.agent()
		w.set(budget.Agent, id, nil, 1)
		want = append(want, id)
	}
	lab := w.space()
	w.set(budget.Space, lab, "1", nil)
	w.set(budget.Tenant, w.TenantID, "1", nil)
	want = append([]string{w.TenantID, lab}, want...)
	theirs := w.neighbour("globex")
	theirs.set(budget.Tenant, theirs.TenantID, "1", nil)
	var got []string
	var after *budget.Cursor
	for {
		page, err := budget.List(t.Context(), w.db.App.In(w.TenantID), now, after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, b := range page {
			got = append(got, b.ScopeID)
			c := b.Cursor()
			after = &c
		}
	}
	require.Equal(t, want, got)
}
