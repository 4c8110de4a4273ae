package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
)

func (w *world) usage(q budget.Question) budget.Usage {
	w.t.Helper()
	u, err := budget.Ask(w.t.Context(), w.db.App.In(w.TenantID), q)
	require.NoError(w.t, err)
	return u
}

// march is a question about the tests' month.
func march(by ...budget.Group) budget.Question {
	return budget.Question{From: "2026-03-01", To: "2026-03-31", GroupBy: by}
}

// rows are the groups of an answer, briefly.
func rows(u budget.Usage) (out []string) {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	for _, r := range u.Items {
		out = append(out, fmt.Sprintf("%s %s %s %s %d %d %d/%d/%d/%d %s", text(r.Day), text(r.AgentID), text(r.SpaceID), text(r.Model), r.Turns, r.UnpricedTurns,
			r.InputTokens, r.OutputTokens, r.CacheReadTokens, r.CacheWriteTokens, r.CostUSD))
	}
	return out
}

func TestUsage(t *testing.T) {
	w := newWorld(t)
	bob, lab := w.agent(), w.space()
	run := func(agent, space string, day int, micros any) string {
		w.at = time.Date(2026, 3, day, 23, 59, 59, 999999000, time.UTC)
		id, err := w.begin(w.db.App, agent, space)
		require.NoError(t, err)
		w.ended(id, micros)
		return id
	}
	run(w.AgentID, w.SpaceID, 1, 10)
	run(w.AgentID, lab, 1, 20)
	run(bob, lab, 2, nil)
	changed := run(bob, lab, 3, 40)
	w.at = time.Date(2026, 2, 28, 23, 0, 0, 0, time.UTC)
	w.ended(w.start(), 1e6) // in February
	failed := w.start()
	w.exec(`update thread_turns set status = 'failed', finished_at = $2 where id = $1`, failed, time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC))
	theirs := w.neighbour("globex")
	theirs.ended(theirs.start(), 1e6)

	check := func() {
		t.Helper()
		require.Equal(t, []string{"- - - - 5 2 28/20/8/4 0.000070"}, rows(w.usage(march())))
		require.Equal(t, []string{
			"2026-03-01 - - - 2 0 14/10/4/2 0.000030",
			"2026-03-02 - - - 1 1 7/5/2/1 0.000000",
			"2026-03-03 - - - 2 1 7/5/2/1 0.000040"}, rows(w.usage(march(budget.ByDay))))
		require.Equal(t, []string{
			"- " + bob + " - - 2 1 14/10/4/2 0.000040",
			"- " + w.AgentID + " - - 3 1 14/10/4/2 0.000030"}, rows(w.usage(march(budget.ByAgent))))
		require.Equal(t, []string{
			"- - " + lab + " - 3 1 21/15/6/3 0.000060",
			"- - " + w.SpaceID + " - 2 1 7/5/2/1 0.000010"}, rows(w.usage(march(budget.BySpace))))
		require.Equal(t, []string{
			"- - - offline.echo-1 4 1 28/20/8/4 0.000070",
			"- - - - 1 1 0/0/0/0 0.000000"}, rows(w.usage(march(budget.ByModel))))
		require.Len(t, w.usage(march(budget.ByModel, budget.ByDay, budget.BySpace, budget.ByAgent)).Items, 5)
		q := march(budget.ByAgent)
		q.Filter.SpaceID = &lab
		require.Equal(t, []string{"- " + bob + " - - 2 1 14/10/4/2 0.000040", "- " + w.AgentID + " - - 1 0 7/5/2/1 0.000020"}, rows(w.usage(q)))
		q.Filter.AgentID = &bob
		require.Equal(t, "0.000040", w.usage(q).Total.CostUSD)
		model := "offline.echo-1"
		q.Filter.Model, q.To = &model, "2026-03-02"
		u := w.usage(q)
		require.Equal(t, budget.Row{Turns: 1, UnpricedTurns: 1, InputTokens: 7, OutputTokens: 5, CacheReadTokens: 2, CacheWriteTokens: 1, CostUSD: "0.000000"}, u.Total)
		q.Filter.AgentID = &theirs.AgentID
		require.Equal(t, budget.Usage{Items: []budget.Row{}, Total: budget.Row{CostUSD: "0.000000"}, Warnings: []budget.Warning{}}, w.usage(q))
	}
	check()
	w.meter()
	require.Zero(t, w.count("usage_unmetered"))
	check()

	// A record that changes after the end, as by what rates the turn: its usage follows.
	w.exec(`update thread_turns set cost_micros = cost_micros + 2, model = 'other.judge-1' where id = $1`, changed)
	for range 2 {
		require.Equal(t, []string{"- - - - 5 2 28/20/8/4 0.000072"}, rows(w.usage(march())))
		require.Equal(t, []string{"- - - other.judge-1 1 0 7/5/2/1 0.000042", "- - - offline.echo-1 3 1 21/15/6/3 0.000030", "- - - - 1 1 0/0/0/0 0.000000"}, rows(w.usage(march(budget.ByModel))))
		w.meter()
	}
	w.exec(`update thread_turns set error = 'what it does not count' where id = $1`, changed)
	require.Zero(t, w.count("usage_unmetered"))
}

func TestQuestionsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	bad := "no id"
	for _, q := range []budget.Question{
		{},
		{From: "2026-03-01", To: "2026-02-28"},
		{From: "2026-03-01", To: "2027-06-01"},
		{From: "2026-02-29", To: "2026-03-01"},
		{From: "2026-03-01+09:00", To: "2026-03-02"},
		{From: "2026-03-01", To: "2026-03-02", GroupBy: []budget.Group{"USER"}},
		{From: "2026-03-01", To: "2026-03-02", GroupBy: []budget.Group{budget.ByDay, budget.ByDay}},
		{From: "2026-03-01", To: "2026-03-02", Filter: budget.Filter{AgentID: &bad}},
		{From: "2026-03-01", To: "2026-03-02", Filter: budget.Filter{SpaceID: &bad}},
	} {
		_, err := budget.Ask(t.Context(), w.db.App.In(w.TenantID), q)
		require.Error(t, err, "%+v", q)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, "%+v", q)
	}
	w.usage(budget.Question{From: "2026-03-01Z", To: "2026-03-01"})
	_, err := w.super.Exec(t.Context(), `insert into usage_days select $1, '2026-03-01', gen_random_uuid(), $2, 'm', 1, 0, 0, 0, 0, 0, 0 from generate_series(1, 5001)`, w.TenantID, w.SpaceID)
	require.NoError(t, err)
	_, err = budget.Ask(t.Context(), w.db.App.In(w.TenantID), march(budget.ByAgent))
	require.EqualError(t, err, "the answer has more than 5000 rows; ask for fewer days, fewer groups, or one agent, space or model")
	require.EqualValues(t, 5001, w.usage(march()).Total.Turns)
}

// Many meters at once count every turn once.
func TestManyMetersAtOnce(t *testing.T) {
	w := newWorld(t)
	theirs := w.neighbour("globex")
	pools := w.pools()
	var g errgroup.Group
	for i := range 16 {
		g.Go(func() error {
			for range 10 {
				home := []*world{w, theirs}[i%2]
				turnID, err := home.begin(pools[i%8], home.AgentID, home.SpaceID)
				if err != nil {
					return err
				}
				if err := home.end(pools[i%8], turnID, 3); err != nil {
					return err
				}
				if err := budget.Meter(t.Context(), pools[i%8]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	w.meter()
	require.Zero(t, w.count("usage_unmetered"))
	for _, home := range []*world{w, theirs} {
		require.EqualValues(t, 80, home.usage(march()).Total.Turns)
		require.Equal(t, "0.000240", home.usage(march()).Total.CostUSD)
		require.Equal(t, "0.000240", home.cap(budget.Agent, home.AgentID, 1e6).SpentUSD)
	}
}

// What was used besides a turn counts in the same budgets, and is no turn.
func TestCharges(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Agent, w.AgentID, 1e6)
	turnID := w.start()
	w.ended(turnID, 10)
	charge := func(micros *int64) {
		var b pgx.Batch
		budget.Charge(&b, turnID, "other.judge-1", model.Usage{InputTokens: 3, CacheReadTokens: 2, OutputTokens: 1}, micros, now)
		require.NoError(t, w.db.App.Once(t.Context(), w.TenantID, &b))
	}
	cost := int64(5)
	charge(&cost)
	charge(nil)
	for range 2 {
		require.Equal(t, "0.000015", w.budgets()[0].SpentUSD)
		require.Equal(t, []string{"- - - offline.echo-1 1 0 7/5/2/1 0.000010", "- - - other.judge-1 0 0 10/2/4/0 0.000005"}, rows(w.usage(march(budget.ByModel))))
		w.meter()
	}
}

// However many turns end before the next meter, what is not added up stays little: a turn that reserves reads it.
func TestWhatIsNotAddedUpStaysLittle(t *testing.T) {
	w := newWorld(t)
	_, err := w.super.Exec(t.Context(), `with made as (
			insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id)
			select $1, gen_random_uuid(), 'CHAT', n, 'CHAT', $2, $3 from generate_series(1, 1000) n returning tenant_id, uuid, agent_id)
		insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number) select tenant_id, gen_random_uuid(), uuid, agent_id, 1 from made`, w.TenantID, w.AgentID, w.SpaceID)
	require.NoError(t, err)
	w.exec(`update thread_turns set status = 'failed', finished_at = $1, cost_micros = 3`, now)
	require.Less(t, w.count("usage_unmetered"), 256)
	require.EqualValues(t, 1000, w.usage(march()).Total.Turns)
	require.Equal(t, "0.003000", w.cap(budget.Agent, w.AgentID, 1e6).SpentUSD)
}

func TestWarnings(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, 10_000)
	w.cap(budget.Agent, w.AgentID, 20_000)
	at := func(minute int) time.Time { return time.Date(2026, 3, 20, 12, minute, 0, 0, time.UTC) }
	spend := func(minute, micros int) {
		w.at = at(minute)
		w.ended(w.start(), micros)
	}
	spend(1, 4999)
	w.meter()
	require.Empty(t, w.usage(march()).Warnings)
	spend(2, 1)
	spend(3, 2999)
	w.meter()
	warned := w.usage(march()).Warnings
	require.Len(t, warned, 1)
	require.Equal(t, budget.Warning{Scope: budget.Tenant, ScopeID: w.TenantID, Month: "2026-03-01", Percent: 50, MonthlyUSD: "0.010000", SpentUSD: "0.005000",
		CrossedAt: warned[0].CrossedAt}, warned[0])
	require.True(t, warned[0].CrossedAt.Equal(at(2)), "the turn that crossed it")
	spend(4, 1400)
	spend(5, 601) // the last of it costs more than is left: a turn may
	w.meter()
	w.meter()
	b := w.budgets()
	require.Equal(t, []int{50, 80, 100}, []int{b[0].Warnings[0].Percent, b[0].Warnings[1].Percent, b[0].Warnings[2].Percent})
	require.True(t, b[0].Warnings[1].CrossedAt.Equal(at(4)))
	require.True(t, b[0].Warnings[2].CrossedAt.Equal(at(5)))
	require.Equal(t, 100.0, *b[0].Percent)
	require.Len(t, b[1].Warnings, 1)

	// Another cap is warned of anew, at once of what is spent already; the old warnings stay in the usage.
	w.at = at(6)
	raised := w.cap(budget.Tenant, w.TenantID, 12_500)
	require.Len(t, raised.Warnings, 2)
	require.True(t, raised.Warnings[0].CrossedAt.Equal(at(6)))
	require.Len(t, w.usage(march()).Warnings, 6)
	require.Len(t, w.cap(budget.Tenant, w.TenantID, 12_500).Warnings, 2)
	require.Empty(t, w.usage(budget.Question{From: "2026-03-21", To: "2026-03-31"}).Warnings)
	require.Nil(t, w.set(budget.Tenant, w.TenantID, nil, nil))
	require.Len(t, w.usage(march()).Warnings, 6)

	w.at = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	require.Empty(t, w.budgets()[0].Warnings, "another month")
}
