package evaluation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestAnEvaluationIsStoredAndChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, err := w.create(fields(t, `{"name": "Capitals", "agentId": "`+w.AgentID+`", "evaluators": [{"type": "contains", "ignoreCase": true}, {"name": "short", "type": "length", "maxWords": 20}],
		"cases": [{"input": "France?", "expected": "Paris", "metadata": "{\"level\":1}"}, {"input": "Peru?", "expected": "Lima"}, {"input": "France?", "expected": "paris"}]}`))
	require.NoError(t, err)
	require.Equal(t, 3, e.CaseCount)
	require.Equal(t, 1, e.Version)
	require.Equal(t, evaluation.DefaultConcurrency, e.Concurrency)
	require.Equal(t, 0.5, e.PassThreshold)
	got, err := evaluation.Get(t.Context(), w.db.App.In(w.TenantID), e.ID)
	require.NoError(t, err)
	require.Equal(t, e, got)
	cases, err := evaluation.Cases(t.Context(), w.db.App.In(w.TenantID), []string{e.ID}, nil, 2)
	require.NoError(t, err)
	require.Equal(t, map[string][]evaluation.Case{e.ID: {{Number: 1, Input: "France?", Expected: new("Paris"), Metadata: new(`{"level":1}`)},
		{Number: 2, Input: "Peru?", Expected: new("Lima")}}}, cases)
	require.Equal(t, 3, w.count(`select count(distinct key) from evaluation_cases`), "the same input twice is two cases")

	update := func(text string) (changed evaluation.Evaluation, err error) {
		err = w.tx(func(tx pgx.Tx) (err error) {
			changed, err = evaluation.Update(t.Context(), tx, w.TenantID, e.ID, fields(t, text))
			return err
		})
		return changed, err
	}
	changed, err := update(`{"name": "Cities", "concurrency": 10, "passThreshold": 1, "evaluators": [{"type": "exact"}]}`)
	require.NoError(t, err)
	require.Equal(t, []any{"Cities", 10, 1.0, 2, 3, "exact"}, []any{changed.Name, changed.Concurrency, changed.PassThreshold, changed.Version, changed.CaseCount, changed.Evaluators[0].Name})
	changed, err = update(`{"cases": [{"input": "Peru?", "expected": "Lima"}], "concurrency": null}`)
	require.NoError(t, err)
	require.Equal(t, []any{evaluation.DefaultConcurrency, 3, 1}, []any{changed.Concurrency, changed.Version, changed.CaseCount})
	_, err = update(`{"cases": [{"input": "Peru?"}]}`)
	require.EqualError(t, err, `case 1: expected is required: evaluator "exact" compares the answer with it`)
	_, err = update(`{"cases": [{"input": "Peru?"}], "evaluators": [{"type": "exact", "text": "Lima"}]}`)
	require.NoError(t, err)
	_, err = update(`{"evaluators": [{"type": "contains"}]}`)
	require.EqualError(t, err, `case 1: expected is required: evaluator "contains" compares the answer with it`)
}

func TestWhatNoEvaluationMayHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	valid := map[string]any{"name": "x", "agentId": w.AgentID, "evaluators": []any{map[string]any{"type": "exact"}}, "cases": []any{map[string]any{"input": "a", "expected": "b"}}}
	many := make([]any, evaluation.MaxCases+1)
	for i := range many {
		many[i] = map[string]any{"input": fmt.Sprint(i), "expected": "x"}
	}
	for _, c := range []struct {
		field string
		value any
		says  string
	}{
		{"name", "", "name must not be empty"},
		{"name", strings.Repeat("x", 201), "name is longer than 200 bytes"},
		{"name", nil, "name must not be null"},
		{"agentId", ident.New(), "agent not found"},
		{"agentId", "x", "agent not found"},
		{"evaluators", []any{}, "evaluators must not be empty"},
		{"evaluators", nil, "evaluators must not be null"},
		{"evaluators", []any{map[string]any{"type": "json_schema", "schema": "{"}}, `evaluator "json_schema": schema: not JSON: it ends too soon`},
		{"cases", []any{}, "cases must hold 1 to 1000 entries"},
		{"cases", many, "cases must hold 1 to 1000 entries"},
		{"cases", []any{map[string]any{"input": "a"}}, `case 1: expected is required: evaluator "exact" compares the answer with it`},
		{"cases", []any{map[string]any{"input": "", "expected": "x"}}, "case 1: input must not be empty"},
		{"cases", []any{map[string]any{"input": strings.Repeat("x", 32<<10+1), "expected": "x"}}, "case 1: input is longer than 32768 bytes"},
		{"cases", []any{map[string]any{"input": "a", "expected": "x", "metadata": "[]"}}, "case 1: metadata must be a JSON object"},
		{"cases", []any{map[string]any{"input": "a\x00", "expected": "x"}}, "case 1: input must be UTF-8 text without NUL"},
		{"concurrency", 0, "concurrency must be from 1 to 10"},
		{"concurrency", 11, "concurrency must be from 1 to 10"},
		{"passThreshold", 0, "passThreshold must be more than 0 and at most 1"},
		{"passThreshold", 1.1, "passThreshold must be more than 0 and at most 1"},
	} {
		input := map[string]any{}
		for name, value := range valid {
			input[name] = value
		}
		input[c.field] = c.value
		text, err := json.Marshal(input)
		require.NoError(t, err)
		_, err = w.create(fields(t, string(text)))
		require.EqualError(t, err, c.says, "%s: %v", c.field, c.value)
		require.Contains(t, []fault.Type{fault.ValidationError, fault.NotFound}, fault.From(err).Type)
	}
	require.Zero(t, w.count(`select count(*) from evaluations`))
}

// To another tenant there is nothing: no evaluation, no case, no run, no result.
func TestAnotherTenantSeesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.evaluation(2, 2, says())
	r := w.start(e)
	w.work(r)
	other := w.db.World(t, "globex")
	q := w.db.App.In(other.TenantID)

	list, err := evaluation.List(t.Context(), q, nil, 10)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = evaluation.Get(t.Context(), q, e.ID)
	require.Equal(t, fault.Missing("evaluation"), err)
	_, err = evaluation.GetRun(t.Context(), q, r.ID)
	require.Equal(t, fault.Missing("evaluation run"), err)
	cases, err := evaluation.Cases(t.Context(), q, []string{e.ID}, nil, 10)
	require.NoError(t, err)
	require.Empty(t, cases)
	results, err := evaluation.Results(t.Context(), q, []string{r.ID}, nil, nil, 10)
	require.NoError(t, err)
	require.Empty(t, results)
	runs, err := evaluation.Runs(t.Context(), q, e.ID, nil, 10)
	require.NoError(t, err)
	require.Empty(t, runs)
	for _, act := range []func(tx pgx.Tx) error{
		func(tx pgx.Tx) error {
			_, err := evaluation.Update(t.Context(), tx, other.TenantID, e.ID, fields(t, `{"name": "x"}`))
			return err
		},
		func(tx pgx.Tx) error { _, err := evaluation.Delete(t.Context(), tx, e.ID); return err },
		func(tx pgx.Tx) error {
			_, err := evaluation.Start(t.Context(), tx, other.TenantID, other.UserID, e.ID, nil)
			return err
		},
		func(tx pgx.Tx) error {
			_, _, err := evaluation.Cancel(t.Context(), tx, other.TenantID, r.ID)
			return err
		},
	} {
		require.True(t, fault.IsMissing(w.db.App.InTenant(t.Context(), other.TenantID, act)))
	}
	require.NoError(t, w.runner.Run(t.Context(), evaluation.Job{TenantID: other.TenantID, RunID: r.ID}), "there is nothing to do")
	_, err = w.create(fields(t, `{"name": "x", "agentId": "`+other.AgentID+`", "evaluators": [{"type": "exact"}], "cases": [{"input": "a", "expected": "b"}]}`))
	require.Equal(t, fault.Missing("agent"), err)
}
